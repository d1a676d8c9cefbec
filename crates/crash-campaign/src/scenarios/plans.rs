//! Scenarios that interrupt a user's edit of a run.

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use super::FaultScenario;
use super::iterations::{WORK, builder};
use super::workspace::add_belongings;

pub(super) fn scenarios() -> Vec<FaultScenario> {
    let edit = |name, command| FaultScenario::new(name, started, command);
    vec![
        edit("node-add", &["node", "add", "root", "--title", "Another task"]),
        edit("note", &["note", "Use the copy in testdata/"]),
        edit("plan-import", &["plan", "import", "../plan.md"]),
        FaultScenario { runs: &["demo", "demo-1"], ..FaultScenario::new("fork", complete, &["fork", "1"]) },
        FaultScenario::new("answer", asked, &["answer", "1", "Port 8080"]),
        FaultScenario {
            resume: &[&["plan", "make"], &["loop"]],
            ..FaultScenario::new("plan-make", unplanned, &["plan", "make"])
        },
        FaultScenario {
            resume: &[&["plan", "approve"], &["loop"]],
            ..FaultScenario::new("plan-approve", not_approved, &["plan", "approve"])
        },
    ]
}

/// A run with a question of its agent.
fn asked(runner: &str) -> TestRepo {
    let agent =
        "echo '- Which port?' >> .runner/state/questions.md; [ \"$n\" = 1 ] && answer retry || answer done";
    let repo = builder(runner, agent).start();
    repo.runner(&["step"]).ok();
    add_belongings(&repo);
    repo
}

/// A run whose agent plans: first an invalid tree, then tasks with a check. What it changes besides is not kept, so it does its
/// work, which the ledger records, only afterwards.
fn unplanned(runner: &str) -> TestRepo {
    let plan = r#"
if [ "$RUNNER_MODE" = plan ]; then
    echo stray > stray; rm -f README.md
    if [ ! -e "$HOME/planned" ]; then touch "$HOME/planned"; echo '{' > "$RUNNER_TREE"; answer decomposed; exit; fi
    grep -q '"id": "a"' "$RUNNER_TREE" && { answer done; exit; }
    mkdir -p .runner/nodes/a
    printf '[[check]]\nname = "made"\ncommand = ["sh", "t/a.sh"]\nfiles = { "t/a.sh" = "a.sh" }\n' > .runner/nodes/a/checks.toml
    echo 'test -e src/work-1' > .runner/nodes/a/a.sh
    split; exit
fi"#;
    let repo = RunBuilder::new(runner)
        .agent(&format!("{plan}\n{WORK}\nanswer done"))
        .file("old", "old\n")
        .movable()
        .start();
    add_belongings(&repo);
    repo
}

fn not_approved(runner: &str) -> TestRepo {
    let repo = builder(runner, "answer done").config_tables("[plan]\napproval = \"required\"\n").start();
    add_belongings(&repo);
    repo
}

fn started(runner: &str) -> TestRepo {
    let repo = builder(runner, "answer done").start();
    let plan = "# Plan\n\n- [ ] First\n  - [ ] Inner\n- [x] Complete\n- [ ] Last\n";
    std::fs::write(repo.outside().join("plan.md"), plan).expect("a plan");
    add_belongings(&repo);
    repo
}

pub(super) fn complete(runner: &str) -> TestRepo {
    let split = "case $RUNNER_NODE_ID in root) split ;; *) answer done ;; esac";
    let repo = builder(runner, split).start();
    repo.runner(&["loop"]).ok();
    add_belongings(&repo);
    repo
}
