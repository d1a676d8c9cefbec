//! The session of an iteration that a crash interrupted, rebuilt from the journal and from git objects.

use std::path::{Path, PathBuf};

use runner_core::agents::{SessionIdentity, Transcript};
use runner_core::model::object_id::CommitId;
use runner_core::step::{Attempt, GuardRun, Interruption, Job, LoadedRun, RestoreReport, SessionExit, Usage};

use super::event_log::EventLog;
use super::laid_files::LaidFiles;
use super::open_iteration::{EndedSession, IterationSetup, OpenIteration, SessionOutcome};
use super::protected_paths::ProtectedPaths;
use super::session_files::{OUTPUT, read_report};
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{Git, PathSet};
use crate::repo::journal::{EndNote, IterationEntry, IterationPhase, StoredSession};
use crate::repo::publish;
use crate::repo::worktree::recorded_notices;

/// An interrupted session in a repository that is restored already.
pub(crate) struct InterruptedSession<'r> {
    pub(crate) entry: &'r IterationEntry,
    pub(crate) restored: RestoreReport,
    /// The run as the iteration's base commit has it.
    pub(crate) run: &'r LoadedRun,
    pub(crate) worktree: WorktreeOwner,
}

/// Whose changes the work tree holds when recovery begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorktreeOwner {
    Session,
    /// HEAD is somewhere else: someone worked here since the crash.
    Other,
}

/// An iteration that goes on after a crash.
pub(crate) struct ResumedIteration {
    pub(crate) iteration: OpenIteration,
    pub(crate) attempt: Attempt,
    /// The reference that keeps what the work tree held instead of the session's files.
    pub(crate) saved: Option<String>,
}

impl InterruptedSession<'_> {
    /// Brings the iteration to the point at which its session's changes are stored.
    pub(crate) fn resume(
        self,
        git: &Git,
        job: &Job,
        events: &mut EventLog<'_>,
    ) -> Result<ResumedIteration, Error> {
        let base = &self.run.commit;
        let index = git.paths().private_index("work");
        let staged = publish::save_staged(git, &self.entry.run, base, base)?;
        git.read_for_worktree(&index, base)?;
        git.refresh_index(&index)?;
        publish::copy_to_user_index(git, &index)?;
        let protected = ProtectedPaths::read_from_commits(git, job, base)?;
        let setup = IterationSetup::new(git, self.run, job, index, self.entry.sandbox, protected)?;
        events.begin_iteration(setup.dir.events_file());
        setup.dir.write_tree_before(&setup.tree, None);
        let resumed = match self.entry.phase.clone() {
            IterationPhase::Session => self.store(git, job, setup),
            IterationPhase::Stored(stored) => self.reopen(git, job, setup, *stored),
        }?;
        Ok(ResumedIteration { saved: resumed.saved.or(staged), ..resumed })
    }

    /// Stores what the session left in the work tree. A work tree that is someone else's by now is kept aside.
    fn store(self, git: &Git, job: &Job, setup: IterationSetup) -> Result<ResumedIteration, Error> {
        let saved = match self.worktree {
            WorktreeOwner::Session => None,
            WorktreeOwner::Other => {
                publish::restore_worktree(git, &setup.index, &self.entry.run, &setup.base, &setup.base)?
            }
        };
        let outcome = outcome(git, job, &setup.dir.file(OUTPUT), self.entry);
        let ended = EndedSession {
            setup,
            entry: Box::new(self.entry.clone()),
            outcome,
            restored: self.restored,
            identity: SessionIdentity::default(),
        };
        let (iteration, attempt) = ended.store(git, job, |_| ())?;
        Ok(ResumedIteration { iteration, attempt, saved })
    }

    /// Checks out what the session left, from git alone.
    fn reopen(
        self,
        git: &Git,
        job: &Job,
        setup: IterationSetup,
        stored: StoredSession,
    ) -> Result<ResumedIteration, Error> {
        let index: PathBuf = setup.index.clone();
        let commit: &CommitId = &stored.commit;
        let saved = publish::restore_worktree(git, &index, &self.entry.run, &setup.base, commit)?;
        let attempt = stored.attempt.into_attempt(|| setup.tree.bytes().to_vec());
        let candidate = if *commit == setup.base { None } else { Some(git.tree_of(commit)?) };
        let iteration = OpenIteration {
            entry: Box::new(self.entry.clone()),
            restored: self.restored,
            identity: SessionIdentity::default(),
            attempt: attempt.clone(),
            guard: GuardRun::Skipped,
            candidate,
            index_stamp: atomic::stamp(&index),
            notices: recorded_notices(git, job.iteration),
            protected_now: protected_now(git, &index, job, &setup.base)?,
            setup,
        };
        Ok(ResumedIteration { iteration, attempt, saved })
    }
}

/// The protected paths of an index, and the check files of the task.
fn protected_now(git: &Git, index: &Path, job: &Job, base: &CommitId) -> Result<PathSet, Error> {
    let laid = LaidFiles::read(git, job, base)?.paths();
    Ok(git.matching_in_index(index, &job.permissions.protection.files)?.union(&laid).cloned().collect())
}

/// The outcome that the runner noted before it died; for a session that died with the runner, what its output and its
/// report show.
fn outcome(git: &Git, job: &Job, output: &Path, entry: &IterationEntry) -> SessionOutcome {
    match EndNote::read(&git.paths().end_note(), entry) {
        Some(EndNote { exit, usage, processes_left, .. }) => SessionOutcome { exit, usage, processes_left },
        None => SessionOutcome {
            exit: SessionExit::Interrupted { by: Interruption::Crash },
            usage: printed_usage(output, job).unwrap_or_else(|| read_report(git, job).usage),
            processes_left: 0,
        },
    }
}

/// The usage that the agent had printed when the runner died.
fn printed_usage(output: &Path, job: &Job) -> Option<Usage> {
    let bytes = atomic::read(output, job.limits.executor_output_bytes.saturating_mul(2)).ok()??;
    let mut transcript = Transcript::new(job.agent.executor.output_format()?);
    transcript.push(&bytes);
    transcript.finish();
    let usage = transcript.usage();
    (usage != Usage::default()).then_some(usage)
}
