//! A run as its branch tells it: which commits are the run's, from any clone, without lock or write.

use std::collections::BTreeMap;

use runner_core::commit_message::CommitKind;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::RunId;
use runner_core::model::run_state::RunState;
use runner_core::runs::fork;
use runner_core::verify::{is_read, kept};

use crate::error::{Error, UserError};
use crate::git::{CatFileBatch, EntryMode, Git, Head, LogEntry};

/// A run, or a part of one, that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSelector {
    /// The run.
    pub run: RunId,
    /// How its tip was found: a branch's name, or what was typed.
    pub name: String,
    /// Its newest commit.
    pub tip: String,
    /// The commit before its first one, if somebody named it.
    pub after: Option<String>,
}

/// A commit of a run, with its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCommit {
    pub(crate) logged: LogEntry,
    pub(crate) parents: Vec<String>,
    pub(crate) time: i64,
    pub(crate) message: Vec<u8>,
}

/// The commits of a run, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunHistory {
    pub(crate) entries: Vec<RunCommit>,
    pub(crate) origin: HistoryStart,
    /// The run that the oldest of them belongs to: a fork's line goes back into the run that it goes on from.
    pub(crate) run: Option<RunId>,
}

/// Where a line of commits begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HistoryStart {
    /// With the run's first start.
    #[default]
    Start,
    /// Behind a commit that somebody named.
    Named,
    /// Where this clone ends.
    Shallow,
    /// At a commit of the run that no start comes before.
    Nowhere,
}

/// Finds what was asked for: nothing (the run here), a run, a commit of one, or a range of them.
pub(crate) fn resolve(git: &Git, wanted: Option<&str>) -> Result<RunSelector, Error> {
    let mut batch = git.batch()?;
    let Some(wanted) = wanted else { return resolve_here(git, &mut batch) };
    if let Some((from, to)) = wanted.split_once("..") {
        let name = |text: &str| if text.is_empty() { "HEAD".to_owned() } else { text.to_owned() };
        let unknown = |name: String| Error::from(UserError::NoSuchRevision(name));
        let after = git.resolve(&name(from))?.ok_or_else(|| unknown(name(from)))?;
        let to = name(to.trim_start_matches('.'));
        let tip = git.resolve(&to)?.ok_or_else(|| unknown(to))?;
        let run = run_at(&mut batch, &tip)?.ok_or_else(|| UserError::NotARun(wanted.to_owned()))?;
        return Ok(RunSelector { run, name: wanted.to_owned(), tip, after: Some(after) });
    }
    let branches = git.run_branches()?;
    let short = wanted.strip_prefix("runner/").unwrap_or(wanted);
    if let Some((run, name, tip)) = branches.iter().find(|(run, name, _)| run == short || name == wanted) {
        let run = RunId::new(run.as_str()).map_err(|_| UserError::NotARun(wanted.to_owned()))?;
        return Ok(RunSelector { run, name: name.clone(), tip: tip.clone(), after: None });
    }
    let runs = branches.into_iter().map(|(run, _, _)| run).collect();
    let no_such = || UserError::NoSuchRun { wanted: wanted.to_owned(), runs };
    let tip = git.resolve(wanted)?.ok_or_else(no_such)?;
    let run = run_at(&mut batch, &tip)?.ok_or_else(|| UserError::NotARun(wanted.to_owned()))?;
    Ok(RunSelector { run, name: wanted.to_owned(), tip, after: None })
}

/// The run that HEAD is on, or the only one there is.
fn resolve_here(git: &Git, batch: &mut CatFileBatch) -> Result<RunSelector, Error> {
    let head = git.head()?;
    if let (Some(tip), Some(run)) = (head.commit(), here(&head, batch)?) {
        let name = head.branch().unwrap_or("HEAD").to_owned();
        return Ok(RunSelector { run, name, tip: tip.to_owned(), after: None });
    }
    let mut branches = git.run_branches()?;
    let mut runs: Vec<String> = branches.iter().map(|(run, _, _)| run.clone()).collect();
    runs.dedup();
    runs.sort();
    runs.dedup();
    match (runs.as_slice(), branches.drain(..).next()) {
        ([only], Some((run, name, tip))) if *only == run => {
            let run = RunId::new(run.as_str()).map_err(|_| UserError::NotARun(name.clone()))?;
            Ok(RunSelector { run, name, tip, after: None })
        }
        ([], _) => Err(UserError::NoRuns.into()),
        _ => Err(UserError::WhichRun { runs }.into()),
    }
}

