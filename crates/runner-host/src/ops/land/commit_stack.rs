//! The commits that `runner land` makes, and whether a branch has them already.

use runner_core::commit_message::{LandedOrigin, grep_pattern, landed_message};
use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::model::object_id::{BranchName, CommitId};
use runner_core::model::tree::{Selection, Tree, select};
use runner_core::step::Outcome;
use runner_core::text::one_line;

use super::{
    ExistingLanding, LandBase, LandError, LandRequest, LandStyle, LandTarget, LandedConfig, LandedTask,
};
use crate::error::Error;
use crate::git::{Git, RebaseResult, TreeEntry, lossy};
use crate::repo::documents::first_paths;
use crate::view::run_view::{IterationView, RunView};

/// The subject of the commit with the configuration.
const CONFIG_TITLE: &str = "Configure runner";

/// A task with the commit of the run in which it passed.
pub(super) struct PassedTask {
    pub(super) landed: LandedTask,
    pub(super) commit: CommitId,
}

/// Builds the commits on top of the commit that the run started from.
#[derive(Clone, Copy)]
pub(super) struct CommitStack<'a> {
    pub(super) git: &'a Git,
    pub(super) run: &'a RunId,
    pub(super) base: &'a CommitId,
    pub(super) view: &'a RunView,
    pub(super) goal: &'a str,
}

impl CommitStack<'_> {
    /// The passed tasks, oldest first.
    pub(super) fn tasks(&self) -> Result<Vec<PassedTask>, Error> {
        let view = self.view;
        let mut tasks = Vec::new();
        let mut tree = self.git.tree_of(self.base)?;
        for iteration in view.iterations.iter().filter(|it| it.outcome == Some(Outcome::Passed)) {
            let new_tree = self.git.tree_without_runner(&iteration.commit, self.base)?;
            let has_changes = new_tree != tree;
            tree = new_tree;
            let landed = landed_task(iteration, view.tree.as_ref(), has_changes);
            tasks.push(PassedTask { landed, commit: iteration.commit.clone() });
        }
        if tasks.iter().any(|task| task.landed.has_changes) {
            Ok(tasks)
        } else {
            Err(LandError::NothingPassed(self.run.clone()).into())
        }
    }

    /// The tip of the branch to create, if it has the landing of these tasks. Refuses a branch with anything else.
    pub(super) fn existing_landing(
        &self,
        tasks: &[PassedTask],
        branch: &str,
        onto: &LandBase,
        request: &LandRequest,
    ) -> Result<Option<CommitId>, Error> {
        if request.target == LandTarget::BaseBranch {
            return Ok(None);
        }
        let Some(tip) = self.git.branch_tip(&BranchName::new(branch))? else { return Ok(None) };
        let Some(landed) = self.landed_commit(tasks, &tip)? else {
            return Err(LandError::BranchExists(branch.to_owned()).into());
        };
        if request.existing == ExistingLanding::Refused {
            return Err(self.already_landed(branch).into());
        }
        if self.git.is_ancestor(landed.as_str(), onto.tip.as_str())? {
            return Err(self.already_landed(&onto.branch).into());
        }
        Ok(Some(tip))
    }

    /// The commit before `tip` that has the last of the work. Tasks without changes may have no commit of their own.
    fn landed_commit(&self, tasks: &[PassedTask], tip: &CommitId) -> Result<Option<CommitId>, Error> {
        let mut args = ["rev-list", "-1", "--extended-regexp"].map(str::to_owned).to_vec();
        for task in tasks.iter().rev() {
            args.push(format!("--grep={}", grep_pattern::landed_from(task.commit.as_str())));
            if task.landed.has_changes {
                break;
            }
        }
        args.push(tip.to_string());
        Ok(CommitId::new(lossy(&self.git.call(&args).run()?)).ok())
    }

    fn already_landed(&self, branch: &str) -> LandError {
        LandError::AlreadyLanded { run: self.run.clone(), branch: branch.to_owned() }
    }

    /// Stores the commits on top of a branch, and returns the last one.
    pub(super) fn built_on(
        &self,
        onto: &LandBase,
        tasks: &[PassedTask],
        request: &LandRequest,
    ) -> Result<CommitId, Error> {
        let run_tip = &self.view.target.tip;
        let last = self.commit(tasks, request.style)?;
        let tip = match self.rebased(&last, &onto.tip)? {
            RebaseResult::Done(tip) => tip,
            // The user merged the base branch into the run's and resolved the conflicts there: that result is landed.
            RebaseResult::Conflict(_)
                if complete_tip(self.view).is_some()
                    && self.git.is_ancestor(onto.tip.as_str(), run_tip.as_str())? =>
            {
                CommitStack { base: &onto.tip, ..*self }.squashed(tasks)?
            }
            RebaseResult::Conflict(paths) => {
                let (paths, _) = first_paths(&paths.into_iter().collect::<Vec<_>>());
                let (run, branch) = (self.run.clone(), onto.branch.clone());
                return Err(LandError::Conflict { run, branch, paths }.into());
            }
        };
        if self.git.tree_of(&tip)? == self.git.tree_of(&onto.tip)? {
            return Err(self.already_landed(&onto.branch).into());
        }
        match (request.config, tasks.last()) {
            (LandedConfig::OwnCommit, Some(last)) => with_config(self.git, &tip, run_tip, &self.origin(last)),
            (LandedConfig::LeftOut, _) | (LandedConfig::OwnCommit, None) => Ok(tip),
        }
    }

    /// Stores the commits on top of the one before the run, and returns the last one.
    fn commit(&self, tasks: &[PassedTask], style: LandStyle) -> Result<CommitId, Error> {
        if style == LandStyle::Squash {
            return self.squashed(tasks);
        }
        let mut parent = self.base.clone();
        for task in tasks.iter().filter(|task| task.landed.has_changes) {
            let message = landed_message(&task.landed.title, &task.landed.summary, &self.origin(task));
            parent = self.store(&task.commit, &parent, &message)?;
        }
        if let (Some(tip), Some(last)) = (complete_tip(self.view), tasks.last()) {
            let tree = self.git.tree_without_runner(tip, self.base)?;
            if tree != self.git.tree_of(&parent)? {
                let title = format!("Further changes on {}", self.run.branch());
                let message = landed_message(&title, "", &self.origin(last));
                return self.git.store_commit(&tree, &parent, &message);
            }
        }
        Ok(parent)
    }

    /// The commits up to `last` on top of another commit.
    fn rebased(&self, last: &CommitId, onto: &CommitId) -> Result<RebaseResult, Error> {
        if onto == self.base {
            return Ok(RebaseResult::Done(last.clone()));
        }
        let scratch = self.git.paths().private().join("land");
        self.git.rebase_in_scratch(&scratch, self.base, last, onto)
    }

    fn squashed(&self, tasks: &[PassedTask]) -> Result<CommitId, Error> {
        let last = tasks.last().ok_or_else(|| LandError::NothingPassed(self.run.clone()))?;
        let list: Vec<String> =
            tasks.iter().map(|task| format!("- {}", one_line(&task.landed.title))).collect();
        let message = landed_message(self.goal, &list.join("\n"), &self.origin(last));
        self.store(complete_tip(self.view).unwrap_or(&last.commit), self.base, &message)
    }

    fn origin(&self, task: &PassedTask) -> LandedOrigin {
        LandedOrigin { run: self.run.clone(), iteration: task.landed.iteration, commit: task.commit.clone() }
    }

    fn store(&self, work: &CommitId, parent: &CommitId, message: &str) -> Result<CommitId, Error> {
        let tree = self.git.tree_without_runner(work, self.base)?;
        self.git.store_commit(&tree, parent, message)
    }
}

