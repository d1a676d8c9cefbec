//! The hidden word that makes the shipped binary a supervisor.

use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

#[test]
fn it_is_in_no_help_and_does_nothing_for_people() {
    let sandbox = TestRepo::empty(RUNNER);
    assert!(!sandbox.runner(&["--help"]).ok().stdout.contains("supervise"));
    let ran = run(&mut sandbox.runner_command(&["__supervise"]));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(1), "", ""));
}
