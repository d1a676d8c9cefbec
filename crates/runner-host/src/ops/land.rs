//! `runner land`: the work of a run as commits that a person would make, on top of the base branch, without `.runner/`.
//!
//! Everything is built as git objects first. Only after the audit, the rebase and the guard have succeeded is a branch
//! created or moved; until then nothing in the repository points to the new commits.

use std::path::Path;

use runner_core::commit_message::{LandedOrigin, landed_message};
use runner_core::config::Config;
use runner_core::detect::command_line;
use runner_core::layout::Doc;
use runner_core::model::goal::Goal;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::{BranchName, CommitId};
use runner_core::model::tree::{Selection, Tree, select};
use runner_core::step::Outcome;
use runner_core::text::one_line;
use runner_core::verify::Rule;
use thiserror::Error;

use super::base_branch::base_branch_of;
use super::guard_rerun::{CommitCheck, GuardRerunOutcome, GuardRerunner};
use super::run_list::{WorkSafety, work_safety};
use super::verify::verify;
use crate::error::{Error, UserError};
use crate::git::{Git, RebaseResult, TreeEntry, lossy};
use crate::repo::documents::{docs_at_commit, first_paths};
use crate::repo::locked_repo::LockedRepo;
use crate::repo::run_history::{RunSelector, resolve, run_history};
use crate::room::KeptFiles;
use crate::view::run_view::{IterationView, RunView};

/// How many violations of the audit an error lists.
const FINDINGS_MAX: usize = 5;

/// The subject of the commit with the configuration.
const CONFIG_TITLE: &str = "Configure runner";

/// What the user asked for.
#[derive(Clone, Debug, Default)]
pub struct LandRequest {
    /// The run; none is the one on the current branch.
    pub run: Option<String>,
    /// The branch to land on; none is the one that the run started from.
    pub onto: Option<String>,
    pub target: LandTarget,
    pub style: LandStyle,
    pub config: LandedConfig,
}

/// Whether the run's configuration is landed too, so that later runs start from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LandedConfig {
    #[default]
    LeftOut,
    OwnCommit,
}

/// The branch that gets the commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LandTarget {
    /// A new branch with a name from the run.
    #[default]
    NewBranch,
    Named(String),
    /// The base branch itself moves forward.
    BaseBranch,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LandStyle {
    #[default]
    CommitPerTask,
    Squash,
}

/// Why a run cannot be landed. Nothing was changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LandError {
    #[error("run `{0}` has no passed task with changes")]
    NothingPassed(RunId),
    #[error("run `{run}` is already landed on branch `{branch}`")]
    AlreadyLanded { run: RunId, branch: String },
    #[error("run `{run}` is not verified")]
    Unverified { run: RunId, findings: Vec<String> },
    #[error("the guard has not run on your own commits at the end of run `{run}`")]
    UncheckedCommits { run: RunId, commits: Vec<String> },
    #[error("the branch that run `{0}` started from is not known")]
    NoBase(RunId),
    #[error("branch `{branch}` changed the same lines as the run")]
    Conflict { run: RunId, branch: String, paths: Vec<String> },
    #[error("branch `{0}` already exists")]
    BranchExists(String),
    #[error("`{0}` is not a valid branch name")]
    BadBranchName(String),
    #[error("there is no branch `{0}`")]
    NoSuchBranch(String),
    #[error("branch `{branch}` is checked out in `{worktree}`")]
    CheckedOut { branch: String, worktree: String },
    #[error("`{command}` does not succeed on the result: {how}")]
    RedGuard { command: String, how: String, output: Vec<String> },
}

impl From<LandError> for Error {
    fn from(error: LandError) -> Self {
        UserError::Land(error).into()
    }
}

/// A task whose work is landed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedTask {
    pub node: Option<NodeId>,
    pub title: String,
    pub summary: String,
    pub iteration: IterationNumber,
    /// Notes of the runner on the iteration that passed it.
    pub annotations: Vec<String>,
    /// Whether it changed any file.
    pub has_changes: bool,
}

/// The new commits, complete and checked, to which no branch points yet.
pub struct PreparedLand {
    repo: LockedRepo,
    pub run: RunId,
    pub goal: String,
    pub tasks: Vec<LandedTask>,
    /// Whether every task of the run has passed.
    pub is_complete: bool,
    /// How many commits of the run were verified.
    pub verified: usize,
    pub base: LandBase,
    /// The branch to create, or the base branch if it moves itself.
    pub branch: String,
    pub tip: CommitId,
    config: Config,
}

/// The branch that the commits are based on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandBase {
    pub branch: String,
    tip: CommitId,
    /// How many commits it got since the run started.
    pub newer_commits: usize,
    /// Whether it has a configuration that runs start from.
    pub has_config: bool,
}

/// A landed commit and its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedCommit {
    pub commit: CommitId,
    pub subject: String,
}

