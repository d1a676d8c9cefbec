//! `runner verify` in clones, on ranges, with user commits, and with `--rerun`.

use std::fs;

use testkit::oracle::{assert_verified, unrepeatable_passes};
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::{completed, json, on_terminal};

const AGENT: &str = r#"
case "$RUNNER_NODE_ID" in
root) split ;;
*) echo "$RUNNER_ITER" > work; answer done ;;
esac
"#;

fn complete() -> TestRepo {
    let guard = "test ! -e \"$(dirname \"$HOME\")/broken\" || { echo failed; exit 3; }";
    completed(&RunBuilder::new(RUNNER).agent(AGENT).guard(guard))
}

/// A clone beside the work tree.
fn clone(sandbox: &TestRepo, name: &str, more: &[&str]) -> std::path::PathBuf {
    let place = sandbox.outside().join(name);
    let url = format!("file://{}", sandbox.root().display());
    sandbox.git(&[&["clone", "-q"], more, &[&url, place.to_str().unwrap()]].concat());
    place
}

#[test]
fn any_clone_verifies_a_run_without_its_logs() {
    let sandbox = complete();
    let place = clone(&sandbox, "clone", &["--branch", "main"]);
    let output = run(sandbox.runner_command(&["verify"]).current_dir(&place)).ok();
    assert!(
        output.stdout.ends_with("iterations=3 passed=2 complete=true violations=0\n"),
        "{}",
        output.stdout
    );
    assert_eq!(
        output.stdout.lines().count(),
        6,
        "a line for the start, each iteration, where the guard ran, and the verdict"
    );
    let quiet = run(sandbox.runner_command(&["verify", "-q", RUN]).current_dir(&place)).ok();
    assert_eq!(quiet.stdout, "");
    assert!(!place.join(".git/runner").exists(), "nothing is written");
}

#[test]
fn shallow_clone_reports_what_it_cannot_check() {
    let sandbox = complete();
    let place = clone(&sandbox, "shallow", &["--depth", "2", "--branch", "runner/demo"]);
    let output = run(sandbox.runner_command(&["verify"]).current_dir(&place));
    assert_eq!(output.code, Some(5), "partial");
    let output = output.stdout;
    assert!(
        output.contains("unchecked=\"everything up to ") && output.contains("commits=1 iterations=1"),
        "{output}"
    );
}

#[test]
fn range_is_verified_against_the_commit_before_it() {
    let sandbox = complete();
    let output = sandbox.runner(&["verify", "HEAD~2.."]).ok().stdout;
    assert!(output.contains("commits=2 iterations=2") && !output.contains("unchecked"), "{output}");
    let output = sandbox.runner(&["verify", "HEAD~1"]).ok().stdout;
    assert!(output.contains("commits=3 iterations=2"), "{output}");
}

#[test]
fn target_that_is_not_a_run_is_refused() {
    let sandbox = complete();
    let output = sandbox.runner(&["verify", "dmeo"]).refused(2);
    assert!(
        output.contains("no such run or commit: `dmeo`") && output.contains("did you mean `demo`?"),
        "{output}"
    );
    assert!(sandbox.runner(&["verify", "main"]).refused(2).contains("`main` is not a run"));
    assert!(sandbox.runner(&["verify", "nothing..HEAD"]).refused(2).contains("no such commit: `nothing`"));
    let other = TestRepo::with_commit(RUNNER);
    assert!(other.runner(&["verify"]).refused(2).contains("this repository has no runs"));
}

#[test]
fn user_commits_become_part_of_the_next_runner_commit() {
    let sandbox = RunBuilder::new(RUNNER).agent(AGENT).start();
    sandbox.runner(&["step"]).ok();
    sandbox.write("mine", "1");
    sandbox.commit_all("mine");
    let output = sandbox.runner(&["verify"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("violation=foreign_commit"), "{}", output.stdout);

    let trailer = "--format=%(trailers:key=Runner-User-Commits,valueonly)";
    sandbox.runner(&["start"]).ok();
    assert_eq!(sandbox.git(&["log", "-1", trailer]).trim(), "1");
    assert_verified(&sandbox);
    let tip = sandbox.git(&["rev-parse", "HEAD"]);
    sandbox.runner(&["start"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), tip, "there is nothing more to take in");

    for text in ["2", "3"] {
        sandbox.write("mine", text);
        sandbox.commit_all("mine");
    }
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.git(&["log", "-1", trailer]).trim(), "2");
    sandbox.runner(&["loop"]).ok();
    assert_verified(&sandbox);
}

#[test]
fn guard_committed_by_the_user_counts_from_the_next_start() {
    let agent = r#"case "$RUNNER_NODE_ID" in root) split ;; *) echo true > more.sh; answer done ;; esac"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let config = sandbox.read(".runner/state/config.toml");
    sandbox.write(
        ".runner/state/config.toml",
        config.replace("[\"guard.sh\"]\n", "[\"guard.sh\", \"more.sh\"]\n"),
    );
    assert!(sandbox.read(".runner/state/config.toml").contains("protected = [\"guard.sh\", \"more.sh\"]"));
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["step"]).ok();
    sandbox.write("more.sh", "false\n");
    sandbox.commit_all("a stricter guard");
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.read("more.sh"), "false\n", "an agent cannot weaken it");
    assert_verified(&sandbox);
}

