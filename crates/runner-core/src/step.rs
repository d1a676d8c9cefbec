//! One iteration, as a pipeline, and the loop over it.
//!
//! ```text
//! Snapshot ─plan▶ Job ─agent▶ Attempt ─interpret▶ Claim ─guard▶ Verdict ─settle▶ Transition ─commit▶ Record
//!  read once      pure          I/O      pure               I/O     pure         written once
//! ```
//!
//! What touches the world goes through [`World`]; every decision is made here. An agent that fails, lies, hangs
//! or talks nonsense is a value. An error means that the operator must look, and that nothing was changed.

mod annotations;
mod attempt;
mod backoff;
pub(crate) mod baseline;
mod escalation;
mod event;
mod event_reference;
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
pub use baseline::{BaselineCommit, BaselineWorld, baseline};
pub use escalation::{AgentChoice, LeafRef, UsageLimit, choose_agent, next_agent, pending_wait};
pub use event::{Event, GuardEnd, RecordedEvent, SessionCheck};
pub use hooks::{HookCall, HookTrigger};
pub use interpret::{Claim, ProtectedReport, REJECTED_BYTES_MAX, SessionFinding, interpret};
pub use merge::{EditKind, PlanEdit, merge, plan_edits};
pub use meta::{IterationMeta, RecordedIteration};
pub use next_state::{GUARD_OUTPUT_BYTES_MAX, NoteList, SUMMARY_BYTES_MAX};
pub use outcome::{Interruption, NextAction, Outcome, OutcomeClass, StopReason};
pub use plan::{Job, NextStep, Ordinal, REPAIRS_MAX, SessionLimits, SessionMode, SessionTarget, plan};
pub use settle::{AttemptCharge, FAILURES_MAX, Transition, settle};
pub use snapshot::{Artifact, Memory, Snapshot, SnapshotInputs, SnapshotSource, TEXT_BYTES_MAX};
pub use tree_rules::{Violation, tree_violations};

use crate::model::cost::unenforceable_limits;
use crate::model::repo_path::RepoPath;
use crate::prompt::PromptError;

/// Everything that a step needs from outside. Implementations do what they are told and decide nothing.
pub trait World {
    /// What the operator must look at.
    type Error: From<PromptError>;

    /// Reads the state that the run's last commit holds.
    fn load(&mut self) -> Result<Snapshot, Self::Error>;

    /// Runs one session to its end and leaves none of its processes behind.
    fn run_agent(&mut self, job: &Job) -> Result<Attempt, Self::Error>;

    /// Puts these protected files back as the last commit has them, then runs the guard to its end.
    fn run_guard(&mut self, job: &Job, restore: &[RepoPath]) -> Result<GuardRun, Self::Error>;

    /// Writes the iteration, whole or not at all.
    fn commit(&mut self, job: &Job, transition: &Transition) -> Result<IterationRecord, Self::Error>;

    /// Tells whoever listens. Nothing depends on it.
    fn announce(&mut self, event: &Event);
}

/// What a loop needs besides.
pub trait LoopWorld: World {
    /// When a wait that is on record is over, in milliseconds since 1970.
    fn end_of(&mut self, wait: &Wait) -> Result<u64, Self::Error>;

    /// Called between iterations: waits if asked to, and says whether the user wants to stop.
    fn pause(&mut self, wait: Option<&Wait>) -> Result<Option<StopReason>, Self::Error>;
}

/// An iteration that is in git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationRecord {
    /// The commit's id.
    pub commit: String,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// There was nothing to do; no iteration was made.
    Stopped(StopReason),
    /// One iteration was made.
    Iterated(Box<CompletedIteration>),
}

/// One iteration, made and recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedIteration {
    /// What was decided.
    pub transition: Transition,
    /// Where it is.
    pub record: IterationRecord,
}

/// One iteration: at most one session, at most one run of the guard, exactly one commit.
pub fn step<W: World>(world: &mut W) -> Result<StepResult, W::Error> {
    let snapshot = world.load()?;
    let job = match plan(&snapshot)? {
        NextStep::Stop(stop) => return Ok(StepResult::Stopped(stop)),
        NextStep::Work(job) => job,
    };
    world.announce(&Event::planned(&snapshot, &job));
    let attempt = world.run_agent(&job)?;
    finish(world, &snapshot, &job, attempt)
}

