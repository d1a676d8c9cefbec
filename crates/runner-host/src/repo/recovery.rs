//! Crash recovery: the next command reads the journal and finishes what was interrupted, so that nothing is lost and the
//! user need not act.

use std::fs;
use std::path::PathBuf;

use runner_core::commit_message::CommitKind;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::step::{
    CompletedIteration, IterationMeta, LoadedRun, NextStep, Outcome, SessionResult, plan, resume,
};
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use super::journal::{self, IterationEntry, JournalEntry, JournalState, PublishEntry};
use super::publish::{self, RecoveredPublish};
use super::repo_guard::{GitAccess, SessionRef};
use super::unrecorded_commits;
use crate::agent::command;
use crate::clock::now_ms;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::Git;
use crate::iteration::event_log::EventLog;
use crate::iteration::guard::GUARD_LOG;
use crate::iteration::iteration_dir::{EventsFile, PROMPT};
use crate::iteration::load::load_commit;
use crate::iteration::program_runner::ProgramRunner;
use crate::iteration::recovered_session::{InterruptedSession, ResumedIteration, WorktreeOwner};
use crate::iteration::repo_world::RecoveryWorld;
use crate::ops::verify::verify;
use crate::repo::worktree::UserFiles;

#[derive(Debug)]
pub enum Recovered {
    /// A commit was being published.
    Publish(RecoveredPublish),
    /// An iteration was in progress.
    Iteration(Box<RecoveredIteration>),
}

/// The last recovery, stored for `runner status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryNote {
    pub run: String,
    /// The iteration, if one was interrupted.
    pub iter: Option<String>,
    /// The outcome of that iteration.
    pub outcome: Option<String>,
    /// The reference that stores a work tree which was neither the old nor the new one.
    pub saved: Option<String>,
    /// How many sessions in a row ended because the runner died, this one included.
    #[serde(default)]
    pub crashes_in_row: u32,
    /// When it was finished, in milliseconds since 1970.
    pub at_ms: u64,
}

/// How many sessions in a row may end with the runner before a loop stops: an agent may be what kills it.
const CRASHES_MAX: u32 = 3;

const NOTE_BYTES_MAX: u64 = 64 << 10;

