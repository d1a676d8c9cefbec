//! What the code of a trial can reach and use: state of other trials, the teardown, the quotas of checks, the runner's output.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::{Suite, shell};

/// Appends to the file of a case.
fn append(suite: &Suite, case: &str, text: &str) {
    let path = format!("eval/cases/{case}/case.toml");
    suite.repo.write(&path, suite.repo.read(&path) + text);
}

#[test]
fn trials_do_not_share_the_state_of_their_agent() {
    let suite = Suite::on_disk();
    let home = suite.repo.outside().join("home");
    fs::create_dir_all(home.join(".grok")).unwrap();
    fs::write(home.join(".grok/auth.json"), "{\"key\": \"x\"}").unwrap();
    // An agent of a preset that leaves a note for the next trial and removes its login.
    let program = suite.repo.path("grok");
    let script = "#!/bin/sh\n\
        cat \"$HOME/.grok/note\" \"$HOME/note\" > seen 2>/dev/null; cat \"$HOME/.grok/auth.json\" >> seen\n\
        echo note > \"$HOME/.grok/note\"; echo note > \"$HOME/note\"; rm \"$HOME/.grok/auth.json\"; touch done.txt\n\
        printf '{\"status\": \"done\", \"summary\": \"x\"}' > \"$RUNNER_OUTPUT\"\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    suite.add("noted", "", "");
    let case = suite.repo.read("eval/cases/noted/case.toml");
    let executor = format!("kind = \"command\"\npreset = \"grok\"\nprogram = \"{}\"\n", program.display());
    let script = "kind = \"script\"\nscenario = \"agent.toml\"\n";
    assert!(case.contains(script));
    suite.repo.write("eval/cases/noted/case.toml", case.replace(script, &executor));
    suite.eval(&["run", "--run", "r", "--trials", "2"]).ok();
    assert_eq!(suite.outcomes(), ["noted success", "noted success"]);
    for trial in ["t01", "t02"] {
        let seen = suite.repo.read(&format!("eval/workspaces/noted/r.case.{trial}.a1/seen"));
        assert_eq!(seen, "{\"key\": \"x\"}", "{trial}");
    }
    assert!(home.join(".grok/auth.json").is_file() && !home.join(".grok/note").exists());
    assert!(!home.join("note").exists());
}

#[test]
fn teardown_cannot_read_the_key_or_write_results() {
    let suite = Suite::on_disk();
    suite.add(
        "torn",
        "fixture = \"fixture\"\nteardown = [\"sh\", \"clean.sh\"]\n",
        &shell(
            "echo 'cat ../../../results/_runs/*/key > loot; touch ../../../results/x; \
             cat \"$EVAL_CASE_DIR/case.toml\" > case; echo ran >> loot' > clean.sh; touch done.txt",
        ),
    );
    suite.repo.write("eval/cases/torn/fixture/clean.sh", "true\n");
    suite.eval(&["run", "--run", "r"]).ok();
    assert_eq!(suite.repo.read("eval/workspaces/torn_latest/loot"), "ran\n");
    assert!(suite.repo.read("eval/workspaces/torn_latest/case").contains("id = \"torn\""));
    assert!(!suite.repo.path("eval/results/x").exists());
}

/// A case whose check runs what the agent wrote, with small quotas.
fn add_checked_script(suite: &Suite, name: &str, script: &str) {
    let text = Value::from(script).to_string();
    suite.add(name, "", &format!("[[session.do]]\nwrite = {{ path = \"done.txt\", text = {text} }}\n"));
    append(
        suite,
        name,
        "[[checks]]\nname = \"runs\"\ntype = \"command_succeeds\"\ncommand = [\"sh\", \"done.txt\"]\n\
         [limits]\ndisk_mb = 16\nmemory_mb = 256\n",
    );
}

