//! `runner run "GOAL"`: plans a new run without writing anything, then starts it.

use std::path::{Path, PathBuf};

use runner_core::config::Config;
use runner_core::detect::ConfigRequest;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::goal::Goal;
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_core::runs::identity;
use runner_core::runs::start::{self, StartError, StartOptions};

use super::base_branch::{base_branch_of, likely_base};
use super::detect::{SetupProposal, propose_in};
use super::preflight::preflight_config;
use super::start::{StartResult, clean_status, refuse_old_git, runs_with_branches, start};
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, Head, RepoStatus};
use crate::paths::RUNNER_FOLDERS;
use crate::repo::documents::{docs_at_commit, read_doc, read_docs};
use crate::repo::locked_repo::LockedRepo;

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct NewRunRequest {
    pub goal: String,
    pub id: Option<String>,
    pub config: ConfigRequest,
    pub place: RunPlace,
}

/// Where a run works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPlace {
    /// In the work tree that the command was started in.
    Here,
    /// In a linked work tree: at this path, or beside the repository.
    Worktree(Option<PathBuf>),
}

/// A run that could be started.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub id: RunId,
    pub goal: String,
    pub setup: SetupProposal,
    /// The branch or commit that it starts from.
    pub base: String,
    /// The root of the work tree that it will work in.
    pub root: PathBuf,
    /// Whether that work tree must be created.
    needs_worktree: bool,
    /// What HEAD is at before the start.
    head: Head,
    /// What the runner's folder was before the start.
    folder: RunnerFolder,
}

/// The runner's folder in a work tree, before a run starts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunnerFolder {
    Missing,
    /// It holds nothing that git does not have, but ignored files.
    Committed,
    /// The user changed it, and the start commits that.
    Changed,
}

impl NewRun {
    pub fn config(&self) -> &Config {
        &self.setup.proposed.config
    }
}

/// Decides everything about a new run. Refuses whatever would stop it, and writes nothing.
pub fn plan_run(dir: &Path, request: &NewRunRequest) -> Result<NewRun, Error> {
    if request.goal.trim().is_empty() {
        return Err(StartError::GoalEmpty.into());
    }
    let git = Git::open(dir)?;
    refuse_old_git(&git)?;
    let status = clean_status(&git)?;
    let head = status.head.commit().ok_or(UserError::NoCommit)?;
    refuse_run_branch(&git, &status.head)?;
    refuse_lost_head(&git, &status.head)?;
    refuse_edited_goal(&git, &status.head, &request.goal)?;
    let id = match &request.id {
        Some(id) => chosen_id(&git, id)?,
        None => {
            let mut taken = runs_with_branches(&git.runner_branches()?)?;
            taken.extend(git.run_branches()?.into_iter().filter_map(|branch| RunId::new(branch.run).ok()));
            identity::from_goal(&request.goal, &taken)
                .or_else(|| identity::generate(head.as_str(), &taken))
                .ok_or(Error::Internal("no run id could be generated"))?
        }
    };
    let setup = propose_in(&git, &request.config)?;
    if !setup.proposed.has_guard {
        return Err(UserError::NoGuard.into());
    }
    preflight_config(&git, &setup.proposed.config)?;
    let (root, needs_worktree) = match &request.place {
        RunPlace::Here => (git.root().to_owned(), false),
        RunPlace::Worktree(path) => (new_worktree_path(&git, dir, path.as_deref(), &id)?, true),
    };
    let base = match &status.head {
        Head::Branch { name, .. } => name.to_string(),
        Head::Detached { commit } => commit.prefix(8).to_owned(),
        Head::Unborn => return Err(UserError::NoCommit.into()),
    };
    let folder = runner_folder(&git, &status);
    let goal = request.goal.clone();
    Ok(NewRun { id, goal, setup, base, root, needs_worktree, head: status.head, folder })
}

fn runner_folder(git: &Git, status: &RepoStatus) -> RunnerFolder {
    if git.root().join(RUNNER_DIR).symlink_metadata().is_err() {
        RunnerFolder::Missing
    } else if status.inside.is_empty() {
        RunnerFolder::Committed
    } else {
        RunnerFolder::Changed
    }
}

/// Refuses a commit that only HEAD leads to: when the run is checked out, the user would not find it again.
pub(crate) fn refuse_lost_head(git: &Git, head: &Head) -> Result<(), Error> {
    let Head::Detached { commit } = head else { return Ok(()) };
    match likely_base(git, commit)? {
        Some(_) => Ok(()),
        None => Err(UserError::DetachedHead(commit.prefix(8).to_owned()).into()),
    }
}

/// Starts a planned run: creates its branch, and its work tree if it has one of its own.
pub fn start_run(dir: &Path, run: &NewRun) -> Result<StartResult, Error> {
    let options = StartOptions {
        new_goal: Some(run.goal.clone()),
        id: Some(run.id.clone()),
        config: Some(run.setup.proposed.text.clone()),
        base: run.head.branch().cloned(),
        ..StartOptions::default()
    };
    if !run.needs_worktree {
        return start(dir, &options);
    }
    let git = Git::open(dir)?;
    let head = git.resolve("HEAD")?.ok_or(UserError::NoCommit)?;
    git.add_worktree(&run.root, &head)?;
    start(&run.root, &options).inspect_err(|_| {
        // The error that is returned matters more than one of the clean-up.
        let _ = git.remove_worktree(&run.root);
    })
}

