//! `runner land`: the work of a run as commits that a person would make, on top of the base branch, without `.runner/`.
//!
//! Everything is built as git objects first. Only after the audit, the rebase and the guard have succeeded is a branch
//! created or moved; until then nothing in the repository points to the new commits.

mod commit_stack;

use std::path::Path;

use runner_core::config::Config;
use runner_core::detect::command_line;
use runner_core::layout::Doc;
use runner_core::model::goal::Goal;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::{BranchName, CommitId};
use runner_core::text::one_line;
use runner_core::verify::Rule;
use thiserror::Error;

use self::commit_stack::{CommitStack, complete_tip};
use super::base_branch::base_branch_of;
use super::guard_rerun::{CommitCheck, GuardRerunOutcome, GuardRerunner};
use super::verify::verify;
use crate::error::{Error, UserError};
use crate::git::{Git, lossy};
use crate::repo::documents::docs_at_commit;
use crate::repo::locked_repo::LockedRepo;
use crate::repo::run_history::{RunSelector, resolve, run_history};
use crate::room::KeptFiles;
use crate::view::run_view::RunView;

/// How many violations of the audit an error lists.
const FINDINGS_MAX: usize = 5;

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
    pub existing: ExistingLanding,
}

/// What happens if the branch has the landing of this run already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExistingLanding {
    #[default]
    Refused,
    /// It is used as it is, for a pull request.
    Used,
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
    pub branch: LandBranch,
    config: Config,
}

/// The branch to create, or the base branch if it moves itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandBranch {
    pub name: String,
    /// Whether an earlier `runner land` made it. Then it stays as it is.
    pub has_landing: bool,
    /// The last of the landed commits.
    pub tip: CommitId,
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
    let start = start_of(git, &target)?;
    let onto = base_of(git, &target, request)?;
    let name = chosen_branch(git, &target, &onto.branch, &request.target)?;
    let docs = docs_at_commit(git, &target.tip)?;
    let goal = docs.get(&Doc::Goal).and_then(|bytes| Goal::parse(bytes).ok());
    let goal = goal.map(|goal| goal.summary().title).unwrap_or_default();
    let config = docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok()).unwrap_or_default();
    let stack = CommitStack { git, run: &target.run, base: &start, view: &view, goal: &goal };
    let tasks = stack.tasks()?;
    let existing = stack.existing_landing(&tasks, &name, &onto, request)?;
    let has_landing = existing.is_some();
    let tip = match existing {
        Some(tip) => tip,
        None => stack.built_on(&onto, &tasks, request)?,
    };
    let newer_commits = newer_commits(git, &start, &onto.tip, &tip)?;
    Ok(PreparedLand {
        is_complete: complete_tip(&view).is_some(),
        run: target.run,
        goal,
        tasks: tasks.into_iter().map(|task| task.landed).collect(),
        verified,
        base: LandBase { newer_commits, ..onto },
        branch: LandBranch { name, has_landing, tip },
        config,
        repo,
    })
}

/// The branch that the user named, or else the one that the run started from.
fn base_of(git: &Git, target: &RunSelector, request: &LandRequest) -> Result<LandBase, Error> {
    let branch = match &request.onto {
        Some(onto) => onto.clone(),
        None => base_branch_of(git, &target.run, &target.tip)?
            .ok_or_else(|| LandError::NoBase(target.run.clone()))?,
    };
    let tip = git
        .branch_tip(&BranchName::new(branch.as_str()))?
        .ok_or_else(|| LandError::NoSuchBranch(branch.clone()))?;
    let has_config = docs_at_commit(git, &tip)?.contains_key(&Doc::Config);
    Ok(LandBase { branch, tip, newer_commits: 0, has_config })
}

/// How many commits of the base branch, made since the run started, are below the landed ones.
fn newer_commits(git: &Git, start: &CommitId, onto: &CommitId, tip: &CommitId) -> Result<usize, Error> {
    let args = ["merge-base", onto.as_str(), tip.as_str()];
    let fork = lossy(&git.call(&args).run()?);
    let fork = CommitId::new(fork).map_err(|_| Error::GitOutput { command: args.join(" ") })?;
    Ok(git.commits_between(start, &fork)?.len())
}

/// The commit before the run.
fn start_of(git: &Git, target: &RunSelector) -> Result<CommitId, Error> {
    let mut batch = git.batch()?;
    let history = run_history(git, &mut batch, target)?;
    let base = history.entries.first().and_then(|first| first.parents.first().cloned());
    Ok(base.ok_or_else(|| LandError::NoBase(target.run.clone()))?)
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

/// The branch to create or to move. Refuses to move one that is checked out.
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
    Ok(name)
}

impl PreparedLand {
    /// The guard's command line on the result: the setup first, as in a fresh checkout.
    pub fn guard_line(&self) -> String {
        command_line(self.config.guard.command.words())
    }

    /// Runs the guard on the new commits, in a temporary clone.
    pub fn check_guard(&self, dir: &Path) -> Result<(), Error> {
        let check = CommitCheck { command: self.guard_words()?, config: self.config.clone(), pinned: None };
        let (outcome, output) = GuardRerunner::begin(dir)?.check(&self.branch.tip, &check)?;
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

    /// Creates the branch unless it has the landing, or moves the base branch forward. Returns the landed commits, oldest
    /// first.
    pub fn publish(&self) -> Result<Vec<LandedCommit>, Error> {
        let (git, branch) = (self.repo.git(), &self.branch);
        if !branch.has_landing {
            let from = (branch.name == self.base.branch).then_some(&self.base.tip);
            git.move_branch(&branch.name, from, &branch.tip)?;
        }
        let commits = git.commits_between(&self.base.tip, &branch.tip)?;
        Ok(commits
            .into_iter()
            .map(|(commit, subject)| LandedCommit { commit, subject: lossy(subject.as_bytes()) })
            .collect())
    }
}