#[test]
fn rerun_guard_runs_the_guard_on_passing_commits() {
    let sandbox = complete();
    let scratch = sandbox.outside().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let again = |which: &str| {
        run(sandbox.runner_command(&["verify", &format!("--rerun{which}")]).env("TMPDIR", &scratch))
    };
    assert_eq!(again("").ok().stdout.matches("passed=true").count(), 2);
    assert_eq!(again("=2").ok().stdout.matches("passed=true").count(), 1);
    assert!(again("=1").stderr.contains("no task passed in iteration 0001"));
    fs::write(sandbox.outside().join("broken"), "").unwrap();
    let red = again("=all");
    assert_eq!(red.code, Some(1));
    assert!(
        red.stdout.contains("result=\"failed (exit 3)\"") && red.stdout.contains("verdict=violated"),
        "{}",
        red.stdout
    );
    assert!(red.stdout.contains("violations=2\n"), "{}", red.stdout);
    for line in red.stdout.lines().filter(|line| line.contains("step=")) {
        assert_eq!(line.contains("passed=true"), line.contains("result=passed"), "{line}");
    }
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "nothing is left");
}

/// Where the guards of the passes ran is on record, and a pass without a room is not hidden among others.
#[test]
#[cfg(target_os = "linux")]
fn verify_and_status_show_where_the_guard_ran() {
    let repo = RunBuilder::new(RUNNER).agent(AGENT).start();
    repo.runner(&["step"]).ok();
    repo.runner(&["step"]).ok();
    let status = repo.runner(&["status"]).ok();
    assert_eq!(status.value("guard"), Some("\"runs in the work tree, without a sandbox\""));
    repo.runner(&["config", "set", "guard.room", "require"]).ok();
    repo.runner(&["start"]).ok();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.runner(&["status"]).ok().value("guard"), Some("\"runs in a room (bubblewrap)\""));

    let lines = repo.runner(&["verify"]).ok().stdout;
    for line in ["room=in-place passes=1", "room=\"bubblewrap ignored=room\" passes=1"] {
        assert!(lines.lines().any(|found| found == line), "{line}: {lines}");
    }
    let document = json(&repo.runner(&["verify", "--json"]).ok());
    assert_eq!(
        document["rooms"],
        serde_json::json!([
            { "room": "in-place", "passes": 1 },
            { "room": "bubblewrap ignored=room", "passes": 1 },
        ])
    );
    let screen = on_terminal(&repo, 90, "verify").stdout;
    for line in [
        "guard: 1 pass in the work tree, without a sandbox",
        "guard: 1 pass in a room (bubblewrap, ignored = \"room\")",
    ] {
        assert!(screen.contains(line), "{screen}");
    }
}

/// The oracle of the tests notices a pass that only the repository of the run can repeat.
#[test]
fn a_pass_that_depends_on_an_ignored_file_cannot_be_repeated_in_a_fresh_clone() {
    let agent = "echo 1 > ignored; echo 1 > work; answer done";
    let run = |guard: &str| {
        let builder = RunBuilder::new(RUNNER).agent(agent).guard(guard);
        completed(&builder.unrepeatable("a guard depends on an ignored file"))
    };
    assert_eq!(unrepeatable_passes(&run("test -e work")), Vec::<String>::new());
    let found = unrepeatable_passes(&run("test -e ignored"));
    assert!(
        matches!(found.as_slice(), [one] if one.contains("exit Some(1)") && one.contains("step=guard")),
        "{found:?}"
    );
}

/// The versions of tools and the lock files at the start, and what is different where a pass is repeated.
#[test]
fn a_rerun_names_what_differs_from_the_recorded_environment() {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path();
    let tool = |version: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = tools.join("mytool");
        fs::write(&path, format!("#!/bin/sh\necho mytool {version}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    tool("1.0");
    let repo = RunBuilder::new(RUNNER)
        .agent("echo 1 > work; echo v2 > Cargo.lock; answer done")
        .file("Cargo.lock", "v1\n")
        .start();
    let with_tools = |args: &[&str]| {
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        run(repo.runner_command(args).env("PATH", path))
    };
    with_tools(&["config", "set", "guard.tools", "mytool", "no-such-tool"]).ok();
    with_tools(&["start"]).ok();
    let state = repo.read(".runner/state/run_state.json");
    assert!(state.contains("\"version\": \"mytool 1.0\""), "{state}");
    with_tools(&["loop"]).ok();
    let same = with_tools(&["verify", "--rerun"]).ok().stdout;
    assert!(!same.contains("mytool"), "{same}");
    assert!(same.contains("environment=\"Cargo.lock: changed since the start\""), "{same}");
    tool("2.0");
    let other = with_tools(&["verify", "--rerun"]).ok().stdout;
    assert!(other.contains("environment=\"mytool: mytool 1.0 at the start, mytool 2.0 now\""), "{other}");
}

/// Without `tools`, the lock files are recorded all the same.
#[test]
fn lock_files_are_recorded_and_compared_without_a_list_of_tools() {
    let repo = RunBuilder::new(RUNNER)
        .agent("echo 1 > work; echo v2 > Cargo.lock; mkdir web; echo 1 > web/yarn.lock; answer done")
        .file("Cargo.lock", "v1\n")
        .file("tools/requirements.txt", "x==1\n")
        .start();
    let state: serde_json::Value = serde_json::from_str(&repo.read(".runner/state/run_state.json")).unwrap();
    let locks = state["environment"]["locks"].as_array().unwrap();
    let paths: Vec<&str> = locks.iter().filter_map(|lock| lock["path"].as_str()).collect();
    assert_eq!(paths, ["Cargo.lock", "tools/requirements.txt"]);
    repo.runner(&["loop"]).ok();
    let rerun = repo.runner(&["verify", "--rerun"]).ok().stdout;
    let differences: Vec<&str> = rerun.lines().filter(|line| line.contains(" environment=")).collect();
    assert_eq!(
        differences,
        [
            "rerun=1 environment=\"Cargo.lock: changed since the start\"",
            "rerun=1 environment=\"web/yarn.lock: added since the start\"",
        ]
    );
}