/// The last commit of a complete run, which may end with changes of the user's own.
pub(super) fn complete_tip(view: &RunView) -> Option<&CommitId> {
    let is_complete = view.tree.as_ref().is_some_and(|tree| select(tree) == Selection::Complete);
    is_complete.then_some(&view.target.tip)
}

fn landed_task(iteration: &IterationView, tree: Option<&Tree>, has_changes: bool) -> LandedTask {
    let node = iteration.node().cloned();
    let path = node.as_ref().and_then(|node| tree?.path_to(node));
    let title = path.and_then(|path| path.last().map(|node| node.title.clone()));
    LandedTask {
        title: title.or_else(|| node.as_ref().map(ToString::to_string)).unwrap_or_default(),
        node,
        summary: iteration.body.clone(),
        iteration: iteration.iter,
        annotations: iteration.annotations.clone(),
        has_changes,
    }
}

/// Adds a commit with the run's configuration, unless `tip` has the same.
fn with_config(
    git: &Git,
    tip: &CommitId,
    run_tip: &CommitId,
    origin: &LandedOrigin,
) -> Result<CommitId, Error> {
    let is_config = |file: &TreeEntry| Doc::at(&file.path) == Some(Doc::Config);
    let Some(file) = git.runner_files(run_tip)?.into_iter().find(is_config) else { return Ok(tip.clone()) };
    match git.tree_with_file(tip, &file)? {
        Some(tree) => git.store_commit(&tree, tip, &landed_message(CONFIG_TITLE, "", origin)),
        None => Ok(tip.clone()),
    }
}
