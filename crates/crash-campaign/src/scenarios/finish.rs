//! Scenarios that interrupt what ends a run, and runs in linked work trees.

use testkit::run_builder::RUN;
use testkit::test_repo::TestRepo;

use super::FaultScenario;
use super::iterations::builder;
use super::plans::complete;
use super::workspace::add_belongings;

/// Whether it was interrupted or not, a run can be removed again or is gone.
const CLEANED: &str = r#"
"$RUNNER" clean demo --force --yes || ! git rev-parse -q --verify refs/heads/runner/demo
test -z "$(git for-each-ref refs/runner/demo)"
test ! -e .runner/iterations/demo"#;

/// No scratch work tree is left, and every branch that landed has all of the work.
const LANDED: &str = r#"
test "$(git worktree list | wc -l)" = 1
for branch in $(git for-each-ref --format='%(refname:short)' refs/heads/land refs/heads/again); do
    test -z "$(git diff --name-only "$branch" runner/demo -- . ':!.runner')"
done"#;

pub(super) fn scenarios() -> Vec<FaultScenario> {
    vec![
        FaultScenario {
            resume: &[&["land", "--branch", "again"], &["loop"]],
            check: LANDED,
            ..FaultScenario::new("land", complete, &["land"])
        },
        FaultScenario {
            runs: &["demo", "demo-3"],
            check: CLEANED,
            ..FaultScenario::new("clean", forked, &["clean", RUN, "--force", "--yes"])
        },
        FaultScenario { work_tree: "second", ..FaultScenario::new("linked-step", linked, &["step"]) },
        FaultScenario {
            resume: &[&["start"], &["start"], &["loop"]],
            work_tree: "second",
            ..FaultScenario::new("linked-start", linked_edited, &["start"])
        },
    ]
}

/// A complete run, and a fork of its last iteration that is checked out.
fn forked(runner: &str) -> TestRepo {
    let repo = complete(runner);
    repo.runner(&["fork", "3"]).ok();
    repo
}

/// A run in a linked work tree.
fn linked(runner: &str) -> TestRepo {
    let repo = builder(runner, "answer done").start();
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["worktree", "add", "-q", "../second", &format!("runner/{RUN}")]);
    let second = repo.outside().join("second");
    add_belongings(&repo);
    repo.at(second)
}

fn linked_edited(runner: &str) -> TestRepo {
    let repo = linked(runner);
    let config = repo.read(".runner/state/config.toml");
    repo.write(".runner/state/config.toml", format!("max_iterations = 77\n{config}"));
    repo
}
