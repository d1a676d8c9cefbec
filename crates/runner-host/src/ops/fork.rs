//! `runner fork`: starts a new run from an iteration of another one.

use std::path::Path;

use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::runs::fork;
use runner_core::runs::start::{DocSet, StartError, decode_run_state};

use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::Git;
use crate::ops::start::{clean_status, refuse_branches_below, refuse_old_git, runs_with_branches};
use crate::repo::documents::{commit_docs, docs_at_commit, refuse_dirty};
use crate::repo::journal::PublishEntry;
use crate::repo::locked_repo::LockedRepo;
use crate::repo::publish;
use crate::repo::recovery::Recovered;
use crate::room::KeptStore;

/// The iteration that a fork continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkBase {
    pub run: RunId,
    pub iter: IterationNumber,
    pub commit: CommitId,
}

/// What `runner fork` did.
#[derive(Debug)]
pub struct ForkResult {
    /// The new run, and its first commit.
    pub run: RunId,
    pub commit: CommitId,
    pub from: ForkBase,
    /// What an interrupted command had left.
    pub recovered: Option<Recovered>,
}

/// Creates a new run from an iteration and switches to it. Existing branches are not changed.
pub fn fork(dir: &Path, from: ForkBase, name: Option<RunId>) -> Result<ForkResult, Error> {
    let mut repo = LockedRepo::open(dir)?;
    let recovered = repo.take_recovered();
    let git = repo.git();
    refuse_old_git(git)?;
    let status = clean_status(git)?;
    refuse_dirty(&status.inside)?;
    let head = status.head.commit().ok_or(UserError::NoCommit)?;
    let branches = git.runner_branches()?;
    let runs = runs_with_branches(&branches)?;
    let run = match name {
        Some(name) if runs.contains(&name) => return Err(UserError::RunExists(name).into()),
        Some(name) => name,
        None => fork::generate(&from.run, from.iter, &runs)
            .ok_or_else(|| UserError::NoForkName(from.run.clone()))?,
    };
    refuse_branches_below(&branches, &run)?;
    let commit = store_commit(git, &from, &run)?;
    git.refuse_blocked_branch(&run.branch(), None, &commit)?;
    publish::publish_by_checkout(
        git,
        &PublishEntry { run: run.clone(), old_tip: None, new_tip: commit.clone(), from: head.clone() },
    )?;
    let config = Config::decode(&git.file_at(&commit, Doc::Config.path())?).unwrap_or_default();
    let kept = KeptStore::of_run(git, &run);
    kept.forget()?;
    kept.begin(git, &config.guard.keep)?;
    Ok(ForkResult { run, commit, from, recovered })
}

/// Stores the fork's first commit.
fn store_commit(git: &Git, from: &ForkBase, run: &RunId) -> Result<CommitId, Error> {
    let docs = fork_docs(&docs_at_commit(git, &from.commit)?, run)?;
    let index = git.paths().private_index("commit");
    let message = fork::message(run, &from.run, from.iter);
    let commit = commit_docs(git, &index, &from.commit, &docs, &message)?;
    atomic::remove_file(&index)?;
    failpoint::reach("fork.commit");
    Ok(commit)
}

fn fork_docs(docs: &DocSet, run: &RunId) -> Result<DocSet, Error> {
    let goal = docs.get(&Doc::Goal).ok_or(UserError::MissingDoc(Doc::Goal))?;
    let state = docs.get(&Doc::RunState).ok_or(UserError::MissingDoc(Doc::RunState))?;
    let state = decode_run_state(state)?;
    Ok(fork::documents(run, goal, &state).map_err(StartError::from)?)
}
