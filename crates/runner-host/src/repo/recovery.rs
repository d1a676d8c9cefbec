//! Crash recovery: the next command reads the journal and finishes what was interrupted, so that nothing is lost and the
//! user need not act.

use std::path::PathBuf;

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::step::{CompletedIteration, NextStep, plan, resume};
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use super::journal::{self, IterationEntry, JournalEntry};
use super::publish::{self, RecoveredPublish};
use super::repo_guard::SessionRef;
use crate::agent::command;
use crate::clock::now_ms;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::iteration::event_log::EventLog;
use crate::iteration::load::load_commit;
use crate::iteration::program_runner::ProgramRunner;
use crate::iteration::recovered_session::InterruptedSession;
use crate::iteration::repo_world::RecoveryWorld;

#[derive(Debug)]
pub enum Recovered {
    /// A commit was being published.
    Publish(RecoveredPublish),
    /// An iteration was in progress.
    Iteration(Box<CompletedIteration>),
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
            Recovered::Iteration(completed) => {
                let meta = &completed.transition.meta;
                Self {
                    run: meta.run_id.to_string(),
                    iter: Some(meta.iter.to_string()),
                    outcome: Some(meta.outcome.to_string()),
                    saved: None,
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
    let recovered = match journal::pending(&git.paths().journal())? {
        None => None,
        Some(JournalEntry::Publish(entry)) => publish::recover(git, entry)?.map(Recovered::Publish),
        Some(JournalEntry::Iteration(entry)) => {
            let completed = recover_iteration(git, programs, events, &entry)?;
            completed.map(|completed| Recovered::Iteration(Box::new(completed)))
        }
    };
    if let Some(recovered) = &recovered {
        let note = canonical_json(&RecoveryNote::new(recovered));
        atomic::overwrite_any(git.paths().git_dir(), &git.paths().recovery(), &note)?;
    }
    Ok(recovered)
}

/// Finishes an iteration from what its session left; none if no iteration can have begun from that commit.
fn recover_iteration(
    git: &Git,
    programs: &ProgramRunner,
    events: &mut EventLog<'_>,
    entry: &IterationEntry,
) -> Result<Option<CompletedIteration>, Error> {
    kill_session(git, entry);
    let session = SessionRef { run: &entry.run, iter: entry.iter, base: &entry.base, user_index: None };
    let restored = entry.snapshot.restore(git, session)?;
    let run = load_commit(git, &entry.base)?;
    events.set_hooks(&run.snapshot.config.hooks);
    // The same commit gives the same job.
    let NextStep::Work(job) = plan(&run.snapshot)? else {
        journal::end(&git.paths().journal())?;
        return Ok(None);
    };
    let (iteration, attempt) =
        InterruptedSession { entry, restored, run: &run }.collect(git, &job, events)?;
    iteration.record_notices(events, &job);
    let mut world = RecoveryWorld { git, programs, events };
    resume(&mut world, &run.snapshot, &job, iteration, attempt).map(Some)
}

/// Kills the processes of the interrupted session: the supervisor ends them when the runner dies, but may have been
/// killed with it.
fn kill_session(git: &Git, entry: &IterationEntry) {
    let prompt = prompt_path(git, &entry.run, entry.iter);
    supervise::kill_by_env_marker(command::SESSION_MARKER.as_ref(), prompt.as_os_str());
}

/// The prompt of an iteration. Every process of its session has this path in its environment.
pub(crate) fn prompt_path(git: &Git, run: &RunId, iter: IterationNumber) -> PathBuf {
    git.paths().iteration(run.as_str(), &iter.to_string()).join("prompt.md")
}
