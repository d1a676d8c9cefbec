//! The plain iteration in repositories with other storage formats, and in work trees with a part of the files.

use std::fs;

use testkit::test_repo::{TestRepo, run};

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
                let repo = TestRepo::empty(runner);
                let output = run(repo.command("sh").args(["-euc", PARTIAL_CLONE]));
                assert_eq!(output.code, Some(0), "a partial clone: {}", output.stderr);
                let repo = builder(runner, "answer done").start_in(repo);
                add_belongings(&repo);
                repo
            })
        },
    ]
}

/// A clone without the content of `out/file`.
const PARTIAL_CLONE: &str = r#"
git init -q -b main ../origin; cd ../origin; mkdir out src; echo 'not here' > out/file; echo here > src/file; git add -A
git -c user.name=User -c user.email=user@localhost commit -q -m origin; git config uploadpack.allowFilter true; cd ../work
git clone -q --filter=blob:none --sparse "file://$PWD/../origin" .; git sparse-checkout set --cone src"#;
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
