//! Scenarios that interrupt `runner start`.

use testkit::run_builder::RUN;
use testkit::test_repo::TestRepo;

use super::iterations::builder;
use super::workspace::add_belongings;
use super::{FaultScenario, START_TWICE};

pub(super) fn scenarios() -> Vec<FaultScenario> {
    let start = |name, prepare| FaultScenario {
        resume: START_TWICE,
        ..FaultScenario::new(name, prepare, &["start"])
    };
    vec![
        start("start", |runner| {
            let repo = builder(runner, "answer done").start();
            take_back_start(&repo);
            add_belongings(&repo);
            repo
        }),
        start("start-edits", |runner| {
            let repo = builder(runner, "answer done").start();
            add_belongings(&repo);
            edit_configuration(&repo);
            repo
        }),
        start("switch", |runner| on_main_beside_run(runner, "ignored\n")),
        // The checkout replaces .gitignore, and in between the user's ignored files look like untracked ones.
        start("switch-ignore", |runner| on_main_beside_run(runner, "ignored\nlocal\n")),
    ]
}

/// Returns to `main` and deletes the run, but keeps its configuration, goal and tree as uncommitted files: what a user has before
/// the first start.
fn take_back_start(repo: &TestRepo) {
    repo.git(&["checkout", "-q", "--detach"]);
    repo.git(&["reset", "-q", "--soft", "main"]);
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    repo.git(&["reset", "-q"]);
    repo.git(&["branch", "-D", &format!("runner/{RUN}")]);
    let state = repo.read(".runner/state/run_state.json").replace(&format!("\"{RUN}\""), "null");
    repo.write(".runner/state/run_state.json", state);
}

fn edit_configuration(repo: &TestRepo) {
    let config = repo.read(".runner/state/config.toml");
    repo.write(".runner/state/config.toml", format!("max_iterations = 77\n{config}"));
}

/// On `main`, with commits of the user on it and a run on another branch.
fn on_main_beside_run(runner: &str, ignored: &str) -> TestRepo {
    let repo = builder(runner, "answer done").start();
    let config = repo.read(".runner/state/config.toml");
    let goal = repo.read(".runner/GOAL.md");
    repo.write("from-run", "on the run's branch\n");
    repo.commit_all("work of the run");
    repo.git(&["checkout", "-q", "main"]);
    repo.write(".gitignore", ignored);
    repo.write("README.md", "by a person\n");
    repo.write("from-main", "on main\n");
    repo.write(".runner/state/config.toml", config);
    repo.write(".runner/GOAL.md", goal);
    repo.write(".runner/.gitignore", "context/\niterations/\nlock\n");
    repo.commit_all("work on main");
    add_belongings(&repo);
    repo
}
