//! `runner blame`, and the interruption of guard re-runs.

use std::path::PathBuf;
use std::process::Stdio;

use testkit::oracle::processes_of;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::fixtures::{redacted, terminal_bytes, visible_text};

/// Splits the root into six leaves. A session on the fourth leaf breaks the first one's work and answers `retry`.
const AGENT: &str = r#"
case "$RUNNER_NODE_ID" in
root) sed -i "s/\"children\": \[\]/\"children\": [$(child a 1), $(child b 2), $(child c 3), $(child d 4), $(child e 5)]/" "$RUNNER_TREE"
    answer decomposed ;;
a) echo good > parser; answer done ;;
d) echo bad > parser; answer retry ;;
*) echo "$RUNNER_ITER" > "work-$RUNNER_NODE_ID"; answer done ;;
esac
"#;

fn broken() -> TestRepo {
    let guard = "echo looking; ! grep bad parser";
    let sandbox = RunBuilder::new(RUNNER).agent(AGENT).guard(guard).keys("max_attempts_default = 3").start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3), "stuck at the fourth");
    sandbox
}

/// A folder for temporary clones, to check that none is left.
fn scratch(sandbox: &TestRepo) -> PathBuf {
    let scratch = sandbox.outside().join("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    scratch
}

fn blame(sandbox: &TestRepo, args: &[&str]) -> RunOutput {
    let scratch = scratch(sandbox);
    let before = sandbox.git(&["worktree", "list"]);
    let output = run(sandbox.runner_command(&[&["blame"], args].concat()).env("TMPDIR", &scratch));
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0, "nothing is left");
    assert_eq!(sandbox.git(&["worktree", "list"]), before);
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
    output
}

#[test]
fn blame_finds_the_iteration_that_broke_a_task() {
    let sandbox = broken();
    let output = blame(&sandbox, &["a"]).ok().stdout;
    let fifth = sandbox.git(&["log", "-1", "--format=%H", "--grep=iter 0005"]);
    let last = output.lines().last().unwrap().to_owned();
    assert!(last.starts_with("result=found steps="), "{output}");
    assert!(last.ends_with(&format!("iter=5 commit={fifth} what=\"#0005 d\" flaky=false")), "{output}");
    assert!(output.contains("file=parser added=1 removed=1\n"), "{output}");
    assert!(
        output.contains("step=\"#0002 a\"") && !output.contains("step=\"#0001"),
        "it begins where it passed: {output}"
    );
    let json = blame(&sandbox, &["--json"]).ok().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["result"], &json["culprit"]["iter"]), (&"found".into(), &5.into()));
    assert_eq!(json["output"], serde_json::json!(["looking", "bad"]));
    // A status line shows the running command and is erased.
    let bytes = terminal_bytes(&sandbox, 90, "blame a").ok().stdout;
    assert!(bytes.contains("▸ running the guard on #0007 d, 6 commits left"), "{bytes}");
    insta::assert_snapshot!("blame_90", redacted(&sandbox, &visible_text(&bytes)));
    let inner = blame(&sandbox, &["root"]).refused(2);
    assert!(inner.contains("`root` has not passed"), "{inner}");
}

#[test]
fn blame_runs_a_command_instead_of_the_guard() {
    let sandbox = broken();
    let output = blame(&sandbox, &["--from", "2", "--", "grep", "good", "parser"]).ok().stdout;
    assert!(output.contains("result=found") && output.contains("iter=5"), "{output}");
    let always = blame(&sandbox, &["--", "grep", "good", "parser"]);
    assert_eq!(always.code, Some(1));
    assert!(always.stdout.ends_with("result=always_failed steps=2\n"), "{}", always.stdout);
    let never = blame(&sandbox, &["--", "true"]).ok().stdout;
    assert!(never.ends_with("result=never_failed steps=1\n"), "{never}");
    let missing = blame(&sandbox, &["--", "no-such-program"]);
    assert!(missing.code == Some(1) && missing.stdout.contains("could not start"), "{}", missing.stdout);
    assert!(blame(&sandbox, &["nope"]).refused(2).contains("there is no task `nope`"));
}

#[test]
fn blame_uses_the_pinned_guard_and_finds_user_commits() {
    let sandbox = RunBuilder::new(RUNNER)
        .agent(r#"case "$RUNNER_NODE_ID" in root) split ;; *) echo 1 > work; answer done ;; esac"#)
        .guard("test ! -e wrong")
        .start();
    sandbox.runner(&["loop"]).ok();
    sandbox.write("wrong", "");
    sandbox.commit_all("mine, and wrong");
    // A guard weakened later does not count.
    sandbox.write("guard.sh", "true\n");
    sandbox.commit_all("weaker");
    sandbox.runner(&["start"]).ok();
    let output = blame(&sandbox, &["a"]).ok().stdout;
    assert!(
        output.contains("iter=none") && output.contains("what=\"user commit: mine, and wrong\""),
        "{output}"
    );
}

#[test]
fn blame_reports_a_flaky_command() {
    let sandbox = broken();
    let count = sandbox.outside().join("count");
    // Fails at first, and succeeds from the second run at the boundary on.
    let check = format!("echo >> {0}; test $(wc -l < {0}) -gt 4 || ! grep bad parser", count.display());
    let output = blame(&sandbox, &["--from", "3", "--", "sh", "-c", &check]).ok().stdout;
    assert!(output.contains("result=flaky") && output.contains("flaky=true"), "{output}");
}

#[test]
fn interrupted_blame_leaves_nothing_behind() {
    let sandbox = broken();
    stopped(&sandbox, &["blame", "--", "sh", "-c", "touch ../began; sleep 1000"]);
}

#[test]
fn interrupted_guard_rerun_leaves_nothing_behind() {
    let guard = "test -z \"$SLOW\" || { touch ../began; sleep 1000; }";
    let sandbox = RunBuilder::new(RUNNER).guard(guard).start();
    sandbox.runner(&["loop"]).ok();
    stopped(&sandbox, &["verify", "--rerun"]);
}

/// Runs a command, interrupts it while its check runs, and asserts that nothing is left.
fn stopped(sandbox: &TestRepo, args: &[&str]) {
    let scratch = scratch(sandbox);
    let mut command = sandbox.runner_command(args);
    command.env("TMPDIR", &scratch).env("SLOW", "1").stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_for("the check to begin", || {
        let folders = std::fs::read_dir(&scratch).unwrap().flatten();
        folders.map(|folder| folder.path().join("began")).any(|began| began.exists())
    });
    run(sandbox.command("kill").args(["-INT", &child.id().to_string()])).ok();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0, "no folder is left");
    wait_for("the end of every process", || processes_of(sandbox.outside()).is_empty());
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
}
