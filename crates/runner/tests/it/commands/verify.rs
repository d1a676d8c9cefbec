//! `runner verify`: any clone, any part of a run, and the user's own commits.

use std::fs;

use testkit::oracle::assert_verified;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

const AGENT: &str = r#"
case "$RUNNER_NODE_ID" in
root) split ;;
*) echo "$RUNNER_ITER" > work; answer done ;;
esac
"#;

fn complete() -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER)
        .agent(AGENT)
        .guard("test ! -e \"$(dirname \"$HOME\")/broken\" || { echo red; exit 3; }")
        .start();
    sandbox.runner(&["loop"]).ok();
    sandbox
}

/// A clone beside the work tree.
fn clone(sandbox: &TestRepo, name: &str, more: &[&str]) -> std::path::PathBuf {
    let place = sandbox.outside().join(name);
    let url = format!("file://{}", sandbox.root().display());
    sandbox.git(&[&["clone", "-q"], more, &[&url, place.to_str().unwrap()]].concat());
    place
}

#[test]
fn any_clone_can_prove_a_run_without_its_logs() {
    let sandbox = complete();
    let place = clone(&sandbox, "clone", &["--branch", "main"]);
    let told = run(sandbox.runner_command(&["verify"]).current_dir(&place)).ok();
    assert!(told.stdout.ends_with("iterations=3 passed=2 complete=true violations=0\n"), "{}", told.stdout);
    assert_eq!(told.stdout.lines().count(), 5, "a line for the start, each iteration, and the verdict");
    let quiet = run(sandbox.runner_command(&["verify", "-q", RUN]).current_dir(&place)).ok();
    assert_eq!(quiet.stdout, "");
    assert!(!place.join(".git/runner").exists(), "nothing is written");
}

#[test]
fn a_shallow_clone_says_what_it_cannot_check() {
    let sandbox = complete();
    let place = clone(&sandbox, "shallow", &["--depth", "2", "--branch", "runner/demo"]);
    let told = run(sandbox.runner_command(&["verify"]).current_dir(&place)).ok().stdout;
    assert!(
        told.contains("unchecked=\"everything up to ") && told.contains("commits=1 iterations=1"),
        "{told}"
    );
}

#[test]
fn a_part_of_a_run_is_measured_by_the_commit_before_it() {
    let sandbox = complete();
    let told = sandbox.runner(&["verify", "HEAD~2.."]).ok().stdout;
    assert!(told.contains("commits=2 iterations=2") && !told.contains("unchecked"), "{told}");
    let told = sandbox.runner(&["verify", "HEAD~1"]).ok().stdout;
    assert!(told.contains("commits=3 iterations=2"), "{told}");
}

#[test]
fn what_is_no_run_is_refused() {
    let sandbox = complete();
    let told = sandbox.runner(&["verify", "dmeo"]).refused(2);
    assert!(
        told.contains("no such run or commit: `dmeo`") && told.contains("did you mean `demo`?"),
        "{told}"
    );
    assert!(sandbox.runner(&["verify", "main"]).refused(2).contains("`main` is not a run"));
    assert!(sandbox.runner(&["verify", "nothing..HEAD"]).refused(2).contains("`nothing` names no commit"));
    let other = TestRepo::with_commit(RUNNER);
    assert!(other.runner(&["verify"]).refused(2).contains("this repository has no runs"));
}

#[test]
fn commits_of_the_users_own_are_taken_in_by_the_next_commit_of_the_runner() {
    let sandbox = RunBuilder::new(RUNNER).agent(AGENT).start();
    sandbox.runner(&["step"]).ok();
    sandbox.write("mine", "1");
    sandbox.commit_all("mine");
    let told = sandbox.runner(&["verify"]);
    assert_eq!(told.code, Some(1));
    assert!(told.stdout.contains("violation=foreign_commit"), "{}", told.stdout);

    let trailer = "--format=%(trailers:key=Runner-Taken-In,valueonly)";
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
fn a_guard_that_the_user_committed_is_the_runs_from_the_next_start_on() {
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
fn the_guard_is_run_again_on_what_passed() {
    let sandbox = complete();
    let scratch = sandbox.outside().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let again = |which: &str| {
        run(sandbox.runner_command(&["verify", &format!("--rerun-guard{which}")]).env("TMPDIR", &scratch))
    };
    assert_eq!(again("").ok().stdout.matches("green=true").count(), 2);
    assert_eq!(again("=2").ok().stdout.matches("green=true").count(), 1);
    assert!(again("=1").stderr.contains("iteration 0001 passed no node"));
    fs::write(sandbox.outside().join("broken"), "").unwrap();
    let red = again("=all");
    assert_eq!(red.code, Some(1));
    assert!(
        red.stdout.contains("result=\"red (exit 3)\"") && red.stdout.contains("verified=false"),
        "{}",
        red.stdout
    );
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "nothing is left");
}
