//! A run id is valid exactly if git accepts it as the last part of a branch name.
#![expect(clippy::disallowed_types, reason = "the test compares with git")]

use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use runner_core::model::id::RunId;

fn git_accepts(name: &str) -> bool {
    let git = Command::new("git").args(["check-ref-format", name]).output().expect("git");
    git.status.success()
}

#[test]
fn run_id_is_valid_if_git_accepts_the_branch() {
    let mut runner = TestRunner::deterministic();
    let strategy = prop_oneof![
        "[A-Za-z0-9._-]{1,4}",
        "[._-]{1,5}",
        "[a-z.]{0,4}(\\.lock|\\.LOCK|lock)",
        "[A-Za-z0-9._-]{120,128}",
    ];
    let examples = ["-", "--", "a.lock", ".lock", "a.lock.b", "a.lock.", "...", "a..b", "HEAD", "-a", "a-"];
    let generated = (0..300).map(|_| strategy.new_tree(&mut runner).expect("a string").current());
    for id in examples.iter().map(ToString::to_string).chain(generated) {
        let accepted = git_accepts(&format!("refs/heads/runner/{id}"));
        assert_eq!(RunId::new(id.as_str()).is_ok(), accepted, "{id:?}");
    }
}