fn here(head: &Head, batch: &mut CatFileBatch) -> Result<Option<RunId>, Error> {
    let branch = head.branch().unwrap_or_default();
    match (RunId::of_branch(branch), head.commit()) {
        (Some(run), _) => Ok(Some(run)),
        (None, Some(commit)) if head.branch().is_none() => run_at(batch, commit),
        (None, _) => Ok(None),
    }
}

/// The run that a commit's state names.
pub(crate) fn run_at(batch: &mut CatFileBatch, commit: &str) -> Result<Option<RunId>, Error> {
    let state = batch.object(&format!("{commit}:{}", Doc::RunState.path()))?;
    Ok(state.and_then(|bytes| RunState::decode(&bytes).ok()).and_then(|state| state.run_id))
}

/// The commits of a target, oldest first.
pub(crate) fn line(git: &Git, batch: &mut CatFileBatch, target: &RunSelector) -> Result<RunHistory, Error> {
    let mut entries: Vec<RunCommit> = Vec::new();
    let mut origin = if target.after.is_some() { HistoryStart::Named } else { HistoryStart::Nowhere };
    let mut run = target.run.clone();
    git.walk(&target.tip, target.after.as_deref(), &[], &mut |logged| {
        let Some(object) = batch.commit(&logged.id)? else {
            return Err(UserError::MissingObject(logged.id).into());
        };
        let is_start = CommitKind::parse(&object.message) == CommitKind::Start { run_id: run.clone() };
        let parent = object.parents.first().cloned();
        let forked = fork::origin(&object.message).filter(|_| is_start);
        entries.push(RunCommit {
            logged,
            parents: object.parents,
            time: object.time,
            message: object.message,
        });
        if !is_start {
            return Ok(true);
        }
        let before = parent.map(|parent| run_at(batch, &parent)).transpose()?.flatten();
        let is_first = before.as_ref() != Some(&run);
        if let Some((from, _)) = forked.filter(|(from, _)| is_first && before.as_ref() == Some(from)) {
            run = from;
            return Ok(true);
        }
        if is_first && target.after.is_none() {
            origin = HistoryStart::Start;
        }
        Ok(!(is_first && origin == HistoryStart::Start))
    })?;
    entries.reverse();
    if origin == HistoryStart::Nowhere && git.is_shallow() {
        origin = HistoryStart::Shallow;
    } else if origin == HistoryStart::Nowhere {
        // The user's own history before the run is none of it.
        let is_own = |entry: &RunCommit| matches!(CommitKind::parse(&entry.message), CommitKind::User { .. });
        let first = entries.iter().position(|entry| !is_own(entry)).unwrap_or(entries.len());
        entries.drain(..first);
    }
    if entries.is_empty()
        || entries.iter().all(|entry| matches!(CommitKind::parse(&entry.message), CommitKind::User { .. }))
    {
        return Err(UserError::NotARun(target.name.clone()).into());
    }
    Ok(RunHistory { entries, origin, run: Some(run) })
}

/// The files of a commit that an audit or a listing reads.
pub(crate) fn files_at(
    git: &Git,
    batch: &mut CatFileBatch,
    commit: &str,
) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> {
    let mut files = BTreeMap::new();
    for entry in git.files_of(commit, RUNNER_DIR)? {
        let is_plain = matches!(entry.mode, EntryMode::File | EntryMode::Executable);
        if is_plain && is_read(&entry.path) {
            let bytes = batch.object(&entry.object)?.ok_or(UserError::MissingObject(entry.object))?;
            let kept = kept(&entry.path, bytes);
            files.insert(entry.path, kept);
        }
    }
    Ok(files)
}
