//! The session of an iteration that a crash interrupted, rebuilt from the journal.

use std::path::{Path, PathBuf};

use runner_core::agents::{SessionIdentity, Transcript};
use runner_core::model::object_id::CommitId;
use runner_core::step::{Attempt, Interruption, Job, LoadedRun, SessionExit, Usage};

use super::event_log::EventLog;
use super::open_iteration::{EndedSession, IterationSetup, OpenIteration, SessionOutcome};
use super::protected_paths::{IndexOrigin, ProtectedPaths};
use super::session_files::{OUTPUT, read_report};
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::repo::journal::{IterationEntry, IterationPhase};
use crate::repo::repo_guard::RestoreReport;

/// An interrupted session in a repository that is restored already.
pub(crate) struct InterruptedSession<'r> {
    pub(crate) entry: &'r IterationEntry,
    pub(crate) restored: RestoreReport,
    /// The run as the iteration's base commit has it.
    pub(crate) run: &'r LoadedRun,
}

impl InterruptedSession<'_> {
    /// Stages what the session left, and returns it as values.
    pub(crate) fn collect(
        self,
        git: &Git,
        job: &Job,
        events: &mut EventLog<'_>,
    ) -> Result<(OpenIteration, Attempt), Error> {
        let base = &self.run.commit;
        let index = remaining_index(git, base)?;
        let protected = ProtectedPaths::read_from_commits(git, job, base)?;
        let setup = IterationSetup::new(git, self.run, job, index, self.entry.sandbox, protected)?;
        events.begin_iteration(setup.dir.events_file());
        setup.dir.write_tree_before(&setup.tree, None);
        let outcome = outcome(git, job, &setup.dir.file(OUTPUT), &self.entry.phase);
        let ended = EndedSession {
            setup,
            outcome,
            restored: self.restored,
            identity: SessionIdentity::default(),
            index_origin: IndexOrigin::Recovered,
        };
        ended.collect(git, job)
    }
}

/// The outcome in the journal; for a session that died with the runner, what its output and its report show.
fn outcome(git: &Git, job: &Job, output: &Path, phase: &IterationPhase) -> SessionOutcome {
    match phase.clone() {
        IterationPhase::Session => SessionOutcome {
            exit: SessionExit::Interrupted { by: Interruption::Crash },
            usage: printed_usage(output, job).unwrap_or_else(|| read_report(git, job).usage),
            processes_left: 0,
        },
        IterationPhase::Ended { exit, usage, processes_left } => {
            SessionOutcome { exit, usage, processes_left }
        }
    }
}

/// The usage that the agent had printed when the runner died.
fn printed_usage(output: &Path, job: &Job) -> Option<Usage> {
    let bytes = atomic::read(output, job.limits.executor_output_bytes.saturating_mul(2)).ok()??;
    let mut transcript = Transcript::new(job.executor.agent()?);
    transcript.push(&bytes);
    transcript.finish();
    let usage = transcript.usage();
    (usage != Usage::default()).then_some(usage)
}

/// The index that was pinned before the session, or a new one from the commit.
fn remaining_index(git: &Git, base: &CommitId) -> Result<PathBuf, Error> {
    let index = git.paths().private_index("work");
    if !index.exists() {
        git.read_into_index(&index, base)?;
    }
    Ok(index)
}