/// Verifies the run, builds the commits and rebases them. Refuses, with everything as it was, if any of it fails.
pub fn prepare_land(dir: &Path, request: &LandRequest) -> Result<PreparedLand, Error> {
    let repo = LockedRepo::open(dir)?;
    let git = repo.git();
    let target = resolve(git, request.run.as_deref())?;
    let verified = verified_commits(dir, &target)?;
    let view = RunView::at(dir, Some(&target.name))?;
    let base = start_of(git, &target)?;
    let onto = match &request.onto {
        Some(onto) => onto.clone(),
        None => base_branch_of(git, &target.run, &target.tip)?
            .ok_or_else(|| LandError::NoBase(target.run.clone()))?,
    };
    let onto_tip = git
        .branch_tip(&BranchName::new(onto.as_str()))?
        .ok_or_else(|| LandError::NoSuchBranch(onto.clone()))?;
    let branch = chosen_branch(git, &target, &onto, &request.target)?;
    let docs = docs_at_commit(git, &target.tip)?;
    let goal = docs.get(&Doc::Goal).and_then(|bytes| Goal::parse(bytes).ok());
    let goal = goal.map(|goal| goal.summary().title).unwrap_or_default();
    let config = docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok()).unwrap_or_default();
    let stack = CommitStack { git, run: &target.run, base: &base };
    let is_complete = complete_tip(&view).is_some();
    let tasks = stack.tasks(&view)?;
    let last = stack.commit(&view, &tasks, &goal, request.style)?;
    let tip = match stack.rebased(&last, &onto_tip)? {
        RebaseResult::Done(tip) => tip,
        // The user merged the base branch into the run's and resolved the conflicts there: that result is landed.
        RebaseResult::Conflict(_)
            if is_complete && git.is_ancestor(onto_tip.as_str(), target.tip.as_str())? =>
        {
            CommitStack { base: &onto_tip, ..stack }.squashed(&view, &tasks, &goal)?
        }
        RebaseResult::Conflict(paths) => {
            let (paths, _) = first_paths(&paths.into_iter().collect::<Vec<_>>());
            return Err(LandError::Conflict { run: target.run, branch: onto, paths }.into());
        }
    };
    if git.tree_of(&tip)? == git.tree_of(&onto_tip)? {
        return Err(LandError::AlreadyLanded { run: target.run, branch: onto }.into());
    }
    let has_config = docs_at_commit(git, &onto_tip)?.contains_key(&Doc::Config);
    let tip = match (request.config, tasks.last()) {
        (LandedConfig::OwnCommit, Some(last)) => with_config(git, &tip, &target.tip, &stack.origin(last))?,
        (LandedConfig::LeftOut, _) | (LandedConfig::OwnCommit, None) => tip,
    };
    let newer_commits = git.commits_between(&base, &onto_tip)?.len();
    Ok(PreparedLand {
        run: target.run,
        goal,
        tasks: tasks.into_iter().map(|task| task.landed).collect(),
        is_complete,
        verified,
        base: LandBase { branch: onto, tip: onto_tip, newer_commits, has_config },
        branch,
        tip,
        config,
        repo,
    })
}

/// The commit before the run.
fn start_of(git: &Git, target: &RunSelector) -> Result<CommitId, Error> {
    let mut batch = git.batch()?;
    let history = run_history(git, &mut batch, target)?;
    let base = history.entries.first().and_then(|first| first.parents.first().cloned());
    Ok(base.ok_or_else(|| LandError::NoBase(target.run.clone()))?)
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

fn verified_commits(dir: &Path, target: &RunSelector) -> Result<usize, Error> {
    let audit = verify(dir, Some(&target.name), &mut |_| {})?;
    if audit.findings.is_empty() {
        return Ok(audit.commits);
    }
    let is_tip_unchecked = audit.findings.iter().any(|finding| finding.commit == target.tip.as_str());
    if is_tip_unchecked && audit.findings.iter().all(|finding| finding.rule == Rule::ForeignCommit) {
        let commits = audit.findings.iter().map(|finding| finding.found.clone()).collect();
        return Err(LandError::UncheckedCommits { run: target.run.clone(), commits }.into());
    }
    let findings = audit.findings.iter().take(FINDINGS_MAX).map(|finding| {
        let commit: String = finding.commit.chars().take(8).collect();
        one_line(&format!(
            "{commit} {}: expected {}, found {}",
            finding.rule, finding.expected, finding.found
        ))
    });
    Err(LandError::Unverified { run: target.run.clone(), findings: findings.collect() }.into())
}

/// The branch to create or to move. Refuses one that is in use.
fn chosen_branch(git: &Git, run: &RunSelector, onto: &str, target: &LandTarget) -> Result<String, Error> {
    let name = match target {
        LandTarget::BaseBranch => {
            return match git.worktree_holding(&BranchName::new(onto))? {
                Some(worktree) => Err(LandError::CheckedOut { branch: onto.to_owned(), worktree }.into()),
                None => Ok(onto.to_owned()),
            };
        }
        LandTarget::Named(name) => name.clone(),
        LandTarget::NewBranch => format!("land/{}", run.run),
    };
    if !git.is_branch_name(&name)? {
        return Err(LandError::BadBranchName(name).into());
    }
    match git.branch_tip(&BranchName::new(name.as_str()))? {
        Some(_) if work_safety(git, &run.tip)? == WorkSafety::Landed(name.clone()) => {
            Err(LandError::AlreadyLanded { run: run.run.clone(), branch: name }.into())
        }
        Some(_) => Err(LandError::BranchExists(name).into()),
        None => Ok(name),
    }
}

/// A task with the commit of the run in which it passed.
struct PassedTask {
    landed: LandedTask,
    commit: CommitId,
}

/// Builds the commits on top of the commit that the run started from.
#[derive(Clone, Copy)]
struct CommitStack<'a> {
    git: &'a Git,
    run: &'a RunId,
    base: &'a CommitId,
}

