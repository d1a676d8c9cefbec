//! One iteration, as a pipeline, and the loop over it.
//!
//! ```text
//! Snapshot ─plan▶ Job ─agent▶ Attempt ─interpret▶ Claim ─guard▶ Evidence ─settle▶ Transition ─commit▶ CommitId
//!  read once      pure          I/O      pure               I/O      pure         written once
//! ```
//!
//! Every effect goes through [`World`]; every decision is made here. An agent that fails, lies, hangs or answers
//! nonsense is a value ([`Attempt`]). An error means that the user must act, and that nothing was changed.

mod annotations;
mod attempt;
mod backoff;
pub(crate) mod baseline;
mod before_work;
mod checks;
mod escalation;
mod event;
mod event_reference;
mod evidence;
mod failure_signature;
mod file_notice;
pub(crate) mod final_check;
mod growth_rules;
mod guard_place;
mod heldout;
mod hooks;
mod interpret;
mod left_checks;
mod loop_limits;
mod memory_rules;
mod merge;
mod message;
mod meta;
mod next_action;
mod next_progress;
mod next_state;
mod outage;
mod outcome;
mod plan;
pub(crate) mod recheck;
pub(crate) mod recorded_guard;
mod regression;
mod restore_report;
pub(crate) mod review;
mod run_loop;
mod settle;
mod snapshot;
#[cfg(test)]
mod tests;
mod tree_rules;
mod unchanged;

pub use annotations::Annotation;
pub use attempt::{
    Attempt, ChangeScope, CostSource, FileChanges, GuardExit, GuardRun, KeyReport, LeftFile, PlanningChanges,
    ProtectedPath, ProviderError, SessionExit, Usage,
};
pub use backoff::{Backoff, Wait};
pub use baseline::{RedBaselineAnswer, RunStart, begin_loop, begin_step};
pub use before_work::{RedResults, run_heldout_red};
pub use checks::{CheckEvidence, CheckPhase, CheckResult, CheckRun, GreenRun, JobChecks, run_red_checks};
pub use escalation::{AgentChoice, LeafRef, UsageLimit, choose_agent, next_agent, pending_wait};
pub use event::{Event, GuardEnd, RecordedEvent, SessionCheck};
pub use evidence::Evidence;
pub use file_notice::{FileAction, FileNotice};
pub use final_check::{FinalState, final_state};
pub use guard_place::{GuardPlace, RoomLevel};
pub use heldout::{HeldoutEnd, HeldoutGreen, HeldoutId, HeldoutRun};
pub use hooks::{HookCall, HookTrigger, Occasion, OccasionKind};
pub use interpret::{Claim, ProtectedReport, REJECTED_BYTES_MAX, SessionFinding, interpret};
pub use left_checks::{BlockedDestination, LeftChecks};
pub use loop_limits::LoopLimits;
pub use memory_rules::{MemoryChange, memory_change};
pub use merge::{EditKind, PlanEdit, merge, plan_edits};
pub(crate) use message::{session_request, target_name};
pub use meta::{IterationMeta, RecordedIteration, RecordedRequests, ReplayedRequests};
pub use next_state::{GUARD_OUTPUT_BYTES_MAX, NoteList, SUMMARY_BYTES_MAX};
pub use outcome::{Interruption, NextAction, Outcome, OutcomeClass, StopReason};
pub use plan::{
    Job, NextStep, Ordinal, REPAIRS_MAX, SelectedTask, SessionLimits, SessionMode, SessionPermissions,
    SessionRequest, SessionTarget, check_job, plan, stuck_after,
};
pub use recheck::{PassedChecks, PastIteration};
pub use recorded_guard::{GuardJob, GuardOccasion, GuardRecord};
pub use regression::{RecordContent, RecordFile, RegressionTask};
pub use restore_report::{MovedRef, RestoreReport};
pub use review::{ReviewEvidence, ReviewJob, ReviewPlan, ReviewReport, ReviewRun};
pub use run_loop::run_loop;
pub use settle::{AttemptCharge, FAILURES_MAX, TIMEOUTS_MAX, Transition, settle};
pub use snapshot::{Artifact, Memory, NodeFiles, Snapshot, SnapshotInputs, SnapshotSource, TEXT_BYTES_MAX};
pub use tree_rules::{QUESTIONS_MAX, Violation, tree_violations};
pub(crate) use unchanged::pending_claim;