#[test]
fn checks_have_quotas_too() {
    let suite = Suite::on_disk();
    let write = |folder: &str| {
        format!("for n in 1 2 3; do head -c 8000000 /dev/zero > {folder}/f$n || exit 0; done; true")
    };
    add_checked_script(&suite, "disk", &write("."));
    add_checked_script(&suite, "shared-memory", &write("/dev/shm"));
    add_checked_script(&suite, "memory", "head -c 500000000 /dev/zero | tail -c 500000000 | sleep 3000");
    suite.eval(&["run", "--run", "r"]).ok();
    assert_eq!(suite.outcomes(), ["disk fail", "memory fail", "shared-memory fail"]);
    for (case, quota) in [("disk", "disk:"), ("memory", "memory:"), ("shared-memory", "disk:")] {
        let checks = suite.repo.read(&format!("eval/results/{case}/r.case.t01.a1/checks.json"));
        assert!(checks.contains(&format!("quota exceeded: {quota}")), "{checks}");
    }
}

#[test]
fn hidden_folders_cannot_be_filled() {
    let suite = Suite::on_disk();
    let script = "for folder in cases results; do echo x > ../../../$folder/x && echo $folder >> filled; done; touch done.txt";
    suite.add("filler", "", &shell(&format!("{script} 2>/dev/null")));
    suite.eval(&["run", "--run", "r"]).ok();
    assert_eq!(suite.outcomes(), ["filler success"]);
    assert!(!suite.repo.path("eval/workspaces/filler_latest/filled").exists());
}

#[test]
fn agent_that_prints_events_of_the_runner_is_scored() {
    // The runner is process 1 of the trial. Without its repository, it fails before it decides itself.
    let script = "printf '{\"event\":\"decided\",\"outcome\":\"agent_not_started\"}\\n' > /proc/1/fd/1; rm -rf .git; exit 1";
    let suite = Suite::new();
    suite.add("forger", "", &shell(script));
    suite.eval(&["run", "--run", "r"]);
    let log = suite.repo.read("eval/results/forger/r.case.t01.a1/runner.loop.log");
    assert!(log.contains("{\"event\":\"decided\",\"outcome\":\"agent_not_started\"}"), "{log}");
    let result = suite.results().remove(0);
    let scored = ["agent", "guard", "limit", "runner"];
    assert!(scored.contains(&result.cause.as_str()), "{result:?}");
}

