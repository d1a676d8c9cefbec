//! What is interrupted: a repository just before one command, and what must work after it.

mod acceptance;
mod finish;
mod formats;
mod iterations;
mod plans;
mod starts;
mod workspace;

pub(crate) use iterations::WORK;
pub(crate) use workspace::{Workspace, populate};

use testkit::test_repo::TestRepo;

/// A repository before the command that a fault interrupts.
pub(crate) struct FaultScenario {
    pub(crate) name: &'static str,
    /// Builds the repository with this `runner` binary.
    pub(crate) prepare: fn(&str) -> TestRepo,
    /// The arguments of the interrupted command.
    pub(crate) command: &'static [&'static str],
    /// The commands that must succeed afterwards, without any help.
    pub(crate) resume: &'static [&'static [&'static str]],
    /// The run that must be checked out at the end. A fork may end on either of two.
    pub(crate) runs: &'static [&'static str],
    /// The folder of the work tree beside the home, `work` if it is not a linked one.
    pub(crate) work_tree: &'static str,
    /// A shell command in the work tree that must succeed at the end; `$RUNNER` is the binary.
    pub(crate) check: &'static str,
}

impl FaultScenario {
    /// A scenario of the run `demo` in the main work tree, without a check of its own. Afterwards `runner loop` must succeed.
    const fn new(
        name: &'static str,
        prepare: fn(&str) -> TestRepo,
        command: &'static [&'static str],
    ) -> Self {
        Self { name, prepare, command, resume: LOOP, runs: DEMO, work_tree: "work", check: "" }
    }

    /// Switches a copy of the scenario's folder from `work` to the scenario's work tree.
    pub(crate) fn enter_work_tree(&self, repo: TestRepo) -> TestRepo {
        if self.work_tree == "work" {
            return repo;
        }
        let work_tree = repo.root().with_file_name(self.work_tree);
        // Linked work trees name each other by absolute paths.
        repo.git(&["worktree", "repair", &work_tree.display().to_string()]);
        let repo = repo.at(work_tree);
        repo.try_git(&["update-index", "-q", "--refresh"]);
        repo
    }
}

const LOOP: &[&[&str]] = &[&["loop"]];
/// `start` twice, because the second one must find nothing to do.
const START_TWICE: &[&[&str]] = &[&["start"], &["start"], &["loop"]];
const DEMO: &[&str] = &["demo"];

/// All scenarios, in the order in which the campaign runs them.
pub(crate) fn all() -> Vec<FaultScenario> {
    let mut all = iterations::scenarios();
    all.extend(acceptance::scenarios());
    all.extend(starts::scenarios());
    all.extend(plans::scenarios());
    all.extend(finish::scenarios());
    all.extend(formats::scenarios());
    all
}

pub(crate) fn find(name: &str) -> Option<FaultScenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}
