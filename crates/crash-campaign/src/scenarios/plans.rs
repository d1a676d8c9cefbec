//! Scenarios that interrupt a user's edit of a run.

use testkit::test_repo::TestRepo;

use super::iterations::builder;
use super::workspace::add_belongings;
use super::{DEMO, FaultScenario, LOOP};

pub(super) fn scenarios() -> Vec<FaultScenario> {
    let edit = |name, command| FaultScenario { name, prepare: started, command, resume: LOOP, runs: DEMO };
    vec![
        edit("node-add", &["node", "add", "root", "--title", "Another task"]),
        edit("note", &["note", "Use the copy in testdata/"]),
        edit("plan-import", &["plan", "import", "../plan.md"]),
        FaultScenario {
            name: "fork",
            prepare: complete,
            command: &["fork", "1"],
            resume: LOOP,
            runs: &["demo", "demo-1"],
        },
    ]
}

fn started(runner: &str) -> TestRepo {
    let repo = builder(runner, "answer done").start();
    let plan = "# Plan\n\n- [ ] First\n  - [ ] Inner\n- [x] Complete\n- [ ] Last\n";
    std::fs::write(repo.outside().join("plan.md"), plan).expect("a plan");
    add_belongings(&repo);
    repo
}

fn complete(runner: &str) -> TestRepo {
    let split = "case $RUNNER_NODE_ID in root) split ;; *) answer done ;; esac";
    let repo = builder(runner, split).start();
    repo.runner(&["loop"]).ok();
    add_belongings(&repo);
    repo
}
