//! The commits of a run, read from its branch in any clone, without lock or write.

use runner_core::commit_message::CommitKind;
use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::RunState;
use runner_core::verify::{self, CommitRecord, Files, StepBack, step_back};

use super::git_source::GitSource;
use crate::error::{Error, UserError};
use crate::git::{CatFileBatch, Git, Head, LogEntry};

/// A run, or a part of one, that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSelector {
    pub run: RunId,
    /// The branch's name, or what the user typed.
    pub name: String,
    pub tip: CommitId,
    /// The commit before the first one, if the user named a range.
    pub after: Option<CommitId>,
}

/// A commit of a run, with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunCommit {
    pub(crate) logged: LogEntry,
    pub(crate) parents: Vec<CommitId>,
    pub(crate) time: i64,
    pub(crate) message: Vec<u8>,
}

impl RunCommit {
    pub(crate) fn record(&self) -> CommitRecord<'_> {
        CommitRecord {
            id: &self.logged.id,
            parents: &self.parents,
            message: &self.message,
            changes: &self.logged.changes,
        }
    }
}

/// The commits of a run, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunHistory {
    pub(crate) entries: Vec<RunCommit>,
    pub(crate) start: HistoryStart,
    /// The run of the oldest commit: the history of a fork goes back into the run that it continues.
    pub(crate) first_run: RunId,
}

/// Where a history begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryStart {
    /// With the run's first start.
    Start,
    /// After a commit that the user named.
    Named,
    /// Where this shallow clone ends.
    Shallow,
    /// With a commit of the run that no start precedes.
    Missing,
}

/// Finds a run, a commit of one, or a range of commits; without a name, the run on the current branch.
pub(crate) fn resolve(git: &Git, wanted: Option<&str>) -> Result<RunSelector, Error> {
    let mut batch = git.batch()?;
    let Some(wanted) = wanted else { return resolve_current(git, &mut batch) };
    if let Some((from, to)) = wanted.split_once("..") {
        let after = resolve_range_end(git, from)?;
        let tip = resolve_range_end(git, to.trim_start_matches('.'))?;
        let run = run_at(&mut batch, &tip)?.ok_or_else(|| UserError::NotARun(wanted.to_owned()))?;
        return Ok(RunSelector { run, name: wanted.to_owned(), tip, after: Some(after) });
    }
    let branches = git.run_branches()?;
    let short = wanted.strip_prefix("runner/").unwrap_or(wanted);
    if let Some(branch) = branches.iter().find(|branch| branch.run == short || branch.name == wanted) {
        let run = RunId::new(branch.run.as_str()).map_err(|_| UserError::NotARun(wanted.to_owned()))?;
        return Ok(RunSelector { run, name: branch.name.clone(), tip: branch.tip.clone(), after: None });
    }
    let runs = branches.into_iter().map(|branch| branch.run).collect();
    let no_such_run = || UserError::NoSuchRun { wanted: wanted.to_owned(), runs };
    let tip = git.resolve(wanted)?.ok_or_else(no_such_run)?;
    let run = run_at(&mut batch, &tip)?.ok_or_else(|| UserError::NotARun(wanted.to_owned()))?;
    Ok(RunSelector { run, name: wanted.to_owned(), tip, after: None })
}

/// One end of a range; HEAD if it is empty.
fn resolve_range_end(git: &Git, revision: &str) -> Result<CommitId, Error> {
    let revision = if revision.is_empty() { "HEAD" } else { revision };
    git.resolve(revision)?.ok_or_else(|| UserError::NoSuchRevision(revision.to_owned()).into())
}

/// The run that HEAD is on, or the only one in the repository.
fn resolve_current(git: &Git, batch: &mut CatFileBatch) -> Result<RunSelector, Error> {
    let head = git.head()?;
    if let (Some(tip), Some(run)) = (head.commit(), run_at_head(&head, batch)?) {
        let name = head.branch().map_or_else(|| "HEAD".to_owned(), ToString::to_string);
        return Ok(RunSelector { run, name, tip: tip.clone(), after: None });
    }
    let branches = git.run_branches()?;
    let mut runs: Vec<String> = branches.iter().map(|branch| branch.run.clone()).collect();
    runs.sort();
    runs.dedup();
    match (runs.len(), branches.into_iter().next()) {
        (1, Some(branch)) => {
            let run = RunId::new(branch.run).map_err(|_| UserError::NotARun(branch.name.clone()))?;
            Ok(RunSelector { run, name: branch.name, tip: branch.tip, after: None })
        }
        (0, _) | (_, None) => Err(UserError::NoRuns.into()),
        (_, Some(_)) => Err(UserError::WhichRun { runs }.into()),
    }
}

fn run_at_head(head: &Head, batch: &mut CatFileBatch) -> Result<Option<RunId>, Error> {
    match head {
        Head::Branch { name, .. } => Ok(RunId::of_branch(name.as_str())),
        Head::Detached { commit } => run_at(batch, commit),
        Head::Unborn => Ok(None),
    }
}

/// The run in the state of a commit.
pub(crate) fn run_at(batch: &mut CatFileBatch, commit: &CommitId) -> Result<Option<RunId>, Error> {
    let state = batch.object(&format!("{commit}:{}", Doc::RunState.path()))?;
    Ok(state.and_then(|bytes| RunState::decode(&bytes).ok()).and_then(|state| state.run_id))
}

/// The commits of a run, oldest first.
pub(crate) fn run_history(
    git: &Git,
    batch: &mut CatFileBatch,
    target: &RunSelector,
) -> Result<RunHistory, Error> {
    let mut source = GitSource { git, batch };
    let mut entries: Vec<RunCommit> = Vec::new();
    let mut start = if target.after.is_some() { HistoryStart::Named } else { HistoryStart::Missing };
    let mut run = target.run.clone();
    for logged in git.log(&target.tip, target.after.as_ref(), &[])? {
        let commit = run_commit(source.batch, logged?)?;
        let step = step_back(&mut source, commit.record(), &run)?;
        entries.push(commit);
        match step {
            StepBack::SameRun => {}
            StepBack::ForkedFrom(origin) => run = origin,
            StepBack::FirstStart if target.after.is_some() => {}
            StepBack::FirstStart => {
                start = HistoryStart::Start;
                break;
            }
        }
    }
    entries.reverse();
    if start == HistoryStart::Missing && git.is_shallow() {
        start = HistoryStart::Shallow;
    } else if start == HistoryStart::Missing {
        // The user's own commits before the run do not belong to it.
        let first = entries.iter().position(|entry| !is_user_commit(entry)).unwrap_or(entries.len());
        entries.drain(..first);
    }
    if entries.iter().all(is_user_commit) {
        return Err(UserError::NotARun(target.name.clone()).into());
    }
    Ok(RunHistory { entries, start, first_run: run })
}

fn run_commit(batch: &mut CatFileBatch, logged: LogEntry) -> Result<RunCommit, Error> {
    let Some(object) = batch.commit(&logged.id)? else {
        return Err(UserError::MissingObject(logged.id.to_string()).into());
    };
    Ok(RunCommit { logged, parents: object.parents, time: object.time, message: object.message })
}

fn is_user_commit(entry: &RunCommit) -> bool {
    matches!(CommitKind::parse(&entry.message), CommitKind::User { .. })
}

/// The files of a commit that `verify`, `replay` and `log` read.
pub(crate) fn files_at(git: &Git, batch: &mut CatFileBatch, commit: &CommitId) -> Result<Files, Error> {
    verify::files_at(&mut GitSource { git, batch }, commit)
}
