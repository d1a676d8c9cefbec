//! The plain iteration in repositories with other storage formats.

use testkit::test_repo::TestRepo;

use super::FaultScenario;
use super::iterations::builder;
use super::workspace::add_belongings;

pub(super) fn scenarios() -> Vec<FaultScenario> {
    let step = |name, prepare| FaultScenario::new(name, prepare, &["step"]);
    vec![
        step("reftable", |runner| in_format(runner, "--ref-format=reftable")),
        step("sha256", |runner| in_format(runner, "--object-format=sha256")),
        step("split-index", |runner| {
            let repo = TestRepo::empty(runner);
            repo.git(&["init", "-q", "-b", "main"]);
            repo.git(&["config", "core.splitIndex", "true"]);
            let repo = builder(runner, "answer done").start_in(repo);
            add_belongings(&repo);
            repo
        }),
    ]
}

fn in_format(runner: &str, option: &str) -> TestRepo {
    let repo = TestRepo::empty(runner);
    repo.git(&["init", "-q", "-b", "main", option]);
    let repo = builder(runner, "answer done").start_in(repo);
    add_belongings(&repo);
    repo
}