/// Undoes a start after which no iteration began: HEAD is back where it was, and the run's branch is gone. Returns false, with
/// everything as it is, if the start committed changes of the user's.
pub fn undo_start(dir: &Path, run: &NewRun, started: &CommitId) -> Result<bool, Error> {
    let repo = LockedRepo::open(dir)?;
    let git = repo.git();
    let branch = run.id.branch();
    if git.branch_tip(&branch)?.as_ref() != Some(started) {
        return Ok(false);
    }
    if run.needs_worktree {
        git.remove_worktree(&run.root)?;
    } else {
        match &run.head {
            _ if run.folder == RunnerFolder::Changed => return Ok(false),
            Head::Branch { name, .. } => {
                git.call(&["switch", "--quiet", "--no-guess", name.as_str()]).run()?
            }
            Head::Detached { commit } => {
                git.call(&["switch", "--quiet", "--detach", commit.as_str()]).run()?
            }
            Head::Unborn => return Ok(false),
        };
        let leftover = match run.folder {
            RunnerFolder::Missing => git.root().join(RUNNER_DIR),
            RunnerFolder::Committed | RunnerFolder::Changed => git.paths().iterations().join(run.id.as_str()),
        };
        atomic::remove_any(&leftover)?;
    }
    git.remove_ref(&branch.reference(), started.as_str())?;
    Ok(true)
}

/// A run that was started in a linked work tree.
#[derive(Debug)]
pub struct WorktreeStart {
    pub root: PathBuf,
    pub started: StartResult,
}

/// Starts or resumes the run that GOAL.md names in a new linked work tree. What the user wrote under `.runner/` goes there
/// too, and stays here as it is.
pub fn start_in_worktree(
    dir: &Path,
    path: Option<&Path>,
    options: &StartOptions,
) -> Result<WorktreeStart, Error> {
    let git = Git::open(dir)?;
    refuse_old_git(&git)?;
    let status = clean_status(&git)?;
    let head = status.head.commit().ok_or(UserError::NoCommit)?;
    let docs = read_docs(&git)?;
    let goal = start::goal_file(&docs, options)?;
    let named = Goal::parse(&goal).map_err(StartError::from)?.id().cloned();
    let run = match named {
        Some(run) => run,
        None => identity::generate(head.as_str(), &runs_with_branches(&git.runner_branches()?)?)
            .ok_or(Error::Internal("no run id could be generated"))?,
    };
    if let Some(worktree) = git.worktree_holding(&run.branch())? {
        return Err(UserError::HeldElsewhere { branch: run.branch().to_string(), worktree }.into());
    }
    let root = new_worktree_path(&git, dir, path, &run)?;
    git.add_worktree(&root, head)?;
    let begin = || {
        let linked = Git::open(&root)?;
        for folder in RUNNER_FOLDERS {
            atomic::ensure_folder(&linked.root().join(folder))?;
        }
        let committed = docs_at_commit(&git, head)?;
        for (doc, bytes) in docs.iter().filter(|(doc, bytes)| committed.get(doc) != Some(bytes)) {
            atomic::write(&linked.paths().doc(*doc), bytes)?;
        }
        let base = status.head.branch().cloned();
        start(&root, &StartOptions { base, ..options.clone() })
    };
    match begin() {
        Ok(started) => Ok(WorktreeStart { root: root.clone(), started }),
        Err(error) => {
            // The error that is returned matters more than one of the clean-up.
            let _ = git.remove_worktree(&root);
            Err(error)
        }
    }
}

/// Refuses to mix a new run with the commits of another one.
fn refuse_run_branch(git: &Git, head: &Head) -> Result<(), Error> {
    let Some(run) = head.branch().and_then(|branch| RunId::of_branch(branch.as_str())) else { return Ok(()) };
    let base = match head.commit() {
        Some(tip) => base_branch_of(git, &run, tip)?,
        None => None,
    };
    Err(UserError::OnRunBranch { run, base }.into())
}

/// Refuses to replace a goal that the user has written and not started.
fn refuse_edited_goal(git: &Git, head: &Head, text: &str) -> Result<(), Error> {
    let Some(bytes) = read_doc(git, Doc::Goal)? else { return Ok(()) };
    let committed = match head.commit() {
        Some(commit) => docs_at_commit(git, commit)?.remove(&Doc::Goal),
        None => None,
    };
    let goal = Goal::parse(&bytes).map_err(StartError::from)?;
    let is_edited =
        goal.is_written() && committed.as_ref() != Some(&bytes) && goal.body().trim() != text.trim();
    if is_edited { Err(StartError::GoalTaken.into()) } else { Ok(()) }
}

fn chosen_id(git: &Git, id: &str) -> Result<RunId, Error> {
    let run =
        RunId::new(id).map_err(|error| UserError::BadRunId { id: id.to_owned(), why: error.to_string() })?;
    let exists = git.runner_branches()?.iter().any(|branch| branch.name == run.branch());
    if exists { Err(UserError::RunExists(run).into()) } else { Ok(run) }
}

/// The path of a new work tree: the user's, or `<repository>-<run>` beside the repository.
fn new_worktree_path(git: &Git, dir: &Path, wanted: Option<&Path>, run: &RunId) -> Result<PathBuf, Error> {
    let path = match wanted {
        Some(path) => dir.join(path),
        None => {
            let name =
                git.root().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            git.root().with_file_name(format!("{name}-{run}"))
        }
    };
    if path.symlink_metadata().is_ok() { Err(UserError::PathTaken(path).into()) } else { Ok(path) }
}
