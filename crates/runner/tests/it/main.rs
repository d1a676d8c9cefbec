//! The shipped binary, used as a person or a script would use it.
#![expect(clippy::unwrap_used, reason = "here a fault is a failed test")]

mod agents;
mod baseline;
mod blaming;
mod conformance;
mod corpus;
mod crash;
mod determinism;
mod forgery;
mod forking;
mod generated;
mod hardened;
mod hooks;
mod looking;
mod loop_basics;
mod loop_crash;
mod loop_manners;
mod means;
mod output;
mod pausing;
mod planning;
mod presets;
mod reading;
mod real_agents;
mod real_limits;
mod recorded;
mod sandbox;
mod scenes;
mod shapes;
mod start;
mod steered_forgery;
mod steering;
mod supervise;
mod ui;
mod vandals;
mod verify;
mod volume;

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
