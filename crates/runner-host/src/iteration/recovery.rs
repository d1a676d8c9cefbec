//! What the next command does with something that a crash left unfinished.

use std::path::Path;

use runner_core::agents::Transcript;
use runner_core::step::{Interruption, Job, NextStep, SessionExit, StepResult, Usage, World, plan, resume};
use runner_core::strict::canonical_json;

use serde::{Deserialize, Serialize};

use super::RepoWorld;
use super::session::{EndedSession, OUTPUT, reported};
use crate::agent::command;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::iteration::iteration_dir::now_ms;
use crate::repo::journal::{self, IterationEntry, IterationPhase, JournalEntry};
use crate::repo::publish::{self, RecoveredPublish};
use crate::repo::repo_guard::SessionRef;

/// What was taken up.
#[derive(Debug)]
pub enum Recovered {
    /// A move to a commit was finished.
    Publish(RecoveredPublish),
    /// An iteration was finished.
    Iteration(Box<StepResult>),
}

/// What was last finished after a crash, for whoever asks later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryNote {
    /// The run it belonged to.
    pub run: String,
    /// The iteration, if it was one.
    pub iter: Option<String>,
    /// How that ended.
    pub outcome: Option<String>,
    /// Where the work tree was stored, if it was neither the old one nor the new one.
    pub found: Option<String>,
    /// When it was finished, in milliseconds since 1970.
    pub at_ms: u64,
}

impl RecoveryNote {
    /// What stands on record, if it can be read.
    pub(crate) fn read(git: &Git) -> Option<Self> {
        let bytes = atomic::read(&git.paths().recovery(), RECOVERY_BYTES_MAX).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    fn of(taken: &Recovered) -> Option<Self> {
        let at_ms = now_ms();
        match taken {
            Recovered::Publish(it) => {
                let (run, found) = (it.run.clone(), it.found.clone());
                Some(Self { run, iter: None, outcome: None, found, at_ms })
            }
            Recovered::Iteration(end) => {
                let StepResult::Iterated(it) = end.as_ref() else { return None };
                let meta = &it.transition.meta;
                let (run, iter) = (meta.run_id.to_string(), Some(meta.iter.to_string()));
                Some(Self { run, iter, outcome: Some(meta.outcome.to_string()), found: None, at_ms })
            }
        }
    }
}

const RECOVERY_BYTES_MAX: u64 = 64 << 10;

/// Finishes whatever a crash left: nothing is lost, and no person has to do anything.
pub fn recover(workshop: &mut RepoWorld<'_>) -> Result<Option<Recovered>, Error> {
    let taken = take_up_pending(workshop)?;
    if let Some(recovery) = taken.as_ref().and_then(RecoveryNote::of) {
        let path = workshop.git.paths().recovery();
        atomic::replace(workshop.git.paths().git_dir(), &path, &canonical_json(&recovery))?;
    }
    Ok(taken)
}

fn take_up_pending(workshop: &mut RepoWorld<'_>) -> Result<Option<Recovered>, Error> {
    match journal::pending(&workshop.git.paths().journal())? {
        None => Ok(None),
        Some(JournalEntry::Move(moving)) => {
            Ok(publish::recover(&workshop.git, moving)?.map(Recovered::Publish))
        }
        Some(JournalEntry::Iteration(iteration)) => take_up_iteration(workshop, &iteration),
    }
}

fn take_up_iteration(
    workshop: &mut RepoWorld<'_>,
    iteration: &IterationEntry,
) -> Result<Option<Recovered>, Error> {
    let run =
        iteration.branch.strip_prefix(runner_core::model::id::BRANCH_PREFIX).unwrap_or_default().to_owned();
    let name = SessionRef {
        run: &run,
        branch: &iteration.branch,
        iter: &iteration.iter,
        base: &iteration.base,
        index: None,
    };
    // The supervisor ends the session with the runner, but may have been killed with it.
    let prompt = workshop.git.paths().iteration(&run, &iteration.iter).join("prompt.md");
    supervise::kill_by_env_marker(command::MARK.as_ref(), prompt.as_os_str());
    let mended = iteration.pins.put_back(&workshop.git, name)?;
    let base = iteration.base.clone();
    workshop.resuming = Some(base.clone());
    let snapshot = workshop.load()?;
    // The same commit gives the same job. A commit that gives none never began an iteration.
    let NextStep::Work(job) = plan(&snapshot)? else {
        workshop.resuming = None;
        journal::end(&workshop.git.paths().journal())?;
        return Ok(None);
    };
    let ended = match iteration.phase.clone() {
        IterationPhase::Session => {
            let exit = SessionExit::Interrupted { by: Interruption::Crash };
            let usage = used(&prompt.with_file_name(OUTPUT), &job);
            let usage = usage.unwrap_or_else(|| reported(&workshop.git, &job).usage);
            EndedSession { exit, usage, processes_left: 0 }
        }
        IterationPhase::Ended { exit, usage, processes_left } => EndedSession { exit, usage, processes_left },
    };
    let index = old_index(&workshop.git, &base)?;
    workshop.set_bench(&job, base, index, &snapshot.tree)?;
    workshop.bench()?.mended = mended;
    workshop.bench()?.sandbox = iteration.sandbox;
    let attempt = workshop.pick_up(&job, ended)?;
    let end = resume(workshop, attempt)?;
    workshop.resuming = None;
    Ok(Some(Recovered::Iteration(Box::new(end))))
}

/// What a session had used when the runner died, from what its agent had printed until then.
fn used(output: &Path, job: &Job) -> Option<Usage> {
    let bytes = atomic::read(output, job.limits.executor_output_bytes.saturating_mul(2)).ok()??;
    let mut transcript = Transcript::new(job.executor.agent()?);
    transcript.push(&bytes);
    transcript.finish();
    let usage = transcript.usage();
    (usage != Usage::default()).then_some(usage)
}

/// The index that was pinned before the session, or one made anew from the commit.
fn old_index(git: &Git, base: &str) -> Result<std::path::PathBuf, Error> {
    let index = git.paths().private_index("work");
    if !index.exists() {
        git.read_into_index(&index, base)?;
    }
    Ok(index)
}
