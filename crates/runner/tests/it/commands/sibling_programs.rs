//! `runner ui`, `watch`, `export` and `eval`: one file has them all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::fixtures::completed;

/// The runner alone in a folder, with links under the other names.
fn installed(repo: &TestRepo) -> PathBuf {
    let folder = repo.outside().join("bin");
    fs::create_dir(&folder).unwrap();
    fs::copy(RUNNER, folder.join("runner")).unwrap();
    for link in ["runner-ui", "runner-eval"] {
        symlink("runner", folder.join(link)).unwrap();
    }
    folder
}

fn call(repo: &TestRepo, program: &Path, args: &[&str]) -> RunOutput {
    run(repo.command(program).args(args).env("PATH", "/usr/bin:/bin"))
}

#[test]
fn one_file_contains_the_web_ui_and_the_evaluation() {
    let repo =
        completed(&RunBuilder::new(RUNNER).agent("echo work > work; answer done").guard("test -e work"));
    let folder = installed(&repo);
    fs::remove_file(folder.join("runner-ui")).unwrap();
    fs::remove_file(folder.join("runner-eval")).unwrap();
    let runner = folder.join("runner");
    let page = call(&repo, &runner, &["export", "html"]).ok();
    assert!(page.stdout.starts_with("<!doctype html>"), "{:.200}", page.stdout);
    let help = call(&repo, &runner, &["ui", "--", "--help"]).ok();
    assert!(help.stdout.contains("Show runs in a browser"), "{}", help.stdout);
    let refused = call(&repo, &runner, &["eval", "list"]).refused(1);
    assert!(refused.contains("could not read the cases"), "{refused}");
}

#[test]
fn a_link_runs_the_program_it_is_named_after() {
    let repo = TestRepo::with_commit(RUNNER);
    let folder = installed(&repo);
    for program in ["runner", "runner-ui", "runner-eval"] {
        let version = call(&repo, &folder.join(program), &["--version"]).ok();
        assert!(version.stdout.starts_with(&format!("{program} ")), "{program}: {}", version.stdout);
    }
}

#[test]
fn the_evaluation_in_the_same_file_runs_trials() {
    let repo = TestRepo::with_commit(RUNNER);
    let folder = installed(&repo);
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/cases");
    let (results, workspaces) = (repo.outside().join("results"), repo.outside().join("workspaces"));
    let mut command = repo.command(folder.join("runner"));
    command.args(["eval", "run", "adds-a-file", "--cases"]).arg(cases);
    command.arg("--results").arg(results).arg("--workspaces").arg(workspaces);
    let ran = run(&mut command).ok();
    assert!(ran.stdout.contains("success"), "{}", ran.stdout);
}
