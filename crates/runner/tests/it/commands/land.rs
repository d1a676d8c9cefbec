//! `runner land`: what it makes, and that every refusal leaves everything as it was.

use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::fixtures::{json, on_terminal};

/// A complete run with two tasks, the second of which needed two attempts.
fn two_tasks() -> TestRepo {
    let agent = r#"case "$RUNNER_ITER" in
        0001) split ;;
        0002) echo a > a.txt; answer done "made a" ;;
        0003) echo bad > b.txt; answer retry "not yet" ;;
        *) echo b > b.txt; answer done "made b" ;;
    esac"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["loop"]).ok();
    sandbox
}

fn references(sandbox: &TestRepo) -> String {
    sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)"])
}

fn assert_refused(sandbox: &TestRepo, args: &[&str], text: &str) {
    let before = references(sandbox);
    let refused = sandbox.runner(&[&["land"], args].concat()).refused(2);
    assert!(refused.contains(text) && refused.contains("hint: "), "{text}: {refused}");
    assert_eq!(references(sandbox), before);
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn every_passed_task_becomes_one_commit_without_the_runners_files() {
    let sandbox = two_tasks();
    let tip = sandbox.git(&["rev-parse", "runner/demo"]);
    let landed = sandbox.runner(&["land"]).ok();
    assert_eq!(landed.value("branch"), Some("land/demo"));
    assert_eq!(sandbox.subjects("main..land/demo"), ["b", "a"]);
    let body = sandbox.git(&["log", "-1", "--format=%b", "land/demo"]);
    assert!(
        body.contains(&format!("made b\n\nRunner-Run: {RUN}\nRunner-Iteration: 4\nRunner-Commit: {tip}")),
        "{body}"
    );
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "land/demo"]), "a.txt\nb.txt");
    assert_eq!(
        sandbox.git(&["show", "land/demo:b.txt"]),
        "b",
        "the failed attempt is not a commit of its own"
    );
    assert_eq!(sandbox.git(&["rev-parse", "runner/demo"]), tip, "the proof stays");
    assert_refused(&sandbox, &[], "branch `land/demo` already exists");
    sandbox.runner(&["land", "--branch", "other", "--squash"]).ok();
    assert_eq!(sandbox.subjects("main..other"), ["Port it"]);
    assert_eq!(sandbox.git(&["rev-parse", "other^{tree}"]), sandbox.git(&["rev-parse", "land/demo^{tree}"]));
}

#[test]
fn base_branch_that_moved_is_rebased_onto() {
    let sandbox = two_tasks();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("theirs.txt", "theirs\n");
    sandbox.commit_all("their work");
    let landed = json(&sandbox.runner(&["land", "demo", "--json"]).ok());
    assert_eq!((landed["onto"].as_str(), landed["newer_commits"].as_u64()), (Some("main"), Some(1)));
    assert_eq!(sandbox.subjects("land/demo")[..3], ["b", "a", "their work"]);
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "land/demo"]), "a.txt\nb.txt");
    let author = sandbox.git(&["log", "-1", "--format=%an <%ae>", "land/demo"]);
    assert_eq!(author, sandbox.git(&["log", "-1", "--format=%an <%ae>", "runner/demo"]));
    assert_refused(&sandbox, &["demo", "--into", "main"], "branch `main` is checked out");
    sandbox.git(&["switch", "-q", "runner/demo"]);
    sandbox.runner(&["land", "--into", "main"]).ok();
    assert_eq!(sandbox.subjects("main")[..3], ["b", "a", "their work"]);
}

#[test]
fn conflict_leaves_everything_as_it_was() {
    let sandbox = two_tasks();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("a.txt", "theirs\n");
    sandbox.commit_all("their a");
    assert_refused(&sandbox, &["demo"], "branch `main` changed the same lines as the run");
    let refused = sandbox.runner(&["land", "demo"]).stderr;
    assert!(refused.contains("  a.txt\n"), "{refused}");
}

#[test]
fn result_with_a_failing_guard_is_not_landed() {
    let agent = "echo 1 > a.txt; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).guard("echo looked; test ! -e theirs.txt").start();
    sandbox.runner(&["loop"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("theirs.txt", "theirs\n");
    sandbox.commit_all("their work");
    assert_refused(&sandbox, &["demo"], "`sh guard.sh` does not succeed on the result: exit 1");
}

#[test]
fn forged_and_empty_runs_are_not_landed() {
    let sandbox = two_tasks();
    sandbox.git(&[
        "commit",
        "-q",
        "--amend",
        "--allow-empty",
        "-m",
        "chore(loop): run demo iter 0004 node a status=done guard=pass",
    ]);
    assert_refused(&sandbox, &[], "is not verified");
    let open = RunBuilder::new(RUNNER).agent("answer retry").start();
    open.runner(&["loop"]);
    assert_refused(&open, &[], "has no passed task with changes");
    assert_refused(&open, &["--onto", "nowhere"], "there is no branch `nowhere`");
    assert_refused(&open, &["--branch", "a..b"], "is not a valid branch name");
}

#[test]
fn unfinished_run_lands_what_passed() {
    let agent = r#"case "$RUNNER_NODE_ID" in
        root) split ;;
        a) echo a > a.txt; answer done "made a" ;;
        *) echo bad > b.txt; answer retry "not yet" ;;
    esac"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    let landed = json(&sandbox.runner(&["land", "--json"]).ok());
    assert_eq!(landed["complete"], false);
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "land/demo"]), "a.txt");
}

#[test]
fn pull_request_text_has_tasks_and_evidence() {
    let sandbox = two_tasks();
    let landed = json(&sandbox.runner(&["land", "--pr", "--json"]).ok());
    let request = &landed["pull_request"];
    assert_eq!(request["title"], "Port it");
    let body = request["body"].as_str().unwrap();
    for text in [
        "- **a**: made a",
        "- **b**: made b",
        "verified, all tasks passed",
        "`sh guard.sh` succeeds",
        "runner verify demo",
    ] {
        assert!(body.contains(text), "{text}: {body}");
    }
}

#[test]
fn screen_fits_80_columns() {
    let sandbox = two_tasks();
    let output = on_terminal(&sandbox, 80, "land");
    assert!(output.stdout.contains("git merge --ff-only land/demo"), "{}", output.stdout);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.stdout);
}
