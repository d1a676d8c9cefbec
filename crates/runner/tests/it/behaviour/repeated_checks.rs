//! Checks that run again, after their task passed or on request.

use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;

use super::checks::{CHECKS, GREETS, checked};
use crate::RUNNER;

#[test]
fn verify_repeats_red_and_green_in_fresh_rooms() {
    for keys in ["room = \"in-place\"", "room = \"require\""] {
        let agent = r#"[ "$RUNNER_ITER" = 0002 ] && echo hello > out; answer done"#;
        let repo = checked().agent(agent).guard_keys(keys).start();
        repo.runner(&["loop"]).ok();
        let output = repo.runner(&["verify", "--rerun"]).ok().stdout;
        for (step, result) in
            [("check greets before the work", "failed"), ("check greets", "passed"), ("guard", "passed")]
        {
            let found = output.lines().any(|line| {
                line.contains(&format!("step=\"{step}\"")) && line.ends_with(&format!("result={result}"))
                    || line.contains(&format!("step={step} ")) && line.ends_with(&format!("result={result}"))
            });
            assert!(found, "{keys} {step}: {output}");
        }
        assert!(output.contains("verdict=verified"), "{output}");
    }
}

/// The check depends on a file beside the repository, which is there only during the run.
#[test]
fn verify_notices_a_result_that_cannot_be_repeated() {
    let toml = "[[check]]\nname = \"outside\"\ncommand = [\"sh\", \"-c\", \"test -e $HOME/made\"]\n";
    let repo =
        RunBuilder::new(RUNNER).file(CHECKS, toml).agent("touch $HOME/made; echo x > y; answer done").start();
    repo.runner(&["loop"]).ok();
    let before = "step=\"check outside before the work\"";
    let again = repo.runner(&["verify", "--rerun"]);
    let line = again.stdout.lines().find(|line| line.contains(before)).unwrap_or_default().to_owned();
    assert!(line.contains("result=\"green, recorded failed\""), "{}", again.stdout);
    assert_eq!(again.code, Some(1), "{}", again.stdout);
}

#[test]
fn the_checks_of_a_task_can_be_run_at_any_time() {
    for keys in ["room = \"in-place\"", "room = \"require\""] {
        let repo = checked().agent("echo hello > out; answer done").guard_keys(keys).start();
        let head = repo.git(&["rev-parse", "HEAD"]);
        let red = repo.runner(&["node", "check", "run", "root"]);
        assert_eq!(red.code, Some(1), "{}", red.stdout);
        assert!(red.stdout.contains("check=greets passed=false"), "{}", red.stdout);
        assert!(!repo.path("t").exists(), "nothing is left in the work tree");
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
        let missing = repo.runner(&["node", "check", "run", "root", "other"]);
        assert_eq!(missing.code, Some(2), "{}", missing.stderr);
        repo.runner(&["loop"]).ok();
        let green = repo.runner(&["node", "check", "run", "root", "greets"]).ok().stdout;
        assert!(green.contains("check=greets passed=true"), "{green}");
        let report = repo.runner(&["report", "--json"]).ok().stdout;
        assert!(report.contains("\"proven\": 1"), "{report}");
        assert_sound(&repo);
    }
}

/// Code of the repository rewrites the file of a check while it is repeated.
#[test]
fn a_repeated_check_runs_its_frozen_files() {
    let toml = GREETS.replace("t/greet.sh\"]", "run.sh\"]");
    for keys in ["room = \"in-place\"", "room = \"require\""] {
        let repo = checked()
            .file(CHECKS, &toml)
            .file("run.sh", "echo exit 0 > t/greet.sh; sh t/greet.sh\n")
            .guard_keys(keys)
            .start();
        let ran = repo.runner(&["node", "check", "run", "root"]);
        assert!(ran.stdout.contains("check=greets passed=false"), "{keys}: {}", ran.stdout);
    }
}

/// Reports that are in the commit, and not written by the check.
#[test]
fn a_repeated_check_counts_only_a_report_that_it_wrote() {
    let toml = "[[check]]\nname = \"reports\"\ncommand = [\"sh\", \"run.sh\"]\njunit = \"out/r.xml\"\n";
    let report = "<testsuite tests=\"1\"><testcase name=\"a\"/></testsuite>\n";
    let forged = [
        ("committed", "out/r.xml", "true\n"),
        ("linked while it runs", "reports/r.xml", "rm -rf out; ln -s reports out\n"),
    ];
    for keys in ["room = \"in-place\"", "room = \"require\""] {
        for (name, path, script) in forged {
            let builder = RunBuilder::new(RUNNER).file(CHECKS, toml).guard_keys(keys);
            let repo = builder.file(path, report).file("run.sh", script).start();
            let ran = repo.runner(&["node", "check", "run", "root"]);
            assert!(ran.stdout.contains("check=reports passed=false"), "{keys} {name}: {}", ran.stdout);
        }
        let builder = RunBuilder::new(RUNNER).file(CHECKS, toml).guard_keys(keys).file("r.xml", report);
        let repo = builder.file("run.sh", "mkdir -p out; cp r.xml out\n").start();
        let ran = repo.runner(&["node", "check", "run", "root"]).ok().stdout;
        assert!(ran.contains("check=reports passed=true"), "{keys}: {ran}");
    }
}
