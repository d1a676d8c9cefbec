//! One iteration, as a pipeline, and the loop over it.
//!
//! ```text
//! Snapshot ─plan▶ Job ─agent▶ Attempt ─interpret▶ Claim ─guard▶ GuardRun ─settle▶ Transition ─commit▶ CommitId
//!  read once      pure          I/O      pure               I/O      pure         written once
//! ```
//!
//! Every effect goes through [`World`]; every decision is made here. An agent that fails, lies, hangs or answers
//! nonsense is a value ([`Attempt`]). An error means that the user must act, and that nothing was changed.

mod annotations;
mod attempt;
mod backoff;
pub(crate) mod baseline;
mod escalation;
mod event;
mod event_reference;
mod file_notice;
mod guard_place;
mod hooks;
mod interpret;
mod merge;
mod message;
mod meta;
mod next_state;
mod outcome;
mod plan;
mod settle;
mod snapshot;
#[cfg(test)]
mod tests;
mod tree_rules;

pub use annotations::Annotation;
pub use attempt::{
    Attempt, ChangeScope, CostSource, GuardExit, GuardRun, LeftFile, ProtectedPath, ProviderError,
    SessionExit, Usage,
};
pub use backoff::{Backoff, Wait};
pub use baseline::{BaselineCommit, BaselineWorld, RunStart, begin_loop, begin_step};
pub use escalation::{AgentChoice, LeafRef, UsageLimit, choose_agent, next_agent, pending_wait};
pub use event::{Event, GuardEnd, RecordedEvent, SessionCheck};
pub use file_notice::{FileAction, FileNotice};
pub use guard_place::{GuardPlace, RoomLevel};
pub use hooks::{HookCall, HookTrigger};
pub use interpret::{Claim, ProtectedReport, REJECTED_BYTES_MAX, SessionFinding, interpret};
pub use merge::{EditKind, PlanEdit, merge, plan_edits};
pub use meta::{IterationMeta, RecordedIteration};
pub use next_state::{GUARD_OUTPUT_BYTES_MAX, NoteList, SUMMARY_BYTES_MAX};
pub use outcome::{Interruption, NextAction, Outcome, OutcomeClass, StopReason};
pub use plan::{
    Job, NextStep, Ordinal, REPAIRS_MAX, SelectedTask, SessionLimits, SessionMode, SessionTarget, plan,
};
pub use settle::{AttemptCharge, FAILURES_MAX, Transition, settle};
pub use snapshot::{Artifact, Memory, NodeFiles, Snapshot, SnapshotInputs, SnapshotSource, TEXT_BYTES_MAX};
pub use tree_rules::{Violation, tree_violations};

use crate::model::cost::unenforceable_limits;
use crate::model::object_id::CommitId;
use crate::model::repo_path::RepoPath;
use crate::prompt::PromptError;

/// What it takes to finish an iteration whose session has ended. Implementations decide nothing.
pub trait IterationWorld {
    /// Why nothing could be done; the user must act.
    type Error: From<PromptError>;

    /// What an iteration keeps open between the end of its session and its commit.
    type Iteration;

    /// Restores these protected files to their committed content, then runs the guard to its end.
    fn run_guard(
        &mut self,
        iteration: &mut Self::Iteration,
        job: &Job,
        restore: &[RepoPath],
    ) -> Result<GuardRun, Self::Error>;

    /// Writes the iteration as one commit, completely or not at all.
    fn commit(
        &mut self,
        iteration: Self::Iteration,
        job: &Job,
        transition: &Transition,
    ) -> Result<CommitId, Self::Error>;

    /// Reports an event. No decision depends on it.
    fn announce(&mut self, event: &Event);
}

/// Everything that a step needs from outside.
pub trait World: IterationWorld {
    /// Checks that an iteration may begin, and reads the state of the run.
    fn load(&mut self) -> Result<LoadedRun, Self::Error>;

    /// Runs one session to its end and leaves none of its processes behind.
    fn run_agent(&mut self, run: &LoadedRun, job: &Job) -> Result<(Self::Iteration, Attempt), Self::Error>;
}

/// What a loop needs besides.
pub trait LoopWorld: World {
    /// When a recorded wait ends, in milliseconds since 1970.
    fn end_of(&mut self, wait: &Wait) -> Result<u64, Self::Error>;

    /// Called between iterations: waits while the run is paused and until `wait` is over.
    fn wait_for_next(&mut self, wait: Option<&Wait>) -> Result<WaitResult, Self::Error>;
}

/// The state of a run, and the commit that it was read at. Valid until time passes: after a wait it must be loaded again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedRun {
    pub commit: CommitId,
    pub snapshot: Snapshot,
}

/// What happened between two iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitResult {
    /// There was nothing to wait for: a state that was loaded before is still valid.
    Immediate,
    /// Time passed, and others may have changed the repository.
    Waited,
    /// The user wants to stop.
    Stop(StopReason),
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// There was nothing to do; no iteration was started.
    Stopped(StopReason),
    Iterated(Box<CompletedIteration>),
}

/// An iteration that is in git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedIteration {
    pub transition: Transition,
    pub commit: CommitId,
}

