//! Crash recovery: the next command reads the journal and finishes what was interrupted, so that nothing is lost and the
//! user need not act.

use std::fs;
use std::path::PathBuf;

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::step::{CompletedIteration, NextStep, plan, resume};
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use super::journal::{self, IterationEntry, JournalEntry, JournalState, PublishEntry};
use super::publish::{self, RecoveredPublish};
use super::repo_guard::{GitAccess, SessionRef};
use crate::agent::command;
use crate::clock::now_ms;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::iteration::event_log::EventLog;
use crate::iteration::guard::GUARD_LOG;
use crate::iteration::load::load_commit;
use crate::iteration::program_runner::ProgramRunner;
use crate::iteration::recovered_session::{InterruptedSession, ResumedIteration, WorktreeOwner};
use crate::iteration::repo_world::RecoveryWorld;

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
    /// When it was finished, in milliseconds since 1970.
    pub at_ms: u64,
}

const NOTE_BYTES_MAX: u64 = 64 << 10;

impl RecoveryNote {
    /// The stored note, if it can be read.
    pub(crate) fn read(git: &Git) -> Option<Self> {
        let bytes = atomic::read(&git.paths().recovery(), NOTE_BYTES_MAX).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    fn new(recovered: &Recovered) -> Self {
        match recovered {
            Recovered::Publish(publish) => Self {
                run: publish.run.to_string(),
                iter: None,
                outcome: None,
                saved: publish.saved.clone(),
                at_ms: now_ms(),
            },
            Recovered::Iteration(recovered) => {
                let meta = &recovered.completed.transition.meta;
                Self {
                    run: meta.run_id.to_string(),
                    iter: Some(meta.iter.to_string()),
                    outcome: Some(meta.outcome.to_string()),
                    saved: recovered.saved.clone(),
                    at_ms: now_ms(),
                }
            }
        }
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
        return Ok(None);
    }
    git.kill_orphans();
    let recovered = match journal {
        JournalState::Empty => None,
        JournalState::Damaged => recover_without_journal(git)?.map(Recovered::Publish),
        JournalState::Pending(JournalEntry::Publish(entry)) => {
            publish::recover(git, entry)?.map(Recovered::Publish)
        }
        JournalState::Pending(JournalEntry::Iteration(entry)) => {
            recover_iteration(git, programs, events, &entry)?.map(Recovered::Iteration)
        }
    };
    if let Some(recovered) = &recovered {
        let note = canonical_json(&RecoveryNote::new(recovered));
        atomic::overwrite_any(git.paths().git_dir(), &git.paths().recovery(), &note)?;
    }
    Ok(recovered)
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
    let entry = PublishEntry::next_commit(&run, tip, tip);
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
) -> Result<Option<Box<RecoveredIteration>>, Error> {
    kill_session(git, entry);
    publish::remove_locks(git, &entry.run)?;
    let worktree = worktree_owner(git, &entry.run);
    let access = GitAccess::of(entry.sandbox);
    let session = SessionRef { run: &entry.run, iter: entry.iter, base: &entry.base, access };
    let restored = entry.snapshot.restore(git, session)?;
    let run = load_commit(git, &entry.base)?;
    events.set_hooks(&run.snapshot.config.hooks);
    // The same commit gives the same job.
    let NextStep::Work(job) = plan(&run.snapshot)? else {
        journal::end(&git.paths().journal())?;
        return Ok(None);
    };
    let interrupted = InterruptedSession { entry, restored, run: &run, worktree };
    let ResumedIteration { iteration, attempt, saved } = interrupted.resume(git, &job, events)?;
    let mut world = RecoveryWorld { git, programs, events };
    let completed = resume(&mut world, &run.snapshot, &job, iteration, attempt)?;
    Ok(Some(Box::new(RecoveredIteration { completed, saved })))
}

/// Whether HEAD is still on the run's branch. A session that moved it cannot be told from a user who did.
fn worktree_owner(git: &Git, run: &RunId) -> WorktreeOwner {
    let is_on_branch = git.head().is_ok_and(|head| head.branch() == Some(&run.branch()));
    if is_on_branch { WorktreeOwner::Session } else { WorktreeOwner::Other }
}

/// Kills the processes of the interrupted session and of its guard: the supervisor ends them when the runner dies, but may have been
/// killed with it.
fn kill_session(git: &Git, entry: &IterationEntry) {
    let prompt = prompt_path(git, &entry.run, entry.iter);
    supervise::kill_by_env_marker(command::SESSION_MARKER.as_ref(), prompt.as_os_str());
    let guard_log = prompt.with_file_name(GUARD_LOG);
    supervise::kill_by_env_marker(command::GUARD_MARKER.as_ref(), guard_log.as_os_str());
}

/// The prompt of an iteration. Every process of its session has this path in its environment.
pub(crate) fn prompt_path(git: &Git, run: &RunId, iter: IterationNumber) -> PathBuf {
    git.paths().iteration(run.as_str(), &iter.to_string()).join("prompt.md")
}
