//! The final check: after all tasks passed, the guard and the checks of all tasks run once more, in a clean checkout of the last
//! commit. A run whose result cannot be reproduced is not complete.

use super::attempt::{GuardExit, GuardRun};
use super::event::Event;
use super::outcome::{Outcome, StopReason};
use super::recheck::{self, Rechecks, RecordedEnd};
use super::recorded_guard::{GuardJob, RecordResults};
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
    /// Checks of passed tasks failed in it, and no task was added for them.
    Regressed,
}

/// What the documents of a run in which all tasks passed record about its final check.
pub fn final_state<'a>(config: &Config, state: &'a RunState) -> FinalState<'a> {
    match &state.final_check {
        _ if !state.ratchet.regressed.is_empty() => FinalState::Regressed,
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

/// Runs the guard and the checks of all tasks in a clean checkout of the last commit, and commits the results.
pub(super) fn run<W: World>(world: &mut W, run: &LoadedRun, job: &GuardJob) -> Result<RecordedEnd, W::Error> {
    world.announce(&Event::FinalCheckStarted { command: job.guard.command.clone() });
    let guard = world.run_recorded_guard(run, job)?;
    let stop = stop_reason(&guard);
    let GuardRun::Ended { exit, .. } = &guard else { return Ok(RecordedEnd::Stop(stop)) };
    let mut results = RecordResults::of_guard(&guard, run.snapshot.state.next_iter);
    if stop == StopReason::Complete {
        match recheck::run_all(world, run, job)? {
            Rechecks::Ended { records, .. } => results.rechecks = records,
            Rechecks::Interrupted { by } => {
                world.discard_guard_record(run, job)?;
                return Ok(RecordedEnd::Stop(StopReason::Interrupted { by }));
            }
        }
    }
    let end = recheck::commit(world, run, job, &results)?;
    world.announce(&Event::FinalCheckEnded {
        guard: if *exit == GuardExit::Code(0) { GuardResult::Pass } else { GuardResult::Fail },
        exit: exit.to_string(),
        command: job.guard.command.clone(),
    });
    let is_green = results.rechecks.iter().all(|record| record.exit.is_green());
    Ok(if is_green { RecordedEnd::Stop(stop) } else { end })
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