/// Runs one iteration: at most one session, at most one run of the guard, exactly one commit.
pub fn step<W: World>(world: &mut W, run: &LoadedRun) -> Result<StepResult, W::Error> {
    let job = match plan(&run.snapshot)? {
        NextStep::Stop(stop) => return Ok(StepResult::Stopped(stop)),
        NextStep::Work(job) => job,
    };
    world.announce(&Event::planned(&run.snapshot, &job));
    let (iteration, attempt) = world.run_agent(run, &job)?;
    let completed = finish(world, &run.snapshot, &job, iteration, attempt)?;
    Ok(StepResult::Iterated(Box::new(completed)))
}

/// Finishes an iteration that a crash interrupted, with what is left of its session. The job was planned from the same
/// commit, and is therefore the same.
pub fn resume<W: IterationWorld>(
    world: &mut W,
    snapshot: &Snapshot,
    job: &Job,
    iteration: W::Iteration,
    attempt: Attempt,
) -> Result<CompletedIteration, W::Error> {
    world.announce(&Event::Recovered { iter: job.iteration, exit: attempt.exit.clone() });
    finish(world, snapshot, job, iteration, attempt)
}

/// From the end of the session to the commit.
fn finish<W: IterationWorld>(
    world: &mut W,
    snapshot: &Snapshot,
    job: &Job,
    mut iteration: W::Iteration,
    attempt: Attempt,
) -> Result<CompletedIteration, W::Error> {
    let claim = interpret(snapshot, job, attempt);
    world.announce(&Event::agent_ended(job, &claim));
    world.announce(&Event::checked(job, &claim));
    let guard = if claim.wants_guard(job) {
        world.announce(&Event::GuardStarted { iter: job.iteration, command: job.guard.command.clone() });
        let guard = world.run_guard(&mut iteration, job, &claim.protected.restore)?;
        world.announce(&Event::guard_ended(job, &guard));
        guard
    } else {
        GuardRun::Skipped
    };
    let transition = settle(snapshot, job, &claim, &guard);
    world.announce(&Event::decided(job, &transition));
    let commit = world.commit(iteration, job, &transition)?;
    world.announce(&Event::Committed {
        iter: job.iteration,
        commit: commit.to_string(),
        next: transition.next.clone(),
    });
    if let Some(event) = newly_unenforceable(snapshot, job, &transition) {
        world.announce(&event);
    }
    Ok(CompletedIteration { transition, commit })
}

/// The event that names the budget limits which can no longer be enforced, if an iteration changed them.
fn newly_unenforceable(snapshot: &Snapshot, job: &Job, transition: &Transition) -> Option<Event> {
    let before = unenforceable_limits(&snapshot.config, &snapshot.state.spent, &job.agent.executor);
    let limits = unenforceable_limits(&snapshot.config, &transition.state.spent, &job.agent.executor);
    (before != limits).then(|| Event::BudgetUnenforceable { limits, agent: job.agent.label() })
}

/// Steps until something stops the run, at most `iterations_max` times. A recorded wait comes first.
pub fn run_loop<W: LoopWorld>(
    world: &mut W,
    run: LoadedRun,
    iterations_max: Option<u32>,
) -> Result<StopReason, W::Error> {
    let mut completed = 0;
    let mut next = first_action(world, &run.snapshot)?;
    let mut loaded = Some(run);
    let stop = loop {
        let wait = match next {
            NextAction::Stop(stop) => break stop,
            NextAction::Wait(wait) => Some(wait),
            NextAction::Go | NextAction::Unknown => None,
        };
        if let Some(max) = iterations_max.filter(|max| completed >= *max) {
            break stop_at_maximum(world, max)?;
        }
        if let Some(wait) = &wait {
            let ends_unix_ms = world.end_of(wait)?;
            world.announce(&Event::Waiting { wait: wait.clone(), ends_unix_ms });
        }
        let run = match (world.wait_for_next(wait.as_ref())?, loaded.take()) {
            (WaitResult::Stop(stop), _) => break stop,
            (WaitResult::Immediate, Some(run)) => run,
            (WaitResult::Immediate, None) | (WaitResult::Waited, _) => world.load()?,
        };
        next = match step(world, &run)? {
            StepResult::Stopped(stop) => break stop,
            StepResult::Iterated(iterated) => iterated.transition.next,
        };
        completed += 1;
    };
    world.announce(&Event::stopped(&stop));
    Ok(stop)
}

/// What a loop does first: the rest of a recorded wait, if the agent that it is about is still the next one.
fn first_action<W: World>(world: &mut W, snapshot: &Snapshot) -> Result<NextAction, W::Error> {
    let job = match plan(snapshot)? {
        NextStep::Stop(stop) => return Ok(NextAction::Stop(stop)),
        NextStep::Work(job) => job,
    };
    let limits = unenforceable_limits(&snapshot.config, &snapshot.state.spent, &job.agent.executor);
    if !limits.is_empty() {
        world.announce(&Event::BudgetUnenforceable { limits, agent: job.agent.label() });
    }
    Ok(pending_wait(&snapshot.state, &job.agent.executor).cloned().map_or(NextAction::Go, NextAction::Wait))
}

/// Why a loop ends after its last iteration: the run may have ended with it.
fn stop_at_maximum<W: World>(world: &mut W, max: u32) -> Result<StopReason, W::Error> {
    Ok(match plan(&world.load()?.snapshot)? {
        NextStep::Stop(stop) => stop,
        NextStep::Work(_) => StopReason::LoopIterations { max },
    })
}