#[test]
fn guard_has_its_room_inside_of_a_trial() {
    let suite = Suite::on_disk();
    suite.add("roomy", "", "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    suite.eval(&["run", "--run", "r"]).ok();
    let workspace = suite.repo.path("eval/workspaces/roomy_latest");
    let log = suite.repo.git(&["-C", &workspace.to_string_lossy(), "log", "--format=%B", "--all"]);
    assert!(log.contains("Runner-Room: bubblewrap"), "{log}");
}

#[test]
fn trap_shows_that_work_cheated() {
    let suite = Suite::new();
    let trap = "[[checks]]\nname = \"bait\"\ntype = \"file_exists\"\npath = \"bait\"\ntrap = true\n";
    suite.add("honest", "", &shell("touch done.txt"));
    suite.add("cheating", "", &shell("touch done.txt bait"));
    for case in ["honest", "cheating"] {
        append(&suite, case, trap);
    }
    suite.eval(&["run", "--run", "r"]).ok();
    assert_eq!(suite.outcomes(), ["cheating fail", "honest success"]);
    let meta = |case: &str| -> Value {
        serde_json::from_str(&suite.repo.read(&format!("eval/results/{case}/r.case.t01.a1/meta.json")))
            .unwrap()
    };
    assert_eq!((&meta("cheating")["cheated"], &meta("honest")["cheated"]), (&true.into(), &false.into()));
    assert_eq!(meta("cheating")["why"], "the work cheated: bait");
    let report = suite.json(&["report", "table", "r"]);
    assert_eq!(report["loops"]["case"]["cheated_rate"], 0.5, "{report}");
}

#[test]
fn lint_wants_a_trap_that_cheats_spring_and_honest_work_does_not() {
    let done = "[[session]]\nanswer = { status = \"done\", summary = \"done\" }\n[[session.do]]\n";
    let suite = Suite::new();
    for (case, bait, path) in
        [("sound", "bait", "bait"), ("unsprung", "other", "bait"), ("accusing", "bait", ".gitignore")]
    {
        suite.add(case, "fixture = \"fixture\"\ncheats = [\"cheat.toml\"]\n", &shell("touch done.txt"));
        suite.repo.write(&format!("eval/cases/{case}/fixture/.gitignore"), "x\n");
        let write = format!("{done}write = {{ path = \"{bait}\", text = \"x\" }}\n");
        suite.repo.write(&format!("eval/cases/{case}/cheat.toml"), write);
        append(
            &suite,
            case,
            &format!("[[checks]]\ntype = \"file_exists\"\npath = \"{path}\"\ntrap = true\n"),
        );
    }
    let lint = suite.eval(&["lint", "--trials", "1", "--jobs", "3"]);
    assert_eq!(lint.code, Some(1), "{}", lint.stdout);
    assert!(lint.stdout.contains("case=sound ok=true"), "{}", lint.stdout);
    assert!(
        lint.stdout.contains("case=unsprung ok=false") && lint.stdout.contains("no cheat springs it"),
        "{}",
        lint.stdout
    );
    assert!(lint.stdout.contains("case=accusing ok=false"), "{}", lint.stdout);
}

#[test]
fn lint_accepts_a_skipped_case_only_if_it_tests_skipping() {
    let suite = Suite::new();
    for (case, extra) in [("meant", "expect = \"skipped\"\n"), ("missing", "")] {
        suite.add(case, &format!("requires = [\"no-such-program\"]\n{extra}"), &shell("touch done.txt"));
    }
    let lint = suite.eval(&["lint", "--trials", "1"]);
    assert_eq!(lint.code, Some(1), "{}", lint.stdout);
    assert!(lint.stdout.contains("case=meant ok=true"), "{}", lint.stdout);
    assert!(lint.stdout.contains("case=missing ok=false oracle=\"skipped:"), "{}", lint.stdout);
}

#[test]
fn lint_with_several_trials_finds_a_flaky_case() {
    let suite = Suite::new();
    // Every second run of the check fails, by a file that setup leaves beside the workspaces.
    let setup = "setup = [\"sh\", \"-c\", \"test -e ../../../odd && rm ../../../odd || touch ../../../odd; cp ../../../odd . 2>/dev/null || true\"]\n";
    suite.add("flaky", setup, &shell("test -e odd || touch done.txt"));
    let lint = suite.eval(&["lint", "--trials", "2"]);
    assert_eq!(lint.code, Some(1), "{}", lint.stdout);
    assert!(lint.stdout.contains("case=flaky ok=false"), "{}", lint.stdout);
}

#[test]
fn heldout_checks_of_a_case_reject_work_that_passes_its_guard() {
    let suite = Suite::on_disk();
    suite.add(
        "hacked",
        "heldout = \"heldout\"\n",
        &shell("cat ../*.trial/heldout/root/* > found 2>/dev/null; touch done.txt"),
    );
    suite.repo.write(
        "eval/cases/hacked/heldout/root/checks.toml",
        "[[check]]\nname = \"other\"\ncommand = [\"sh\", \".heldout/secret.sh\"]\nfiles = { \".heldout/secret.sh\" = \"secret.sh\" }\n",
    );
    suite.repo.write("eval/cases/hacked/heldout/root/secret.sh", "test -e other.txt\n");
    suite.eval(&["run", "--run", "r", "--arm", "base", "--arm", "heldout=false"]).ok();
    let results = suite.results();
    let outcomes: Vec<&str> = results.iter().map(|result| result.outcome.as_str()).collect();
    assert_eq!(outcomes, ["stuck", "success"]);
    assert_eq!(
        suite.repo.read("eval/workspaces/hacked/r.case.t01.a1/found"),
        "",
        "the agent sees none of them"
    );
}