impl CommitStack<'_> {
    /// The passed tasks, oldest first.
    fn tasks(&self, view: &RunView) -> Result<Vec<PassedTask>, Error> {
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

    /// Stores the commits and returns the last one.
    fn commit(
        &self,
        view: &RunView,
        tasks: &[PassedTask],
        goal: &str,
        style: LandStyle,
    ) -> Result<CommitId, Error> {
        if style == LandStyle::Squash {
            return self.squashed(view, tasks, goal);
        }
        let mut parent = self.base.clone();
        for task in tasks.iter().filter(|task| task.landed.has_changes) {
            let message = landed_message(&task.landed.title, &task.landed.summary, &self.origin(task));
            parent = self.store(&task.commit, &parent, &message)?;
        }
        if let (Some(tip), Some(last)) = (complete_tip(view), tasks.last()) {
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

    fn squashed(&self, view: &RunView, tasks: &[PassedTask], goal: &str) -> Result<CommitId, Error> {
        let last = tasks.last().ok_or_else(|| LandError::NothingPassed(self.run.clone()))?;
        let list: Vec<String> =
            tasks.iter().map(|task| format!("- {}", one_line(&task.landed.title))).collect();
        let message = landed_message(goal, &list.join("\n"), &self.origin(last));
        self.store(complete_tip(view).unwrap_or(&last.commit), self.base, &message)
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
fn complete_tip(view: &RunView) -> Option<&CommitId> {
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

impl PreparedLand {
    /// The guard's command line on the result: the setup first, as in a fresh checkout.
    pub fn guard_line(&self) -> String {
        command_line(self.config.guard.command.words())
    }

    /// Runs the guard on the new commits, in a temporary clone.
    pub fn check_guard(&self, dir: &Path) -> Result<(), Error> {
        let check = CommitCheck { command: self.guard_words()?, config: self.config.clone(), pinned: None };
        let (outcome, output) = GuardRerunner::begin(dir)?.check(&self.tip, &check)?;
        let how = match outcome {
            GuardRerunOutcome::Ended(exit) if exit.to_string() == "0" => return Ok(()),
            GuardRerunOutcome::Ended(exit) => format!("exit {exit}"),
            GuardRerunOutcome::TimedOut => "it exceeded the time limit".to_owned(),
            GuardRerunOutcome::NotStarted(why) | GuardRerunOutcome::Rejected(why) => why,
            GuardRerunOutcome::Stopped(_) => "it was stopped".to_owned(),
        };
        Err(LandError::RedGuard { command: self.guard_line(), how, output }.into())
    }

    /// The guard as words; with a setup or kept folders, a shell line that prepares the clone first.
    fn guard_words(&self) -> Result<Vec<String>, Error> {
        let guard = &self.config.guard;
        let mut lines: Vec<String> = Vec::new();
        let files = KeptFiles::for_rerun(self.repo.git(), &self.run)?;
        for path in guard.keep.iter().map(|path| path.trim_end_matches('/')) {
            if let Some(kept) = files.path_of(path)? {
                // A copy: the guard may write to it.
                let words = ["cp", "-a", &kept.to_string_lossy(), path].map(str::to_owned);
                lines.push(command_line(&words));
            }
        }
        lines.extend(guard.setup.as_ref().map(|setup| format!("({})", command_line(setup.words()))));
        if lines.is_empty() {
            return Ok(guard.command.words().to_vec());
        }
        lines.push(command_line(guard.command.words()));
        Ok(vec!["sh".to_owned(), "-c".to_owned(), lines.join(" && ")])
    }

    /// Creates the branch, or moves the base branch forward. Returns the landed commits, oldest first.
    pub fn publish(&self) -> Result<Vec<LandedCommit>, Error> {
        let git = self.repo.git();
        let from = (self.branch == self.base.branch).then_some(&self.base.tip);
        git.move_branch(&self.branch, from, &self.tip)?;
        let commits = git.commits_between(&self.base.tip, &self.tip)?;
        Ok(commits
            .into_iter()
            .map(|(commit, subject)| LandedCommit { commit, subject: lossy(subject.as_bytes()) })
            .collect())
    }
}
