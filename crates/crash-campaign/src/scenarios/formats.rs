//! The plain iteration in repositories with other storage formats, and in work trees with a part of the files.

use std::fs;

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
        FaultScenario { check: ABSENT, ..step("sparse", |runner| without(runner, CONE)) },
        FaultScenario { check: ABSENT, ..step("skip-worktree", |runner| without(runner, MARK)) },
        FaultScenario {
            check: ABSENT,
            ..step("partial-sparse", |runner| {
                let repo = without(runner, CONE);
                let missing = repo.git(&["rev-parse", "HEAD:out/file"]);
                repo.git(&["config", "remote.origin.promisor", "true"]);
                repo.git(&["config", "remote.origin.url", "/nonexistent"]);
                let (folder, name) = missing.split_at(2);
                // What only the remote has.
                fs::remove_file(repo.path(&format!(".git/objects/{folder}/{name}"))).expect("a loose object");
                repo
            })
        },
    ]
}

const CONE: &[&str] = &["sparse-checkout", "set", "--cone", "src"];
const MARK: &[&str] = &["update-index", "--skip-worktree", "out/file"];
/// What was not checked out is still not checked out, and git does not call it deleted.
const ABSENT: &str = "test ! -e out; git ls-files -t | grep -q '^S out/file$'";

/// A run in a work tree that lacks `out/file`.
fn without(runner: &str, way: &[&str]) -> TestRepo {
    let repo =
        builder(runner, "answer done").file("out/file", "not here\n").file("src/file", "here\n").start();
    add_belongings(&repo);
    repo.git(way);
    fs::remove_dir_all(repo.path("out")).unwrap_or_default();
    repo.runner(&["start"]).ok();
    repo
}

fn in_format(runner: &str, option: &str) -> TestRepo {
    let repo = TestRepo::empty(runner);
    repo.git(&["init", "-q", "-b", "main", option]);
    let repo = builder(runner, "answer done").start_in(repo);
    add_belongings(&repo);
    repo
}
