//! The GitHub action that verifies a run in a pull request: its script, with the real binary.

use std::fs;
use std::path::Path;

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::fixtures::completed;

const AGENT: &str = "echo work > work; answer done";

/// Runs the action's script in a folder, with these settings.
fn action(repo: &TestRepo, folder: &Path, settings: &[&str]) -> RunOutput {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/actions/verify/verify");
    let outside = repo.outside();
    let mut command = repo.command(script);
    command
        .current_dir(folder)
        .env("RUNNER", RUNNER)
        .env("RUNNER_TEMP", outside)
        .env("GITHUB_OUTPUT", outside.join("output"))
        .env("GITHUB_STEP_SUMMARY", outside.join("summary"));
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap();
        command.env(name, value);
    }
    run(&mut command)
}

fn file(repo: &TestRepo, name: &str) -> String {
    fs::read_to_string(repo.outside().join(name)).unwrap()
}

fn complete() -> TestRepo {
    completed(&RunBuilder::new(RUNNER).agent(AGENT).guard("test -e work"))
}

#[test]
fn a_verified_run_passes_with_its_report() {
    let repo = complete();
    action(&repo, repo.root(), &["RERUN=all"]).ok();
    assert_eq!(file(&repo, "output"), "verdict=verified\n");
    let summary = file(&repo, "summary");
    assert!(summary.starts_with("### Run: verified\n") && summary.contains("COMPLETE"), "{summary}");
    assert_eq!(file(&repo, "runner-report.md"), summary);
}

#[test]
fn a_forged_run_fails_with_the_violations_instead_of_the_report() {
    let repo = complete();
    repo.write("work", "other work\n");
    repo.git(&["add", "work"]);
    repo.git(&["commit", "-q", "--amend", "--no-edit"]);
    let output = action(&repo, repo.root(), &[]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(
        output.stdout.contains("::error title=runner verify::the run violates a rule"),
        "{}",
        output.stdout
    );
    assert_eq!(file(&repo, "output"), "verdict=violated\n");
    let summary = file(&repo, "summary");
    assert!(summary.contains("Do not merge it.") && summary.contains("candidate"), "{summary}");
}

#[test]
fn a_shallow_clone_fails_unless_partial_results_are_allowed() {
    let repo = complete();
    let place = repo.outside().join("shallow");
    let url = format!("file://{}", repo.root().display());
    repo.git(&["clone", "-q", "--depth", "1", "--branch", "runner/demo", &url, place.to_str().unwrap()]);
    let output = action(&repo, &place, &[]);
    assert_eq!(output.code, Some(5), "{}", output.stdout);
    assert!(output.stdout.contains("fetch the whole history"), "{}", output.stdout);
    action(&repo, &place, &["ALLOW_PARTIAL=true"]).ok();
    assert!(file(&repo, "output").ends_with("verdict=partial\n"));
}

#[test]
fn a_branch_without_a_run_is_an_error_with_the_fix() {
    let repo = TestRepo::with_commit(RUNNER);
    let output = action(&repo, repo.root(), &[]);
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    assert!(output.stdout.contains("fetch-depth: 0"), "{}", output.stdout);
}

#[test]
fn a_repository_without_a_run_fails_with_a_report_to_post() {
    let repo = TestRepo::with_commit(RUNNER);
    let output = action(&repo, repo.root(), &["RUN=nowhere"]);
    assert_eq!(output.code, Some(2), "{}", output.stdout);
    assert_eq!(file(&repo, "output"), "verdict=error\n");
    let report = file(&repo, "runner-report.md");
    assert!(report.contains("not verified") && report.contains("nowhere"), "{report}");
    assert_eq!(file(&repo, "summary"), report);
}

/// A complete run beside another one, landed on a branch that is checked out.
fn landed() -> TestRepo {
    let repo = complete();
    repo.runner(&["land", "--onto", "main"]).ok();
    repo.git(&["branch", "runner/other", "runner/demo"]);
    repo.git(&["switch", "-q", "land/demo"]);
    repo
}

#[test]
fn a_landed_branch_is_verified_with_the_run_that_its_commits_name() {
    let repo = landed();
    action(&repo, repo.root(), &[]).ok();
    assert_eq!(file(&repo, "output"), "verdict=verified\n");
}

#[test]
fn a_landed_branch_that_someone_changed_fails() {
    let repo = landed();
    repo.write("work", "other work\n");
    repo.git(&["commit", "-q", "--amend", "--no-edit", "-a"]);
    let output = action(&repo, repo.root(), &[]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(output.stdout.contains("other files than run demo"), "{}", output.stdout);
    repo.git(&["reset", "-q", "--hard", "HEAD@{1}"]);
    repo.write("more", "unseen\n");
    repo.git(&["add", "more"]);
    repo.git(&["commit", "-q", "-m", "Add more"]);
    let output = action(&repo, repo.root(), &["RUN=demo", "GITHUB_EVENT_NAME=pull_request"]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(file(&repo, "summary").contains("other files than the run"), "{}", output.stdout);
}
