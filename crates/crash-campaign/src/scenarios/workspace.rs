//! The folder of one point: a copy of a scenario's repository, its home, its agent and the ledger.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::test_repo::{TestRepo, run, temporary_root};

use super::FaultScenario;

/// Scenarios that were prepared once, to be copied for every point.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    /// The `runner` binary under test.
    pub(crate) runner: String,
    templates: PathBuf,
}

impl Workspace {
    pub(crate) fn new(runner: String, templates: PathBuf) -> Self {
        Self { runner, templates }
    }

    pub(crate) fn templates(&self) -> &Path {
        &self.templates
    }

    /// A fresh copy of the scenario's repository in a folder of its own.
    pub(crate) fn copy(&self, scenario: &FaultScenario) -> TestRepo {
        let folder = tempfile::Builder::new().prefix("crash-").tempdir_in(temporary_root());
        let folder = folder.expect("a temporary folder");
        populate(folder.path(), &self.template(scenario));
        let repo = TestRepo::open(&self.runner, folder);
        let repo = scenario.enter_work_tree(repo);
        // The copies have other inode numbers and times than the index remembers. It may report files as changed.
        repo.try_git(&["update-index", "-q", "--refresh"]);
        repo
    }

    /// The prepared repository; prepares it if no process did so before.
    pub(crate) fn template(&self, scenario: &FaultScenario) -> PathBuf {
        let template = self.templates.join(scenario.name);
        if !template.exists() {
            let repo = (scenario.prepare)(&self.runner);
            let new = tempfile::tempdir_in(&self.templates).expect("a temporary folder").keep();
            populate(&new, repo.outside());
            // Two processes may prepare the same scenario: the first one wins.
            if std::fs::rename(&new, &template).is_err() {
                let _ = std::fs::remove_dir_all(&new);
            }
        }
        template
    }
}

/// Copies the content of a folder with all permissions and times.
pub(crate) fn populate(target: &Path, source: &Path) {
    let output = run(Command::new("cp").arg("-a").arg(source.join(".")).arg(target));
    assert_eq!(output.code, Some(0), "cp: {}", output.stderr);
}

/// Gives the user things that no command may touch: branches, a tag, a stash, ignored files, a hook and a setting.
pub(crate) fn add_belongings(repo: &TestRepo) {
    std::fs::create_dir_all(repo.outside().join("home/ledger")).expect("a ledger");
    repo.git(&["branch", "dev", "main"]);
    repo.git(&["tag", "v1", "main"]);
    let readme = repo.read("README.md");
    repo.write("README.md", "stashed by the user\n");
    repo.git(&["stash", "-q"]);
    assert_eq!(repo.read("README.md"), readme, "the stash restores the file");
    repo.write("ignored/user.env", "KEY=of-the-user\n");
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    repo.git(&["config", "user.nickname", "kept"]);
}
