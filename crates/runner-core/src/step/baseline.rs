//! The guard's word on the untouched repository, before the first session: what was red before any agent came.

use super::attempt::{GuardExit, Verdict};
use super::bookkeeping::{GUARD_NOT_STARTED, guard_output};
use super::event::Event;
use super::message::TAKEN_IN;
use super::outcome::Stop;
use super::plan::{Job, Plan, plan};
use super::snapshot::Snapshot;
use super::{Record, World};
use crate::digest::Sha256;
use crate::id::{Iteration, RunId};
use crate::run_state::{Baseline, GuardResult, RunState, SEMANTICS};

/// A world in which the guard can be asked before there is a session.
pub trait Survey: World {
    /// Runs the guard on the work tree as it is.
    fn survey(&mut self, job: &Job) -> Result<Verdict, Self::Error>;

    /// Commits what it said, and puts back what it changed.
    fn record(&mut self, surveyed: &Surveyed) -> Result<Record, Self::Error>;
}

/// A baseline, to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// The run.
    pub run_id: RunId,
    /// The run's book-keeping with it.
    pub state: RunState,
    /// The commit's message.
    pub message: String,
}

/// Asks the guard, if that is due: once in a run, before its first session. Says whether the user broke in.
pub fn baseline<W: Survey>(world: &mut W) -> Result<Option<Stop>, W::Error> {
    let snapshot = world.load()?;
    if !is_due(&snapshot) {
        return Ok(None);
    }
    let Plan::Work(job) = plan(&snapshot)? else { return Ok(None) };
    world.announce(&Event::BaselineStarted { command: job.guard.clone() });
    let verdict = world.survey(&job)?;
    if let Verdict::Interrupted { by } = verdict {
        return Ok(Some(Stop::Interrupted { by }));
    }
    let found = found(&verdict);
    let surveyed = surveyed(&snapshot, found.clone());
    world.record(&surveyed)?;
    world.announce(&Event::BaselineEnded { guard: found.guard, exit: found.exit, command: job.guard });
    Ok(None)
}

fn is_due(snapshot: &Snapshot) -> bool {
    let Snapshot { state, config, .. } = snapshot;
    config.guard.baseline && state.baseline.is_none() && state.next_iter == Iteration::FIRST
}

/// What the guard said, as it is kept.
fn found(verdict: &Verdict) -> Baseline {
    let silent =
        |why: String| Baseline { guard: GuardResult::Skipped, exit: "none".to_owned(), output: Some(why) };
    match verdict {
        Verdict::Ended { exit: GuardExit::Code(0), .. } => {
            Baseline { guard: GuardResult::Pass, exit: "0".to_owned(), output: None }
        }
        Verdict::Ended { exit, .. } => {
            let output = Some(guard_output(verdict).unwrap_or_default());
            Baseline { guard: GuardResult::Fail, exit: exit.to_string(), output }
        }
        Verdict::NotStarted { why } => silent(format!("{GUARD_NOT_STARTED}{why}")),
        Verdict::TimedOut => silent("the guard ran out of time".to_owned()),
        Verdict::Interrupted { .. } | Verdict::Skipped => silent("the guard was not asked".to_owned()),
    }
}

fn surveyed(snapshot: &Snapshot, found: Baseline) -> Surveyed {
    let state = RunState { baseline: Some(found), ..snapshot.state.clone() };
    let message = message(&snapshot.run_id, &state, snapshot.own_commits);
    Surveyed { run_id: snapshot.run_id.clone(), state, message }
}

/// The message of a baseline's commit. A function of the state that it holds.
pub(crate) fn message(run: &RunId, state: &RunState, own_commits: u32) -> String {
    let (guard, exit) = state
        .baseline
        .as_ref()
        .map_or((GuardResult::Skipped, "none"), |baseline| (baseline.guard, baseline.exit.as_str()));
    let taken_in = if own_commits > 0 { format!("{TAKEN_IN}: {own_commits}\n") } else { String::new() };
    format!(
        "chore(loop): run {run} baseline guard={}\n\nRunner-Guard-Exit: {exit}\nRunner-State: {}\n\
         Runner-Semantics: {SEMANTICS}\n{taken_in}",
        guard.as_str(),
        Sha256::of(&state.to_bytes()),
    )
}

/// Whether a baseline can have come from a guard.
pub(crate) fn is_possible(baseline: &Baseline) -> bool {
    let has_output = baseline.output.is_some();
    match baseline.guard {
        GuardResult::Pass => baseline.exit == "0" && !has_output,
        GuardResult::Fail => !matches!(baseline.exit.as_str(), "0" | "none") && has_output,
        GuardResult::Skipped => baseline.exit == "none" && has_output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Interruption;

    #[test]
    fn what_a_guard_can_say_is_kept_and_possible() {
        let ended = |exit| Verdict::Ended { exit, output: b"said\n".to_vec() };
        let cases = [
            (ended(GuardExit::Code(0)), GuardResult::Pass, "0"),
            (ended(GuardExit::Code(3)), GuardResult::Fail, "3"),
            (ended(GuardExit::Signal(9)), GuardResult::Fail, "signal 9"),
            (Verdict::NotStarted { why: "gone".to_owned() }, GuardResult::Skipped, "none"),
            (Verdict::TimedOut, GuardResult::Skipped, "none"),
            (Verdict::Interrupted { by: Interruption::Int }, GuardResult::Skipped, "none"),
        ];
        for (verdict, guard, exit) in cases {
            let found = found(&verdict);
            assert_eq!((found.guard, found.exit.as_str()), (guard, exit), "{verdict:?}");
            assert!(is_possible(&found), "{verdict:?}");
            let forged = Baseline { exit: if exit == "0" { "1" } else { "0" }.to_owned(), ..found };
            assert!(!is_possible(&forged), "{verdict:?}");
        }
    }
}