/// Takes up an iteration that a crash left unfinished, with what is left of its session. The job is planned
/// anew, from the same commit, and is therefore the same.
pub fn resume<W: World>(world: &mut W, attempt: Attempt) -> Result<StepResult, W::Error> {
    let snapshot = world.load()?;
    let job = match plan(&snapshot)? {
        NextStep::Stop(stop) => return Ok(StepResult::Stopped(stop)),
        NextStep::Work(job) => job,
    };
    world.announce(&Event::Recovered { iter: job.iteration, exit: attempt.exit.clone() });
    finish(world, &snapshot, &job, attempt)
}

/// From the end of the session to the commit.
fn finish<W: World>(
    world: &mut W,
    snapshot: &Snapshot,
    job: &Job,
    attempt: Attempt,
) -> Result<StepResult, W::Error> {
    let claim = interpret(snapshot, job, attempt);
    world.announce(&Event::agent_ended(job, &claim));
    world.announce(&Event::checked(job, &claim));
    let verdict = if claim.wants_guard(job) {
        world.announce(&Event::GuardStarted { iter: job.iteration, command: job.guard.clone() });
        let verdict = world.run_guard(job, &claim.protected.restore)?;
        world.announce(&Event::guard_ended(job, &verdict));
        verdict
    } else {
        GuardRun::Skipped
    };
    let transition = settle(snapshot, job, &claim, &verdict);
    world.announce(&Event::decided(job, &transition));
    let record = world.commit(job, &transition)?;
    let (commit, next) = (record.commit.clone(), transition.next.clone());
    world.announce(&Event::Committed { iter: job.iteration, commit, next });
    let blind = |spent| unenforceable_limits(&snapshot.config, spent, &job.executor);
    let (before, limits) = (blind(&snapshot.state.spent), blind(&transition.state.spent));
    if before != limits {
        world.announce(&Event::BudgetUnenforceable { limits, agent: job.agent.clone() });
    }
    Ok(StepResult::Iterated(Box::new(CompletedIteration { transition, record })))
}

/// Steps until something stops the run, at most `iterations_max` times. A wait that is on record comes first.
pub fn run_loop<W: LoopWorld>(world: &mut W, iterations_max: Option<u32>) -> Result<StopReason, W::Error> {
    let mut made = 0;
    let mut next = begin(world)?;
    let stop = loop {
        let wait = match next {
            NextAction::Stop(stop) => break stop,
            NextAction::Wait(wait) => Some(wait),
            NextAction::Go | NextAction::Unknown => None,
        };
        if let Some(max) = iterations_max.filter(|max| made >= *max) {
            break after_last(world, max)?;
        }
        if let Some(wait) = &wait {
            let ends_unix_ms = world.end_of(wait)?;
            world.announce(&Event::Waiting { wait: wait.clone(), ends_unix_ms });
        }
        if let Some(stop) = world.pause(wait.as_ref())? {
            break stop;
        }
        next = match step(world)? {
            StepResult::Stopped(stop) => break stop,
            StepResult::Iterated(iterated) => iterated.transition.next,
        };
        made += 1;
    };
    world.announce(&Event::stopped(&stop));
    Ok(stop)
}

/// What a loop begins with: the rest of a wait that is on record, if the agent that it is about is still the next.
fn begin<W: World>(world: &mut W) -> Result<NextAction, W::Error> {
    let snapshot = world.load()?;
    let job = match plan(&snapshot)? {
        NextStep::Stop(stop) => return Ok(NextAction::Stop(stop)),
        NextStep::Work(job) => job,
    };
    let limits = unenforceable_limits(&snapshot.config, &snapshot.state.spent, &job.executor);
    if !limits.is_empty() {
        world.announce(&Event::BudgetUnenforceable { limits, agent: job.agent.clone() });
    }
    Ok(pending_wait(&snapshot.state, &job.executor).cloned().map_or(NextAction::Go, NextAction::Wait))
}

/// Why a loop ends that made all its iterations: the run may be over just then.
fn after_last<W: World>(world: &mut W, max: u32) -> Result<StopReason, W::Error> {
    Ok(match plan(&world.load()?)? {
        NextStep::Stop(stop) => stop,
        NextStep::Work(_) => StopReason::LoopIterations { max },
    })
}
