//! The loop over steps: waits, limits of the loop, and what stops it.

use super::loop_limits::unmeasured_budget;
use super::recheck::RecordedEnd;
use super::{
    Event, LoadedRun, LoopLimits, LoopWait, LoopWorld, NextAction, NextStep, SessionRequest, Snapshot,
    StepResult, StopReason, Wait, WaitResult, WaitSince, World, final_check, pending_wait, plan, step,
};
use crate::model::cost::unenforceable_limits;

/// Steps until something stops the run, or the loop reaches a limit of its own. A recorded wait comes first.
pub fn run_loop<W: LoopWorld>(
    world: &mut W,
    run: LoadedRun,
    limits: &LoopLimits,
) -> Result<StopReason, W::Error> {
    let mut completed = 0;
    let began = run.snapshot.state.spent;
    let mut reached = None;
    let mut outage = ContinuedOutage::default();
    let mut next = first_action(world, &run.snapshot)?;
    let mut loaded = Some(run);
    let stop = loop {
        let wait = match next {
            NextAction::Stop(stop) => break stop,
            NextAction::Wait(wait) => Some(outage.loop_wait(wait)),
            NextAction::Go | NextAction::Unknown => None,
        };
        let at_maximum = limits.iterations.filter(|max| completed >= *max);
        let limit = at_maximum.map(|max| StopReason::LoopIterations { max });
        if let Some(limit) = limit.or(reached.take()) {
            break stop_at_limit(world, limit)?;
        }
        if let Some(wait) = &wait {
            let ends_unix_ms = world.end_of(wait)?;
            world.announce(&Event::Waiting { wait: wait.wait.clone(), ends_unix_ms });
        }
        let run = match (world.wait_for_next(wait.as_ref())?, loaded.take()) {
            (WaitResult::Stop(stop), _) => break stop,
            (WaitResult::Immediate, Some(run)) => run,
            (WaitResult::Immediate, None) | (WaitResult::Waited, _) => world.load()?,
        };
        let run = LoadedRun { loop_budget: limits.left(&began, &run.snapshot.state.spent), ..run };
        next = match step(world, &run)? {
            StepResult::Stopped(stop) => break stop,
            StepResult::Rechecked => NextAction::Go,
            StepResult::OutageContinues(wait) => {
                outage.sessions += 1;
                NextAction::Wait(wait)
            }
            StepResult::Iterated(iterated) => {
                outage = ContinuedOutage::default();
                let spent = &iterated.transition.state.spent;
                let budget = &run.snapshot.config.budget;
                reached = limits.reached(&began, spent).or_else(|| unmeasured_budget(budget, &began, spent));
                let outages_before = run.snapshot.state.progress.outages;
                completed += u32::from(iterated.transition.state.progress.outages == outages_before);
                iterated.transition.next
            }
        };
    };
    world.announce(&Event::stopped(&stop));
    Ok(stop)
}

/// An outage as far as no commit records it.
#[derive(Clone, Copy, Debug, Default)]
struct ContinuedOutage {
    /// Sessions that failed since the last commit.
    sessions: u32,
}

impl ContinuedOutage {
    /// The wait before the next session: it grows with every session that failed since the last commit.
    fn loop_wait(self, wait: Wait) -> LoopWait {
        match self.sessions {
            0 => LoopWait { wait, since: WaitSince::LastCommit },
            sessions => LoopWait { wait: wait.grown(sessions - 1), since: WaitSince::Now },
        }
    }
}

/// What a loop does first: the rest of a recorded wait, if the agent that it is about is still the next one.
fn first_action<W: World>(world: &mut W, snapshot: &Snapshot) -> Result<NextAction, W::Error> {
    let job = match plan(snapshot, SessionRequest::Next)? {
        NextStep::Stop(stop) => return Ok(NextAction::Stop(stop)),
        NextStep::Milestone(_) | NextStep::FinalCheck(_) => return Ok(NextAction::Go),
        NextStep::Work(job) => job,
    };
    let limits = unenforceable_limits(&snapshot.config, &snapshot.state.spent, &job.agent.executor);
    if !limits.is_empty() {
        world.announce(&Event::BudgetUnenforceable { limits, agent: job.agent.label() });
    }
    let wait = pending_wait(&snapshot.state, &snapshot.config, &job.agent.executor);
    Ok(wait.cloned().map_or(NextAction::Go, NextAction::Wait))
}

/// Why a loop ends after its last iteration: the run may have ended with it.
fn stop_at_limit<W: World>(world: &mut W, limit: StopReason) -> Result<StopReason, W::Error> {
    let run = world.load()?;
    let end = match plan(&run.snapshot, run.request)? {
        NextStep::Stop(stop) => RecordedEnd::Stop(stop),
        NextStep::FinalCheck(job) => final_check::run(world, &run, &job)?,
        NextStep::Milestone(_) | NextStep::Work(_) => RecordedEnd::Go,
    };
    Ok(match end {
        RecordedEnd::Stop(stop) => stop,
        RecordedEnd::Go => limit,
    })
}