use crate::model::checks::{Check, TaskProof};
use crate::model::cost::{SessionBudget, unenforceable_limits};
use crate::model::object_id::CommitId;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RecordedGuardRun;
use crate::prompt::PromptError;
use before_work::BeforeWork;
use checks::run_green;

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

    /// Restores these protected files, then runs a check of the task to its end, on the same files as the guard.
    fn run_check(
        &mut self,
        iteration: &mut Self::Iteration,
        job: &Job,
        check: &Check,
        restore: &[RepoPath],
    ) -> Result<CheckRun, Self::Error>;

    /// Restores these protected files, then runs a held-out check to its end, on the same files as the guard, where nothing of it
    /// stays.
    fn run_heldout(
        &mut self,
        iteration: &mut Self::Iteration,
        job: &Job,
        check: HeldoutId<'_>,
        restore: &[RepoPath],
    ) -> Result<HeldoutRun, Self::Error>;

    /// Runs a reviewer to its end, on the same files, which it cannot change.
    fn run_review(
        &mut self,
        iteration: &mut Self::Iteration,
        job: &Job,
        review: &ReviewJob,
    ) -> Result<ReviewRun, Self::Error>;

    /// Writes the iteration as one commit, completely or not at all.
    fn commit(
        &mut self,
        iteration: Self::Iteration,
        job: &Job,
        transition: &Transition,
    ) -> Result<CommitId, Self::Error>;

    /// Ends an iteration whose session changed no file but tree.json, without a commit: as if it had never begun.
    fn discard(&mut self, iteration: Self::Iteration, job: &Job) -> Result<(), Self::Error>;

    /// Reports an event. No decision depends on it.
    fn announce(&mut self, event: &Event);
}

/// Everything that a step needs from outside.
pub trait World: IterationWorld {
    /// Checks that an iteration may begin, and reads the state of the run.
    fn load(&mut self) -> Result<LoadedRun, Self::Error>;

    /// Runs a check of the task to its end, on the files of the last commit and the task's check files.
    fn run_red_check(&mut self, run: &LoadedRun, job: &Job, check: &Check) -> Result<CheckRun, Self::Error>;

    /// Runs a held-out check to its end on the files of the last commit, where nothing of it stays.
    fn run_heldout_at_tip(
        &mut self,
        run: &LoadedRun,
        check: HeldoutId<'_>,
    ) -> Result<HeldoutRun, Self::Error>;

    /// Runs one session to its end and leaves none of its processes behind. `red` is how checks ended before it: it is kept for
    /// a recovery.
    fn run_agent(
        &mut self,
        run: &LoadedRun,
        job: &Job,
        red: &RedResults,
    ) -> Result<(Self::Iteration, Attempt), Self::Error>;

    /// Runs the guard on the files of the last commit. What it changes in the work tree is restored, at the latest by
    /// [`World::commit_guard_record`].
    fn run_recorded_guard(&mut self, run: &LoadedRun, job: &GuardJob) -> Result<GuardRun, Self::Error>;

    /// Called when the guard already fails before the first session. An error refuses to begin; then what the guard changed
    /// is restored.
    fn accept_red_baseline(
        &mut self,
        _run: &LoadedRun,
        _job: &GuardJob,
        _baseline: &RecordedGuardRun,
    ) -> Result<RedBaselineAnswer, Self::Error> {
        Ok(RedBaselineAnswer::Begin)
    }

    /// Runs a check of a passed task to its end, on the files of a commit and the check files of the task.
    fn run_recheck(
        &mut self,
        run: &LoadedRun,
        job: &GuardJob,
        task: &PassedChecks,
        check: &Check,
        at: &CommitId,
    ) -> Result<CheckRun, Self::Error>;

    /// The iterations of the run so far, the oldest first; none where checks cannot run on their files.
    fn past_iterations(&mut self, run: &LoadedRun) -> Result<Vec<PastIteration>, Self::Error>;

    /// Ends what began with [`World::run_recorded_guard`] or [`World::run_recheck`] without a commit.
    fn discard_guard_record(&mut self, run: &LoadedRun, job: &GuardJob) -> Result<(), Self::Error>;

    /// Commits the result of that run.
    fn commit_guard_record(&mut self, run: &LoadedRun, record: &GuardRecord)
    -> Result<CommitId, Self::Error>;
}

/// What a loop needs besides.
pub trait LoopWorld: World {
    /// When a wait ends, in milliseconds since 1970.
    fn end_of(&mut self, wait: &LoopWait) -> Result<u64, Self::Error>;

    /// Called between iterations: waits while the run is paused and until `wait` is over.
    fn wait_for_next(&mut self, wait: Option<&LoopWait>) -> Result<WaitResult, Self::Error>;
}

/// A wait of a loop, and when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopWait {
    pub wait: Wait,
    pub since: WaitSince,
}

/// When a wait began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitSince {
    /// With the last commit, which records it.
    LastCommit,
    /// Now: the session that failed last is not committed.
    Now,
}

/// The state of a run, and the commit that it was read at. Valid until time passes: after a wait it must be loaded again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedRun {
    pub commit: CommitId,
    pub snapshot: Snapshot,
    pub request: SessionRequest,
    /// What the loop has left for the next session.
    pub loop_budget: SessionBudget,
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
    /// Checks of passed tasks ran again, and the run goes on.
    Rechecked,
    /// The provider is still failing, as the last commit records. The session left nothing and is not committed; the next one
    /// comes after this wait.
    OutageContinues(Wait),
}

/// An iteration that is in git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedIteration {
    pub transition: Transition,
    pub commit: CommitId,
}

