//! One iteration, as a pipeline, and the loop over it.
//!
//! ```text
//! Snapshot ─plan▶ Job ─agent▶ Attempt ─interpret▶ Claim ─guard▶ Verdict ─settle▶ Transition ─commit▶ Record
//!  read once      pure          I/O      pure               I/O     pure         written once
//! ```
//!
//! What touches the world goes through [`World`]; every decision is made here. An agent that fails, lies, hangs
//! or talks nonsense is a value. An error means that the operator must look, and that nothing was changed.

mod attempt;
pub(crate) mod baseline;
pub(crate) mod bookkeeping;
mod event;
mod hook;
mod interpret;
mod judge;
mod ladder;
mod mark;
mod merge;
pub(crate) mod message;
mod meta;
mod outcome;
pub(crate) mod places;
mod plan;
mod settle;
mod snapshot;
#[cfg(test)]
mod tests;
mod wait;

pub use attempt::{
    Attempt, CostSource, Exit, FileLeft, GuardExit, ProtectedPath, ProviderFault, Usage, Verdict, Work,
};
pub use baseline::{Survey, Surveyed, baseline};
pub use bookkeeping::{GUARD_OUTPUT_BYTES_MAX, SUMMARY_BYTES_MAX};
pub use event::{Event, GuardEnd, Judgement, Recorded};
pub use hook::{Telling, Word};
pub use interpret::{Claim, Finding, ProtectedReport, REJECTED_BYTES_MAX, interpret};
pub use judge::{Violation, judge};
pub use ladder::{Chosen, UsageLimit, choose, next_agent, pending_wait};
pub use mark::Mark;
pub use merge::{Edit, PlanEdit, merge, plan_edits};
pub use meta::Meta;
pub use outcome::{Interruption, Nature, Next, Outcome, Stop};
pub use plan::{Aim, Job, Limits, Mode, Nth, Plan, REPAIRS_MAX, plan};
pub use settle::{Charge, FAILURES_MAX, Transition, settle};
pub use snapshot::{Artifact, Memory, Snapshot};
pub use wait::Wait;

use crate::prompt::PromptFault;
use crate::repo_path::RepoPath;
use crate::spending::blind_limits;

/// Everything that a step needs from outside. Implementations do what they are told and decide nothing.
pub trait World {
    /// What the operator must look at.
    type Error: From<PromptFault>;

    /// Reads the state that the run's last commit holds.
    fn load(&mut self) -> Result<Snapshot, Self::Error>;

    /// Runs one session to its end and leaves none of its processes behind.
    fn run_agent(&mut self, job: &Job) -> Result<Attempt, Self::Error>;

    /// Puts these protected files back as the last commit has them, then runs the guard to its end.
    fn run_guard(&mut self, job: &Job, restore: &[RepoPath]) -> Result<Verdict, Self::Error>;

    /// Writes the iteration, whole or not at all.
    fn commit(&mut self, job: &Job, transition: &Transition) -> Result<Record, Self::Error>;

    /// Tells whoever listens. Nothing depends on it.
    fn announce(&mut self, event: &Event);
}

/// What a loop needs besides.
pub trait Pace: World {
    /// When a wait that is on record is over, in milliseconds since 1970.
    fn end_of(&mut self, wait: &Wait) -> Result<u64, Self::Error>;

    /// Called between iterations: waits if asked to, and says whether the user wants to stop.
    fn pause(&mut self, wait: Option<&Wait>) -> Result<Option<Stop>, Self::Error>;
}

/// An iteration that is in git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The commit's id.
    pub commit: String,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// There was nothing to do; no iteration was made.
    Stopped(Stop),
    /// One iteration was made.
    Iterated(Box<Iterated>),
}

/// One iteration, made and recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iterated {
    /// What was decided.
    pub transition: Transition,
    /// Where it is.
    pub record: Record,
}