impl RecoveryNote {
    /// The stored note, if it can be read.
    pub(crate) fn read(git: &Git) -> Option<Self> {
        let bytes = atomic::read(&git.paths().recovery(), NOTE_BYTES_MAX).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    /// Refuses to go on after every third session in a row that ended because the runner died.
    pub(crate) fn refuse_crash_loop(&self) -> Result<(), Error> {
        if self.crashes_in_row == 0 || !self.crashes_in_row.is_multiple_of(CRASHES_MAX) {
            return Ok(());
        }
        let iter = self.iter.clone().unwrap_or_default();
        Err(UserError::CrashLoop { crashes: self.crashes_in_row, iter }.into())
    }

    fn new(recovered: &Recovered, before: Option<&Self>) -> Self {
        match recovered {
            Recovered::Publish(publish) => Self {
                run: publish.run.to_string(),
                iter: None,
                outcome: None,
                saved: publish.saved.clone(),
                crashes_in_row: 0,
                at_ms: now_ms(),
            },
            Recovered::Iteration(recovered) => {
                let meta = &recovered.completed.transition.meta;
                Self {
                    run: meta.run_id.to_string(),
                    iter: Some(meta.iter.to_string()),
                    outcome: Some(meta.outcome.to_string()),
                    saved: recovered.saved.clone(),
                    crashes_in_row: if meta.outcome == Outcome::Interrupted {
                        before.map_or(0, |note| note.crashes_before(meta)) + 1
                    } else {
                        0
                    },
                    at_ms: now_ms(),
                }
            }
        }
    }
}

impl RecoveryNote {
    /// The crashes up to the iteration just before this one.
    fn crashes_before(&self, meta: &IterationMeta) -> u32 {
        let is_previous = |iter: &String| {
            iter.parse::<IterationNumber>().is_ok_and(|iter| iter.get() + 1 == meta.iter.get())
        };
        let is_in_row = self.run == meta.run_id.as_str() && self.iter.as_ref().is_some_and(is_previous);
        if is_in_row { self.crashes_in_row } else { 0 }
    }
}

/// Finishes what the journal records, if anything.
pub(super) fn recover(
    git: &Git,
    programs: &ProgramRunner,
    events: &mut EventLog<'_>,
) -> Result<Option<Recovered>, Error> {
    let journal = journal::read(&git.paths().journal())?;
    if journal == JournalState::Empty {
        publish::remove_own_locks(git)?;
        return Ok(None);
    }
    git.kill_orphans();
    let recovered = match journal {
        JournalState::Empty => None,
        JournalState::Damaged => recover_without_journal(git)?.map(Recovered::Publish),
        JournalState::Pending(JournalEntry::Publish(entry)) => {
            let entry = if is_lawful(git, &entry)? { entry } else { reject(git, &entry)? };
            publish::recover(git, entry)?.map(Recovered::Publish)
        }
        JournalState::Pending(JournalEntry::Iteration(entry)) => {
            recover_iteration(git, programs, events, &entry)?
        }
    };
    recovered.as_ref().map_or(Ok(()), |recovered| store_note(git, recovered))?;
    Ok(recovered)
}

fn store_note(git: &Git, recovered: &Recovered) -> Result<(), Error> {
    let before = RecoveryNote::read(git);
    let note = canonical_json(&RecoveryNote::new(recovered, before.as_ref()));
    atomic::overwrite_any(git.paths().git_dir(), &git.paths().recovery(), &note)
}

/// Recovers from a session that removed the journal and killed the runner. Its iteration has a directory without meta.json;
/// without one, changes in the work tree are the user's.
pub(super) fn recover_removed_journal(git: &Git) -> Result<Option<Recovered>, Error> {
    let head = git.head()?;
    let run = head.branch().and_then(|branch| RunId::of_branch(branch.as_str()));
    let Some((run, tip)) = run.zip(head.commit()) else { return Ok(None) };
    let Ok(loaded) = load_commit(git, tip) else { return Ok(None) };
    let dir = git.paths().iteration(run.as_str(), &loaded.snapshot.state.next_iter.to_string());
    if !dir.join(PROMPT).exists() || dir.join("meta.json").exists() {
        return Ok(None);
    }
    kill_session(git, &run, loaded.snapshot.state.next_iter);
    let entry = PublishEntry::next_commit(&run, tip, tip);
    publish::begin(git, &entry)?;
    let recovered = publish::recover(git, entry)?.map(Recovered::Publish);
    recovered.as_ref().map_or(Ok(()), |recovered| store_note(git, recovered))?;
    Ok(recovered)
}

/// Removes commits from a run's branch that the runner did not make, if a session that killed it left any and removed the
/// journal. They are kept under a reference of their own.
pub(super) fn reject_unrecorded(git: &Git) -> Result<Option<Recovered>, Error> {
    if journal::read(&git.paths().journal())? != JournalState::Empty {
        return Ok(None);
    }
    let Some(found) = unrecorded_commits::find(git)? else { return Ok(None) };
    git.kill_orphans();
    kill_session(git, &found.run, found.iter);
    publish::remove_locks(git, &found.run)?;
    let forged = PublishEntry::next_commit(&found.run, &found.base, &found.tip);
    let entry = reject(git, &forged)?;
    publish::begin(git, &entry)?;
    let recovered = publish::recover(git, entry)?.map(Recovered::Publish);
    recovered.as_ref().map_or(Ok(()), |recovered| store_note(git, recovered))?;
    Ok(recovered)
}

/// Whether the commit in the journal follows the rules as a successor of the branch's tip. An agent outside a sandbox, or code
/// that the guard runs, could have written the journal and killed the runner.
fn is_lawful(git: &Git, entry: &PublishEntry) -> Result<bool, Error> {
    let Some(old_tip) = entry.old_tip.as_ref().filter(|old_tip| **old_tip != entry.new_tip) else {
        return Ok(true);
    };
    if git.existing_commit(entry.new_tip.as_str())?.is_none() {
        return Ok(false);
    }
    let range = format!("{old_tip}..{}", entry.new_tip);
    match verify(git.root(), Some(&range), &mut |_| {}) {
        Ok(audit) => Ok(audit.commits == 1 && audit.findings.is_empty()),
        Err(Error::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Keeps a commit that breaks the rules under a reference of its own, and returns the publication of the tip before it.
fn reject(git: &Git, entry: &PublishEntry) -> Result<PublishEntry, Error> {
    let Some(old_tip) = &entry.old_tip else { return Ok(entry.clone()) };
    let branch = entry.run.branch();
    if git.existing_commit(entry.new_tip.as_str())?.is_some() {
        git.sync()?;
        let kept = format!("refs/runner/{}/agent/{}", entry.run, entry.new_tip.prefix(8));
        git.set_ref(&kept, entry.new_tip.as_str())?;
    }
    if git.branch_tip(&branch)?.as_ref() == Some(&entry.new_tip) {
        git.set_ref(&branch.reference(), old_tip.as_str())?;
    }
    Ok(PublishEntry { new_tip: old_tip.clone(), ..entry.clone() })
}

/// Sets a journal aside that cannot be read, and takes the state from the branch: the work tree is brought to its tip, and
/// what else it held is kept. Nothing to do if HEAD is not on a run's branch.
fn recover_without_journal(git: &Git) -> Result<Option<RecoveredPublish>, Error> {
    let journal = git.paths().journal();
    let head = git.head()?;
    let run = head.branch().and_then(|branch| RunId::of_branch(branch.as_str()));
    let (Some(run), Some(tip)) = (run, head.commit()) else {
        set_journal_aside(git)?;
        return Ok(None);
    };
    let lawful = last_lawful(git, tip)?;
    let entry = PublishEntry::next_commit(&run, &lawful, tip);
    let entry = if lawful == *tip { entry } else { reject(git, &entry)? };
    set_journal_aside(git)?;
    journal::begin(&journal, &JournalEntry::Publish(entry.clone()))?;
    publish::recover(git, entry)
}

fn set_journal_aside(git: &Git) -> Result<(), Error> {
    let folder = git.paths().asides();
    atomic::create_folders(git.paths().git_dir(), &folder)?;
    let target = folder.join(format!("journal-{}.json", now_ms()));
    let journal = git.paths().journal();
    fs::rename(&journal, target).map_err(Error::io("set aside", journal))
}

/// An iteration that recovery finished.
#[derive(Debug)]
pub struct RecoveredIteration {
    pub completed: CompletedIteration,
    /// The reference that keeps what the work tree held instead of the session's files.
    pub saved: Option<String>,
}

/// Finishes an iteration from what its session left; none if no iteration can have begun from that commit.
fn recover_iteration(
    git: &Git,
    programs: &ProgramRunner,
    events: &mut EventLog<'_>,
    entry: &IterationEntry,
) -> Result<Option<Recovered>, Error> {
    kill_session(git, &entry.run, entry.iter);
    publish::remove_locks(git, &entry.run)?;
    let worktree = worktree_owner(git, &entry.run)?;
    let access = GitAccess::of(entry.sandbox);
    let session = SessionRef { run: &entry.run, iter: entry.iter, base: &entry.base, access };
    let restored = entry.snapshot.restore(git, session)?;
    let base = lawful_base(git, entry)?;
    if base != entry.base {
        return reject_base(git, entry, &base).map(|publish| publish.map(Recovered::Publish));
    }
    let run = load_commit(git, &entry.base)?;
    let run_file = EventsFile::of_run(git.paths(), &run.snapshot.run_id);
    events.begin(run_file, &run.snapshot.config, &[]);
    let run = LoadedRun { request: entry.request, ..run };
    // The same commit and the same command give the same job.
    let NextStep::Work(job) = plan(&run.snapshot, run.request)? else {
        journal::end(&git.paths().journal())?;
        return Ok(None);
    };
    let interrupted = InterruptedSession { entry, restored, run: &run, worktree };
    let ResumedIteration { mut iteration, attempt, saved } = interrupted.resume(git, &job, events)?;
    iteration.report_files(UserFiles::read(git, &entry.run)?.changes(git), &job, events);
    let mut world = RecoveryWorld { git, programs, events };
    let session = SessionResult { attempt, red: entry.red.clone() };
    let completed = resume(&mut world, &run.snapshot, &job, iteration, session)?;
    Ok(Some(Recovered::Iteration(Box::new(RecoveredIteration { completed, saved }))))
}

/// How many commits that break the rules recovery looks behind.
const FORGED_COMMITS_MAX: usize = 100;

/// The commit from which an interrupted iteration can have begun: the one in the journal, or the last one before it that follows
/// the rules. An agent outside a sandbox could have written the journal, and commits of its own, and killed the runner.
fn lawful_base(git: &Git, entry: &IterationEntry) -> Result<CommitId, Error> {
    let base = unrecorded_commits::find(git)?.map_or_else(|| entry.base.clone(), |found| found.base);
    last_lawful(git, &base)
}

/// The commit itself, or the last one before it that follows the rules. Commits of the user's own are theirs, whatever they
/// change.
fn last_lawful(git: &Git, commit: &CommitId) -> Result<CommitId, Error> {
    let mut lawful = commit.clone();
    let mut batch = git.batch()?;
    for _ in 0..FORGED_COMMITS_MAX {
        let object = batch.commit(&lawful)?.unwrap_or_default();
        let Some(parent) = object.parents.first() else { break };
        let kind = CommitKind::parse(&object.message);
        let is_kept = matches!(kind, CommitKind::Start { .. } | CommitKind::User { .. });
        if is_kept || !breaks_rules(git, parent, &lawful)? {
            break;
        }
        lawful = parent.clone();
    }
    Ok(lawful)
}

/// Whether a commit breaks a rule as the successor of its parent. One that cannot be checked does not.
fn breaks_rules(git: &Git, parent: &CommitId, commit: &CommitId) -> Result<bool, Error> {
    match verify(git.root(), Some(&format!("{parent}..{commit}")), &mut |_| {}) {
        Ok(audit) => Ok(!audit.findings.is_empty()),
        Err(Error::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Ends an interrupted iteration whose base is forged: the branch goes back to the last commit that follows the rules, and what
/// came after it is kept under a reference of its own.
fn reject_base(
    git: &Git,
    entry: &IterationEntry,
    base: &CommitId,
) -> Result<Option<RecoveredPublish>, Error> {
    let publish = reject(git, &PublishEntry::next_commit(&entry.run, base, &entry.base))?;
    set_journal_aside(git)?;
    publish::begin(git, &publish)?;
    publish::recover(git, publish)
}

/// Whether HEAD is still on the run's branch. A session that moved it cannot be told from a user who did. Where HEAD is a
/// file, it is read without git, whose configuration is not restored yet; elsewhere a failure of git is not an answer.
fn worktree_owner(git: &Git, run: &RunId) -> Result<WorktreeOwner, Error> {
    let is_on_branch = match git.head_in_file() {
        Some(reference) => reference == run.branch().reference(),
        None => git.head()?.branch() == Some(&run.branch()),
    };
    Ok(if is_on_branch { WorktreeOwner::Session } else { WorktreeOwner::Other })
}

/// Kills the processes of the interrupted session and of its guard: the supervisor ends them when the runner dies, but may have been
/// killed with it.
fn kill_session(git: &Git, run: &RunId, iter: IterationNumber) {
    let prompt = prompt_path(git, run, iter);
    supervise::kill_by_env_marker(command::SESSION_MARKER.as_ref(), prompt.as_os_str());
    let guard_log = prompt.with_file_name(GUARD_LOG);
    supervise::kill_by_env_marker(command::GUARD_MARKER.as_ref(), guard_log.as_os_str());
    // Requests that were on their way.
    let _ = atomic::remove_any(&git.paths().recorder());
}

/// The prompt of an iteration. Every process of its session has this path in its environment.
pub(crate) fn prompt_path(git: &Git, run: &RunId, iter: IterationNumber) -> PathBuf {
    git.paths().iteration(run.as_str(), &iter.to_string()).join(PROMPT)
}
