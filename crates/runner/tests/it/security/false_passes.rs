//! Attempts to get a pass without the work, or a pass on other files than the guard and the checks saw.
//!
//! Each is a session, or code that the guard runs, in a run whose guard needs `answer.sh` to print 42. No session commits such a
//! file honestly. Afterwards either no task has passed, or a fresh clone of the commit is green, and `runner verify` agrees.
#![cfg(target_os = "linux")]

pub(crate) mod attributes;
pub(crate) mod checks;
pub(crate) mod commands;
pub(crate) mod guard_code;
pub(crate) mod history;
pub(crate) mod names;
pub(crate) mod tools;
pub(crate) mod work_tree;

use std::fs;

use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{RunOutput, TestRepo, run, temporary_root};

use crate::RUNNER;

/// A try to pass.
struct Attempt {
    name: &'static str,
    /// The agent's script.
    session: &'static str,
}

const fn attempt(name: &'static str, session: &'static str) -> Attempt {
    Attempt { name, session }
}

/// The guard: tests that the agent may change, then what the task is about.
const GUARD: &str = "sh tests/all.sh\ntest \"$(sh answer.sh)\" = 42\n";

/// Keys of the configuration that every attempt has: the room, and the final check.
const ROOM: &str = "room = \"require\"\nfinal_check = true";

/// A started run whose agent is `attempt.sh` in the home folder, and whose tasks have this many attempts.
fn stage(builder: &RunBuilder, guard: &str, attempts: u32) -> TestRepo {
    builder
        .clone()
        .guard(guard)
        .guard_keys(ROOM)
        .keys(&format!("max_attempts_default = {attempts}\nmax_iterations = 6"))
        .file("answer.sh", "echo 00\n")
        .file("tests/all.sh", "true\n")
        .agent(". \"$HOME/attempt.sh\"")
        .movable()
        .start()
}

/// A stage on which sessions can write only where the sandbox lets them.
fn sandboxed(attempts: u32) -> TestRepo {
    stage(&RunBuilder::new(RUNNER).executor_keys(""), GUARD, attempts)
}

/// A stage on which sessions can do whatever the user can.
fn unconfined() -> TestRepo {
    stage(&RunBuilder::new(RUNNER), GUARD, 1)
}

/// A copy of a stage with this agent.
fn copy(stage: &TestRepo, session: &str) -> TestRepo {
    let folder = tempfile::tempdir_in(temporary_root()).unwrap();
    run(stage.command("cp").arg("-a").arg(stage.outside().join(".")).arg(folder.path())).ok();
    fs::write(folder.path().join("home/attempt.sh"), session).unwrap();
    TestRepo::open(RUNNER, folder)
}

/// Runs each attempt on a copy of the stage.
fn assert_none_passes(stage: &TestRepo, attempts: &[Attempt]) {
    for Attempt { name, session } in attempts {
        let repo = copy(stage, session);
        let main = repo.git(&["rev-parse", "main"]);
        let output = repo.runner(&["loop"]);
        assert_no_false_pass(&repo, name, &output);
        assert_eq!(repo.git(&["rev-parse", "main"]), main, "{name}");
    }
}

/// Whether any task of the run has passed.
fn has_passed(repo: &TestRepo) -> bool {
    repo.git(&["show", &format!("{BRANCH}:.runner/state/tree.json")]).contains("\"passes\": true")
}

/// The guard in a fresh clone, by a user with an empty home.
fn guard_in_clone(repo: &TestRepo) -> RunOutput {
    let clone = repo.outside().join("clone");
    let _ = fs::remove_dir_all(&clone);
    repo.git(&["clone", "-q", "-b", BRANCH, ".", &clone.display().to_string()]);
    let home = repo.outside().join("empty");
    fs::create_dir_all(&home).unwrap();
    run(repo.command("sh").arg("guard.sh").current_dir(&clone).env("HOME", home))
}

/// A pass counts only if others can repeat it.
fn assert_no_false_pass(repo: &TestRepo, name: &str, output: &RunOutput) {
    let shown = format!("{name}: {:?}\n{}{}", repo.outcomes(), output.stdout, output.stderr);
    assert!(output.code.is_some(), "{shown}");
    assert!(!repo.outcomes().is_empty(), "no session ran: {shown}");
    let verified = repo.runner(&["verify"]);
    assert_eq!(verified.code, Some(0), "{shown}{}{}", verified.stdout, verified.stderr);
    if !has_passed(repo) {
        assert_ne!(output.code, Some(0), "complete without a pass: {shown}");
        return;
    }
    let clone = guard_in_clone(repo);
    assert_eq!(clone.code, Some(0), "the guard fails in a clone: {shown}{}{}", clone.stdout, clone.stderr);
    let again = repo.runner(&["verify", "--rerun"]);
    assert_eq!(again.code, Some(0), "{shown}{}{}", again.stdout, again.stderr);
}