/// One iteration: at most one session, at most one run of the guard, exactly one commit.
pub fn step<W: World>(world: &mut W) -> Result<StepEnd, W::Error> {
    let snapshot = world.load()?;
    let job = match plan(&snapshot)? {
        Plan::Stop(stop) => return Ok(StepEnd::Stopped(stop)),
        Plan::Work(job) => job,
    };
    world.announce(&Event::planned(&snapshot, &job));
    let attempt = world.run_agent(&job)?;
    finish(world, &snapshot, &job, attempt)
}

/// Takes up an iteration that a crash left unfinished, with what is left of its session. The job is planned
/// anew, from the same commit, and is therefore the same.
pub fn resume<W: World>(world: &mut W, attempt: Attempt) -> Result<StepEnd, W::Error> {
    let snapshot = world.load()?;
    let job = match plan(&snapshot)? {
        Plan::Stop(stop) => return Ok(StepEnd::Stopped(stop)),
        Plan::Work(job) => job,
    };
    world.announce(&Event::Resumed { iter: job.iteration, exit: attempt.exit.clone() });
    finish(world, &snapshot, &job, attempt)
}

/// From the end of the session to the commit.
fn finish<W: World>(
    world: &mut W,
    snapshot: &Snapshot,
    job: &Job,
    attempt: Attempt,
) -> Result<StepEnd, W::Error> {
    let claim = interpret(snapshot, job, attempt);
    world.announce(&Event::agent_ended(job, &claim));
    world.announce(&Event::judged(job, &claim));
    let verdict = if claim.wants_guard(job) {
        world.announce(&Event::GuardStarted { iter: job.iteration, command: job.guard.clone() });
        let verdict = world.run_guard(job, &claim.protected.restore)?;
        world.announce(&Event::guard_ended(job, &verdict));
        verdict
    } else {
        Verdict::Skipped
    };
    let transition = settle(snapshot, job, &claim, &verdict);
    world.announce(&Event::settled(job, &transition));
    let record = world.commit(job, &transition)?;
    let (commit, next) = (record.commit.clone(), transition.next.clone());
    world.announce(&Event::Committed { iter: job.iteration, commit, next });
    let blind = |spent| blind_limits(&snapshot.config, spent, &job.executor);
    let (before, limits) = (blind(&snapshot.state.spent), blind(&transition.state.spent));
    if before != limits {
        world.announce(&Event::BudgetBlind { limits, agent: job.agent.clone() });
    }
    Ok(StepEnd::Iterated(Box::new(Iterated { transition, record })))
}

/// Steps until something stops the run, at most `iterations_max` times. A wait that is on record comes first.
pub fn run_loop<W: Pace>(world: &mut W, iterations_max: Option<u32>) -> Result<Stop, W::Error> {
    let mut made = 0;
    let mut next = begin(world)?;
    let stop = loop {
        let wait = match next {
            Next::Stop(stop) => break stop,
            Next::Wait(wait) => Some(wait),
            Next::Go => None,
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
            StepEnd::Stopped(stop) => break stop,
            StepEnd::Iterated(iterated) => iterated.transition.next,
        };
        made += 1;
    };
    world.announce(&Event::stopped(&stop));
    Ok(stop)
}

/// What a loop begins with: the rest of a wait that is on record, if the agent that it is about is still the next.
fn begin<W: World>(world: &mut W) -> Result<Next, W::Error> {
    let snapshot = world.load()?;
    let job = match plan(&snapshot)? {
        Plan::Stop(stop) => return Ok(Next::Stop(stop)),
        Plan::Work(job) => job,
    };
    let limits = blind_limits(&snapshot.config, &snapshot.state.spent, &job.executor);
    if !limits.is_empty() {
        world.announce(&Event::BudgetBlind { limits, agent: job.agent.clone() });
    }
    Ok(pending_wait(&snapshot.state, &job.executor).cloned().map_or(Next::Go, Next::Wait))
}

/// Why a loop ends that made all its iterations: the run may be over just then.
fn after_last<W: World>(world: &mut W, max: u32) -> Result<Stop, W::Error> {
    Ok(match plan(&world.load()?)? {
        Plan::Stop(stop) => stop,
        Plan::Work(_) => Stop::LoopIterations { max },
    })
}