/// Runs one iteration: at most one session, one run of the guard and one review, and one commit, unless an outage only continues.
pub fn step<W: World>(world: &mut W, run: &LoadedRun) -> Result<StepResult, W::Error> {
    let job = match plan(&run.snapshot, run.request)? {
        NextStep::Stop(stop) => return Ok(StepResult::Stopped(stop)),
        NextStep::Milestone(job) => return Ok(recheck::run_milestone(world, run, &job)?.into_result()),
        NextStep::FinalCheck(job) => return Ok(final_check::run(world, run, &job)?.into_result()),
        NextStep::Work(job) => job.within(run.loop_budget),
    };
    world.announce(&Event::planned(&run.snapshot, &job));
    let red = match before_work::run(world, run, &job)? {
        BeforeWork::Ready(red) => red,
        BeforeWork::Stop(stop) => return Ok(StepResult::Stopped(stop)),
    };
    let (mut iteration, attempt) = world.run_agent(run, &job, &red)?;
    let session = SessionResult { attempt, red };
    let transition = judge(world, &run.snapshot, &job, &mut iteration, session)?;
    if let Some(wait) = outage::continued(&run.snapshot, &job, &transition) {
        world.discard(iteration, &job)?;
        world.announce(&Event::OutageContinues { iter: job.iteration, outcome: transition.outcome });
        return Ok(StepResult::OutageContinues(wait));
    }
    let completed = record(world, &run.snapshot, &job, iteration, transition)?;
    Ok(StepResult::Iterated(Box::new(completed)))
}

/// Finishes an iteration that a crash interrupted, with what is left of its session. The job was planned from the same
/// commit, and is therefore the same. A session of an outage is committed too: recovery always leaves a record.
pub fn resume<W: IterationWorld>(
    world: &mut W,
    snapshot: &Snapshot,
    job: &Job,
    mut iteration: W::Iteration,
    session: SessionResult,
) -> Result<CompletedIteration, W::Error> {
    world.announce(&Event::Recovered { iter: job.iteration, exit: session.attempt.exit.clone() });
    let transition = judge(world, snapshot, job, &mut iteration, session)?;
    record(world, snapshot, job, iteration, transition)
}

/// A session, with how checks ended before it in the same iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionResult {
    pub attempt: Attempt,
    pub red: RedResults,
}

/// From the end of the session to the decision.
fn judge<W: IterationWorld>(
    world: &mut W,
    snapshot: &Snapshot,
    job: &Job,
    iteration: &mut W::Iteration,
    session: SessionResult,
) -> Result<Transition, W::Error> {
    let SessionResult { attempt, red } = session;
    let claim = interpret(snapshot, job, attempt);
    world.announce(&Event::agent_ended(job, &claim));
    world.announce(&Event::checked(job, &claim));
    let mut evidence = if claim.wants_guard(job) {
        collect_evidence(world, job, &claim, red.task.as_ref(), iteration)?
    } else {
        Evidence::none()
    };
    evidence.checks.set_red(red);
    evidence.review = review::run_review(world, snapshot, job, &claim, &evidence, iteration)?;
    Ok(settle(snapshot, job, &claim, &evidence))
}

/// From the decision to the commit.
fn record<W: IterationWorld>(
    world: &mut W,
    snapshot: &Snapshot,
    job: &Job,
    iteration: W::Iteration,
    transition: Transition,
) -> Result<CompletedIteration, W::Error> {
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

/// Runs everything that decides whether an accepted `done` passes: the task's checks, then held-out ones, then the guard, each
/// if all before it succeeded.
fn collect_evidence<W: IterationWorld>(
    world: &mut W,
    job: &Job,
    claim: &Claim,
    red: Option<&TaskProof>,
    iteration: &mut W::Iteration,
) -> Result<Evidence, W::Error> {
    let green = run_green(world, job, claim, red, iteration)?;
    let heldout = if green.is_green() {
        heldout::run_green(world, job, claim, iteration)?
    } else {
        HeldoutGreen::Skipped
    };
    let guard = if green.is_green() && heldout.is_green() {
        world.announce(&Event::GuardStarted { iter: job.iteration, command: job.guard.command.clone() });
        let guard = world.run_guard(iteration, job, &claim.restored_before_guard())?;
        world.announce(&Event::guard_ended(job, &guard));
        guard
    } else {
        GuardRun::Skipped
    };
    let checks = CheckEvidence { green, heldout, ..CheckEvidence::default() };
    Ok(Evidence { checks, guard, review: ReviewEvidence::Skipped })
}

/// The event that names the budget limits which can no longer be enforced, if an iteration changed them.
fn newly_unenforceable(snapshot: &Snapshot, job: &Job, transition: &Transition) -> Option<Event> {
    let before = unenforceable_limits(&snapshot.config, &snapshot.state.spent, &job.agent.executor);
    let limits = unenforceable_limits(&snapshot.config, &transition.state.spent, &job.agent.executor);
    (before != limits).then(|| Event::BudgetUnenforceable { limits, agent: job.agent.label() })
}
