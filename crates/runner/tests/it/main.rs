//! The shipped binary, used as a person or a script would use it.
#![expect(clippy::unwrap_used, reason = "here a fault is a failed test")]

mod agents;
mod behaviour;
mod commands;
mod crash;
mod generated;
mod security;

use testkit::test_repo::TestRepo;

const RUNNER: &str = env!("CARGO_BIN_EXE_runner");

/// A repository with one commit, set up and with a goal written.
fn ready() -> TestRepo {
    let sandbox = TestRepo::with_commit(RUNNER);
    sandbox.runner(&["init"]).ok();
    sandbox.write(".runner/GOAL.md", GOAL);
    sandbox
}

/// A repository with a run.
fn started() -> TestRepo {
    let sandbox = ready();
    sandbox.runner(&["start"]).ok();
    sandbox
}

/// The run that is checked out is proved from its first start on, with nothing left unchecked.
fn assert_proved(sandbox: &TestRepo) {
    let told = sandbox.runner(&["verify"]);
    assert!(told.code == Some(0) && !told.stdout.contains("unchecked="), "{}\n{}", told.stdout, told.stderr);
}

const GOAL: &str = "# Port it\n\nFrom one to the other.\n\n## Acceptance\n\n- it runs\n";
