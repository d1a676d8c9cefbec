//! The final check: after all tasks passed, the guard runs once more, in a clean checkout of the last commit. A run whose
//! result nobody else can reproduce is not complete.

use super::attempt::{GuardExit, GuardRun};
use super::event::Event;
use super::outcome::{Outcome, StopReason};
use super::recorded_guard::{GuardJob, GuardRecord};
use super::snapshot::Snapshot;
use super::{LoadedRun, World};
use crate::config::Config;
use crate::model::run_state::{GuardResult, RecordedGuardRun, RunState};

/// How a run in which all tasks passed stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalState<'a> {
    /// The final check succeeded, or the configuration turns it off.
    Reproduced,
    /// It has not run on the last commit.
    NotChecked,
    Failed(&'a RecordedGuardRun),
}

/// What the documents of a run in which all tasks passed record about its final check.
pub fn final_state<'a>(config: &Config, state: &'a RunState) -> FinalState<'a> {
    match &state.final_check {
        _ if !config.guard.final_check => FinalState::Reproduced,
        None => FinalState::NotChecked,
        Some(record) if record.guard == GuardResult::Pass => FinalState::Reproduced,
        Some(record) => FinalState::Failed(record),
    }
}

/// Whether the guard must run before the run is complete: it has not succeeded there, or the user has committed since.
pub(super) fn is_due(snapshot: &Snapshot) -> bool {
    let Snapshot { config, state, user_commits, .. } = snapshot;
    let is_new = config.guard.final_check && *user_commits > 0;
    is_new || final_state(config, state) != FinalState::Reproduced
}

/// Runs the guard in a clean checkout of the last commit, and commits its result.
pub(super) fn run<W: World>(world: &mut W, run: &LoadedRun, job: &GuardJob) -> Result<StopReason, W::Error> {
    world.announce(&Event::FinalCheckStarted { command: job.guard.command.clone() });
    let guard = world.run_recorded_guard(run, job)?;
    let stop = stop_reason(&guard);
    if let GuardRun::Ended { exit, .. } = &guard {
        world.commit_guard_record(run, &GuardRecord::new(job.occasion, &run.snapshot, &guard))?;
        let result = if *exit == GuardExit::Code(0) { GuardResult::Pass } else { GuardResult::Fail };
        world.announce(&Event::FinalCheckEnded {
            guard: result,
            exit: exit.to_string(),
            command: job.guard.command.clone(),
        });
    }
    Ok(stop)
}

fn stop_reason(guard: &GuardRun) -> StopReason {
    match guard {
        GuardRun::Ended { exit: GuardExit::Code(0), .. } => StopReason::Complete,
        GuardRun::Ended { exit, .. } => StopReason::NotReproducible { exit: exit.to_string() },
        GuardRun::TimedOut => StopReason::TimeLimit { outcome: Outcome::GuardTimedOut },
        GuardRun::Interrupted { by } => StopReason::Interrupted { by: *by },
        GuardRun::NotStarted { .. } | GuardRun::Skipped => {
            StopReason::Failures { outcome: Outcome::GuardNotStarted, in_row: 1 }
        }
    }
}
