//! The oracle reports every kind of damage that the campaign looks for.

use std::fs;
use std::path::PathBuf;

use testkit::test_repo::TestRepo;

use super::{Belongings, judge, published_commits};
use crate::scenarios::{FaultScenario, find};

/// The `runner` binary in the folder of the built programs.
fn runner() -> String {
    let exe = std::env::current_exe().unwrap();
    let runner: PathBuf = exe.parent().and_then(|deps| deps.parent()).unwrap().join("runner");
    assert!(runner.exists(), "build it first: cargo test --workspace --no-run");
    runner.display().to_string()
}

/// A complete run and what belonged to the user before it.
struct CompleteRun {
    repo: TestRepo,
    scenario: FaultScenario,
    before: Belongings,
}

impl CompleteRun {
    fn new() -> Self {
        let scenario = find("step").unwrap();
        let repo = (scenario.prepare)(&runner());
        let before = Belongings::read(&repo, scenario.runs);
        repo.runner(&["loop"]).ok();
        Self { repo, scenario, before }
    }

    fn violations(&self) -> String {
        judge(&self.repo, &self.scenario, &self.before).join("\n")
    }
}

/// Asserts that this damage to a complete run is reported with these words.
fn assert_reported(expected: &str, damage: impl FnOnce(&TestRepo)) {
    let run = CompleteRun::new();
    damage(&run.repo);
    let violations = run.violations();
    assert!(violations.contains(expected), "no `{expected}` in: {violations}");
}

#[test]
fn a_complete_run_has_no_violation() {
    assert_eq!(CompleteRun::new().violations(), "");
}

#[test]
fn file_that_vanished_from_the_branch_is_reported() {
    assert_reported("no agent deleted `README.md`", |repo| {
        repo.git(&["rm", "-q", "README.md"]);
        repo.git(&["-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "without it"]);
    });
}

#[test]
fn damage_to_what_belongs_to_the_user_is_reported() {
    assert_reported("refs/heads/dev moved", |repo| {
        repo.git(&["branch", "-f", "dev", "HEAD"]);
    });
    assert_reported("refs/tags/v1 moved", |repo| {
        repo.git(&["tag", "-d", "v1"]);
    });
    assert_reported("the stashes changed", |repo| {
        repo.git(&["stash", "drop", "-q"]);
    });
    assert_reported("refs/heads/dev lost 1 of 1 entries", |repo| {
        repo.git(&["reflog", "expire", "--expire=now", "dev"]);
    });
    assert_reported("logs/HEAD lost", |repo| fs::remove_file(repo.path(".git/logs/HEAD")).unwrap());
    assert_reported("user.env is gone", |repo| fs::remove_file(repo.path("ignored/user.env")).unwrap());
    assert_reported("pre-commit changed", |repo| repo.write(".git/hooks/pre-commit", "other"));
    assert_reported(".git/config changed", |repo| {
        repo.git(&["config", "user.nickname", "other"]);
    });
}

#[test]
fn lost_work_of_the_agent_is_reported() {
    assert_reported("work-9 is lost", |repo| {
        fs::write(repo.outside().join("home/ledger/work-9"), "never committed\n").unwrap();
    });
    assert_reported("deletion of `old` is lost", |repo| {
        repo.write("old", "old\n");
        repo.commit_all("restore");
    });
}

#[test]
fn a_repository_that_is_not_sound_is_reported() {
    assert_reported("files are left", |repo| repo.write(".git/refs/heads/x.lock", ""));
    assert_reported("files are left", |repo| repo.write(".runner/prompts/.mine.md.tmp", ""));
    assert_reported("git status", |repo| repo.write("README.md", "changed\n"));
    assert_reported("`runner loop`: exit status: 2", |repo| repo.write("README.md", "changed\n"));
    assert_reported("expected number 2", |repo| {
        repo.git(&[
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "chore(loop): run demo iter 0001 node root status=done guard=pass",
        ]);
    });
    assert_reported("its parent is not the previous commit", |repo| {
        repo.git(&[
            "merge",
            "-q",
            "--no-ff",
            "--allow-unrelated-histories",
            "-m",
            "merge",
            &side_commit(repo),
        ]);
    });
    assert_reported("git fsck", |repo| {
        let blob = repo.git(&["rev-parse", "HEAD:README.md"]);
        let (folder, file) = blob.split_at(2);
        fs::remove_file(repo.path(&format!(".git/objects/{folder}/{file}"))).unwrap();
    });
    assert_reported("expected a branch of", |repo| {
        repo.git(&["checkout", "-q", "--detach"]);
    });
}

/// A commit beside the run's branch.
fn side_commit(repo: &TestRepo) -> String {
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    repo.git(&["commit-tree", "-m", "side", "-p", "main", &tree])
}

#[test]
fn a_commit_that_a_later_command_takes_back_is_reported() {
    let run = CompleteRun::new();
    let published = published_commits(&run.repo, run.scenario.runs);
    let violations = || published.iter().filter_map(|tip| tip.violation(&run.repo)).collect::<Vec<_>>();
    assert_eq!((published.len(), violations().len()), (1, 0));
    run.repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert!(violations().concat().contains("has it no more"), "{:?}", violations());
}

#[test]
fn a_forged_pass_is_reported() {
    let run = CompleteRun::new();
    let tree = run.repo.read(".runner/state/tree.json").replace("\"attempts\": 0", "\"attempts\": 1");
    run.repo.write(".runner/state/tree.json", tree);
    run.repo.git(&["add", "-A"]);
    let subject = "chore(loop): run demo iter 0002 node root status=done guard=fail";
    let message = format!("{subject}\n\nRunner-Attempt: free\n");
    run.repo.git(&["commit", "-q", "-m", &message]);
    let violations = run.violations();
    assert!(violations.contains("root has 1 attempts, 0 are charged"), "{violations}");
    assert!(violations.contains("root passed and was changed"), "{violations}");
    assert!(violations.contains("verify: exit Some(1)"), "{violations}");
}
