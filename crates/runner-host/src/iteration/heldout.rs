//! Runs held-out checks: on a candidate, in a room of their own that is removed afterwards, so that nothing of them stays where
//! an agent or a later guard could read it.

use std::time::Duration;

use runner_core::checks::EndedCheck;
use runner_core::config::GuardConfig;
use runner_core::step::{CheckRun, HeldoutId, HeldoutRun, Job, LoadedRun};

use super::guard::{self, GuardInputs};
use super::open_iteration::OpenIteration;
use super::program_runner::ProgramRunner;
use crate::agent::sandbox::{Bubblewrap, bubblewrap_fix};
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, PathSet};
use crate::repo::heldout_folder::{HeldoutFolder, LoadedHeldout};
use crate::repo::repo_guard::SessionRef;
use crate::room::{Candidate, GuardRoom};

/// One run of a held-out check.
pub(super) struct HeldoutCheckRun<'a> {
    pub(super) git: &'a Git,
    pub(super) programs: &'a ProgramRunner,
    pub(super) session: SessionRef<'a>,
    pub(super) guard: &'a GuardConfig,
    pub(super) output_bytes: u64,
    pub(super) candidate: &'a Candidate,
    pub(super) protected: &'a PathSet,
    /// What the name of its log begins with.
    pub(super) log_prefix: String,
}

impl HeldoutCheckRun<'_> {
    pub(super) fn run(&self, id: HeldoutId<'_>) -> Result<HeldoutRun, Error> {
        let Self { git, session, guard, .. } = *self;
        let name = guard.hidden.as_deref().unwrap_or_default();
        let folder = HeldoutFolder::open(git, name)?;
        let LoadedHeldout { check, files } = folder.load(id)?;
        let place = git.paths().heldout_room();
        let mut room = GuardRoom::throwaway(git, session.run, guard, self.candidate, &place)?;
        if matches!(room, GuardRoom::InPlace { .. }) {
            let fix = bubblewrap_fix(&Bubblewrap::find(git.root()).err().unwrap_or_default());
            let why = "held-out checks run in a room only, and there is none here".to_owned();
            return Err(UserError::Heldout { path: name.to_owned(), why, fix }.into());
        }
        let log = place.join("heldout.log");
        let inputs = GuardInputs {
            guard,
            output_bytes: self.output_bytes,
            candidate: self.candidate,
            session,
            protected: self.protected,
            log: &log,
            wall: Duration::from_secs(u64::try_from(check.timeout_secs.get()).unwrap_or(u64::MAX)),
            laid: Some(&files),
        };
        let result = guard::run_check(git, self.programs, &mut room, &inputs, &check);
        folder.keep_log(
            session.run.as_str(),
            &format!("{}-{}-{}.log", self.log_prefix, id.node, id.name),
            &log,
        );
        drop(room);
        atomic::remove_any(&place)?;
        Ok(match result? {
            CheckRun::Ended { exit, output, junit, redirects, place } => {
                let (check, junit) = (&check, junit.as_deref());
                let ended = EndedCheck { check, exit, output: &output, junit, redirects };
                HeldoutRun::Ended { kind: ended.verdict(None).red, place }
            }
            CheckRun::Interrupted { by } => HeldoutRun::Interrupted { by },
        })
    }
}

/// Runs a held-out check on what the session of an iteration left.
pub(super) fn run_for_iteration(
    git: &Git,
    programs: &ProgramRunner,
    iteration: &mut OpenIteration,
    job: &Job,
    check: HeldoutId<'_>,
) -> Result<HeldoutRun, Error> {
    let candidate = iteration.candidate(git)?;
    let run = HeldoutCheckRun {
        git,
        programs,
        session: SessionRef::of_guard(&job.run_id, job.iteration, &iteration.setup.base),
        guard: &job.guard,
        output_bytes: job.limits.guard_output_bytes,
        candidate: &candidate,
        protected: &iteration.protected_now,
        log_prefix: job.iteration.to_string(),
    };
    run.run(check)
}

/// Runs a held-out check on the files of the last commit.
pub(super) fn run_at_tip(
    git: &Git,
    programs: &ProgramRunner,
    run: &LoadedRun,
    check: HeldoutId<'_>,
) -> Result<HeldoutRun, Error> {
    let snapshot = &run.snapshot;
    let candidate = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
    let protected = git.matching_in(&run.commit, &snapshot.protection().files)?;
    let run = HeldoutCheckRun {
        git,
        programs,
        session: SessionRef::of_guard(&snapshot.run_id, snapshot.state.next_iter, &run.commit),
        guard: &snapshot.config.guard,
        output_bytes: snapshot.config.guard_output_limit_bytes.as_u64(),
        candidate: &candidate,
        protected: &protected,
        log_prefix: format!("before-{}", snapshot.state.next_iter),
    };
    run.run(check)
}
