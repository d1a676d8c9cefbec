//! The hidden argument that makes the binary a supervisor.

use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

#[test]
fn supervisor_entry_is_hidden_and_does_nothing_without_a_runner() {
    let sandbox = TestRepo::empty(RUNNER);
    assert!(!sandbox.runner(&["--help"]).ok().stdout.contains("supervise"));
    let ran = run(&mut sandbox.runner_command(&["__supervise"]));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(1), "", ""));
}
