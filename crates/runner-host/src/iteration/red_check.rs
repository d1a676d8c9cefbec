//! Runs a check before the work on its task: on the files of the last commit, with the check files of the task among them.

use std::time::Duration;

use runner_core::model::checks::Check;
use runner_core::step::{CheckPhase, CheckRun, Job, LoadedRun};

use super::guard::{self, GuardInputs, check_log};
use super::laid_files::LaidFiles;
use super::program_runner::ProgramRunner;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{Git, PathSet};
use crate::repo::journal::{self, JournalEntry, PublishEntry};
use crate::repo::publish;
use crate::repo::repo_guard::SessionRef;
use crate::room::GuardRoom;

/// What a run of a check before the work needs.
pub(super) struct RedCheck<'a> {
    pub(super) git: &'a Git,
    pub(super) programs: &'a ProgramRunner,
    pub(super) run: &'a LoadedRun,
    pub(super) job: &'a Job,
    /// Further files to lay beside the check files.
    pub(super) stubs: &'a [StubFile],
}

/// A file that stands for work which is not done: `plan lint` runs checks on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StubFile {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

impl RedCheck<'_> {
    pub(super) fn run(&self, room: &mut GuardRoom, check: &Check) -> Result<CheckRun, Error> {
        let Self { git, job, run, stubs, .. } = *self;
        let laid = LaidFiles::read(git, job, &run.commit)?.with_stubs(git, stubs)?;
        let candidate = laid.candidate(git, &run.commit)?;
        let at_base = git.matching_in(&run.commit, &job.permissions.protection.files)?;
        let protected: PathSet = at_base.union(&laid.paths()).cloned().collect();
        let folder = git.paths().iteration(job.run_id.as_str(), &job.iteration.to_string());
        atomic::create_folders(git.root(), &folder)?;
        let log = folder.join(check_log(check, CheckPhase::Red));
        atomic::remove_any(&log)?;
        let wall = Duration::from_secs(u64::try_from(check.timeout_secs.get()).unwrap_or(u64::MAX));
        let inputs = GuardInputs {
            guard: &job.guard,
            output_bytes: job.limits.guard_output_bytes,
            candidate: &candidate,
            session: SessionRef::of_guard(&job.run_id, job.iteration, &run.commit),
            protected: &protected,
            log: &log,
            wall,
            laid: None,
        };
        match room {
            GuardRoom::Room(_) => guard::run_check(git, self.programs, room, &inputs, check),
            GuardRoom::InPlace { .. } => self.run_in_place(room, &laid, &inputs, check),
        }
    }

    /// Runs the check in the work tree, and restores what it changed there.
    fn run_in_place(
        &self,
        room: &mut GuardRoom,
        laid: &LaidFiles,
        inputs: &GuardInputs<'_>,
        check: &Check,
    ) -> Result<CheckRun, Error> {
        let Self { git, job, run, .. } = *self;
        // A publication of the current commit: after a crash, recovery restores what the check changed.
        let current = PublishEntry::next_commit(&job.run_id, &run.commit, &run.commit);
        journal::begin(&git.paths().journal(), &JournalEntry::Publish(current.clone()))?;
        laid.lay(git)?;
        let result = guard::run_check(git, self.programs, room, inputs, check)?;
        laid.remove(git)?;
        publish::recover(git, current)?;
        Ok(result)
    }
}
