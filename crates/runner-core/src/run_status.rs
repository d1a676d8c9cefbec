//! The status of a run: its state, why it is in that state, since when, and what to type next.
//!
//! [`run_status`] is the only function that decides this. `runner status`, the end of `runner loop`, `runner watch`, the
//! page and every JSON document show its result.

mod advice;
mod details;
mod events;
mod facts;
mod headline;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::{ApprovalPolicy, OnStuck};
use crate::labels::Label;
use crate::layout::Doc;
use crate::model::cost::{ReachedLimit, reached};
use crate::model::id::{IterationNumber, NodeId};
use crate::model::tree::{Node, SelectedLeaf, Selection, next_selection, path_text};
use crate::runs::identity::IdentityError;
use crate::step::recheck::regressed;
use crate::step::{FinalState, Outcome, StopReason, final_state};
use crate::text::one_line;

pub use advice::NextCommand;
pub use events::with_later_events;
use events::{LatestEvents, RunActivity};
pub use facts::{
    CheckoutFacts, DocumentFacts, LockHolder, PendingWait, RunFacts, RunRef, RunTotals, StartBlocker,
};

/// The state of a run. `no_run` and `invalid` say that there is no run to have a state, or none that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleState {
    /// No run was started here.
    NoRun,
    /// The run's files are missing or invalid.
    Invalid,
    /// A runner works on it now.
    Running,
    /// The next session has to wait: rate limit, outage or usage limit.
    Waiting,
    /// The user paused it.
    Paused,
    /// No runner works on it and tasks are open.
    Stopped,
    /// The root task passed.
    Complete,
    /// A runner died in the middle of an iteration; the next command recovers it.
    Crashed,
}

impl LifecycleState {
    pub const ALL: [Self; 8] = [
        Self::NoRun,
        Self::Invalid,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Stopped,
        Self::Complete,
        Self::Crashed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoRun => "no_run",
            Self::Invalid => "invalid",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Complete => "complete",
            Self::Crashed => "crashed",
        }
    }
}

/// What a running iteration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    Agent,
    Guard,
    /// The session's result is checked, decided and committed.
    Commit,
}

impl RunPhase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Guard => "guard",
            Self::Commit => "commit",
        }
    }
}

/// The status of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunStatus {
    pub state: LifecycleState,
    /// What the iteration does; only while the run is running.
    pub phase: Option<RunPhase>,
    /// Why the run stopped; none while it has not, and for a run that never looped.
    pub stop: Option<StopReason>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// When a wait ends, in milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// The state in a few words.
    pub headline: String,
    /// The path of the task that is worked on, or that comes next.
    pub task: Option<String>,
    /// What a reader should know besides.
    pub details: Vec<String>,
    pub next: Vec<NextCommand>,
}

impl RunStatus {
    fn new(state: LifecycleState, headline: impl Into<String>) -> Self {
        Self {
            state,
            phase: None,
            stop: None,
            since_ms: None,
            until_ms: None,
            headline: headline.into(),
            task: None,
            details: Vec::new(),
            next: Vec::new(),
        }
    }

    fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// The state's label; a stopped run has the symbol and tone of its reason.
    pub fn label(&self) -> Label {
        let label = self.state.label();
        match &self.stop {
            Some(stop) => Label { text: label.text, ..stop.label() },
            None => label,
        }
    }

    /// Whether a runner works on the run, or waits to.
    pub fn is_live(&self) -> bool {
        matches!(self.state, LifecycleState::Running | LifecycleState::Waiting)
    }
}

/// Decides the status of a run.
pub fn run_status(facts: &RunFacts<'_>) -> RunStatus {
    let mut status = status_in_checkout(facts);
    let Some(run) = facts.run.filter(|_| facts.checkout.is_elsewhere) else { return status };
    match facts.checkout.worktree {
        Some(worktree) => {
            status.details.push(format!("`{}` is checked out in {}", run.branch, one_line(worktree)));
            status.next = advice::in_worktree(worktree, status.next);
        }
        None => {
            status.details.push(format!("`{}` is not checked out", run.branch));
            // Land and report work from any branch.
            if status.state != LifecycleState::Complete {
                status.next.insert(0, advice::switch(run.id));
            }
        }
    }
    status
}

/// The status of a run whose branch is checked out.
fn status_in_checkout(facts: &RunFacts<'_>) -> RunStatus {
    let latest = LatestEvents::of(facts.events);
    match facts.lock {
        LockHolder::Runner { pid } => return working(facts, &latest, pid),
        LockHolder::DeadRunner { iteration } => return crashed(iteration, &latest),
        LockHolder::Free => {}
    }
    if let Some(stop) = facts.stop {
        // Who ends a paused loop leaves the pause in place.
        let stays_paused = facts.is_paused && is_end_of_command(stop);
        return if stays_paused { paused(facts, &latest) } else { ended(facts, &latest, stop.clone()) };
    }
    if !facts.documents.invalid.is_empty() {
        return invalid(facts.documents.invalid);
    }
    if facts.run.is_none() {
        return no_run(facts);
    }
    let Some(tree) = facts.documents.tree else { return invalid(&[Doc::Tree]) };
    let regressed = facts.documents.state.and_then(|state| regressed(&state.ratchet));
    let stop = match next_selection(tree, on_stuck(facts)) {
        _ if regressed.is_some() => regressed,
        Selection::Complete => match final_state_of(facts) {
            FinalState::Reproduced => Some(StopReason::Complete),
            FinalState::Failed(record) => Some(StopReason::NotReproducible { exit: record.exit.clone() }),
            FinalState::NotChecked | FinalState::Regressed => None,
        },
        Selection::Stuck(leaf) if !can_continue(facts, &leaf.leaf.id) => {
            Some(StopReason::Stuck { node: leaf.leaf.id.clone() })
        }
        Selection::Leaf(leaf) | Selection::Stuck(leaf) => limit_reached(facts, leaf.leaf),
    };
    if let Some(stop) = stop {
        return ended(facts, &latest, stop);
    }
    if facts.is_paused {
        return paused(facts, &latest);
    }
    let stop = latest.stop.filter(|stop| still_applies(facts, stop));
    match (stop, facts.wait) {
        // The loop was ended during the wait, as its last line said.
        (Some(stop), _) if facts.wait.is_none() || is_end_of_command(stop) => {
            ended(facts, &latest, stop.clone())
        }
        (_, Some(wait)) => waiting(wait, &latest),
        (Some(_) | None, None) => open(facts, &latest),
    }
}

/// Whether a reason ends the command that runs the loop, and says nothing about the run itself.
fn is_end_of_command(stop: &StopReason) -> bool {
    match stop {
        StopReason::LoopIterations { .. }
        | StopReason::LoopBudget { .. }
        | StopReason::LoopUntil { .. }
        | StopReason::Interrupted { .. }
        | StopReason::UserStop => true,
        StopReason::Complete
        | StopReason::Stuck { .. }
        | StopReason::NotReproducible { .. }
        | StopReason::Regressed { .. }
        | StopReason::MaxIterations { .. }
        | StopReason::Budget { .. }
        | StopReason::Stalled { .. }
        | StopReason::TimeLimit { .. }
        | StopReason::Failures { .. }
        | StopReason::NeedsUser { .. }
        | StopReason::VacuousChecks { .. }
        | StopReason::NotApproved
        | StopReason::Unknown => false,
    }
}

/// What is known about the final check of a run in which all tasks passed. Without the documents nothing speaks against it.
fn final_state_of<'a>(facts: &RunFacts<'a>) -> FinalState<'a> {
    match (facts.documents.config, facts.documents.state) {
        (Some(config), Some(state)) => final_state(config, state),
        (None, _) | (_, None) => FinalState::Reproduced,
    }
}

/// Whether a task without attempts left is repaired or replanned next, so that the run is not stuck.
fn can_continue(facts: &RunFacts<'_>, leaf: &NodeId) -> bool {
    let Some(state) = facts.documents.state else { return false };
    let replans = facts.documents.config.is_some_and(|config| config.on_stuck == OnStuck::Replan);
    state.repair.is_some() || replans && !state.replanned.contains(leaf)
}

/// The policy for stuck tasks; the default where the configuration was not read.
fn on_stuck(facts: &RunFacts<'_>) -> OnStuck {
    facts.documents.config.map_or(OnStuck::Stop, |config| config.on_stuck)
}

/// The missing approval or the limit of the configuration that keeps the next iteration from starting.
fn limit_reached(facts: &RunFacts<'_>, leaf: &Node) -> Option<StopReason> {
    let (config, state) = (facts.documents.config?, facts.documents.state?);
    if config.plan.approval == ApprovalPolicy::Required && state.plan_approval.is_none() {
        return Some(StopReason::NotApproved);
    }
    let max = u32::try_from(config.max_iterations.get()).unwrap_or(u32::MAX);
    if state.counted_iterations() >= max {
        return Some(StopReason::MaxIterations { max });
    }
    let ReachedLimit { limit, spent, max } = reached(&config.budget, &state.spent, state.spent_on(&leaf.id))?;
    let node = limit.is_of_leaf().then(|| leaf.id.clone());
    Some(StopReason::Budget { limit, node, spent, max })
}

/// Whether the reason that the last loop recorded still holds. The documents are newer: they decide about everything that
/// they can decide about.
fn still_applies(facts: &RunFacts<'_>, stop: &StopReason) -> bool {
    let DocumentFacts { config, state, .. } = facts.documents;
    match stop {
        StopReason::Complete
        | StopReason::Stuck { .. }
        | StopReason::NotReproducible { .. }
        | StopReason::Regressed { .. } => false,
        StopReason::MaxIterations { .. } | StopReason::Budget { .. } | StopReason::NotApproved => {
            config.is_none() || state.is_none()
        }
        StopReason::LoopIterations { .. }
        | StopReason::LoopBudget { .. }
        | StopReason::LoopUntil { .. }
        | StopReason::Stalled { .. }
        | StopReason::TimeLimit { .. }
        | StopReason::Failures { .. }
        | StopReason::NeedsUser { .. }
        | StopReason::VacuousChecks { .. }
        | StopReason::Interrupted { .. }
        | StopReason::UserStop
        | StopReason::Unknown => true,
    }
}

fn working(facts: &RunFacts<'_>, latest: &LatestEvents<'_>, pid: u32) -> RunStatus {
    let Some(activity) = latest.activity else {
        return RunStatus {
            phase: Some(RunPhase::Agent),
            ..RunStatus::new(LifecycleState::Running, "a runner is working on it").detail(process_text(pid))
        };
    };
    let mut status = match activity {
        RunActivity::Waiting { wait, ends_ms } => waiting(PendingWait { wait, ends_ms }, latest),
        RunActivity::Paused => paused(facts, latest),
        RunActivity::Baseline
        | RunActivity::Agent
        | RunActivity::Checking
        | RunActivity::Guard
        | RunActivity::FinalCheck
        | RunActivity::Rechecking
        | RunActivity::Committing
        | RunActivity::NextIteration => {
            let mut headline = headline::running(activity, latest);
            if facts.is_stopping {
                headline += "; stopping after this iteration";
            } else if facts.is_paused {
                headline += "; pauses after this iteration";
            }
            RunStatus { phase: activity.phase(), ..RunStatus::new(LifecycleState::Running, headline) }
        }
    };
    status.details = vec![process_text(pid)];
    status.details.extend(latest.session_text());
    // A runner is there already: nothing has to be typed to continue.
    if status.state != LifecycleState::Paused {
        status.next.clear();
    }
    status.task = latest.task();
    RunStatus { since_ms: latest.activity_ms, ..status }
}

fn process_text(pid: u32) -> String {
    format!("process {pid}")
}

fn crashed(iteration: Option<IterationNumber>, latest: &LatestEvents<'_>) -> RunStatus {
    let headline = match iteration {
        Some(iteration) => format!("the runner died in iteration {}", iteration.get()),
        None => "the runner died while it moved the branch".to_owned(),
    };
    RunStatus {
        since_ms: latest.activity_ms,
        next: advice::recover(),
        ..RunStatus::new(LifecycleState::Crashed, headline)
            .detail("the next command recovers it; its work is kept")
    }
}

fn invalid(documents: &[Doc]) -> RunStatus {
    let names: Vec<&str> =
        documents.iter().map(|doc| doc.path().rsplit('/').next().unwrap_or_default()).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    RunStatus {
        next: advice::validate(),
        ..RunStatus::new(LifecycleState::Invalid, format!("{} {verb} missing or invalid", names.join(", ")))
    }
}

/// No run was started, or the branch, GOAL.md and run_state.json do not name the same one.
fn no_run(facts: &RunFacts<'_>) -> RunStatus {
    let CheckoutFacts { identity, blocker, .. } = facts.checkout;
    let headline = match identity.first() {
        None if blocker == Some(StartBlocker::NotInitialized) => "no run on this branch",
        None => "no run started yet",
        Some(IdentityError::ProtectedBranch(_) | IdentityError::WrongBranch { .. }) => {
            "another branch is checked out"
        }
        Some(IdentityError::NoGitignore) => ".runner/.gitignore is missing",
        Some(IdentityError::NoRun) => "run_state.json names no run",
        Some(IdentityError::OtherGoal { .. }) => "GOAL.md names another run",
    };
    let mut status = RunStatus::new(LifecycleState::NoRun, headline);
    status.details = identity.iter().map(ToString::to_string).collect();
    status.next = advice::start(blocker);
    status
}

fn paused(facts: &RunFacts<'_>, latest: &LatestEvents<'_>) -> RunStatus {
    // A paused loop releases the lock, so whether it still exists is not certain.
    let is_pausing = latest.activity.is_some_and(|activity| matches!(activity, RunActivity::Paused));
    let has_loop = is_pausing && latest.stop.is_none();
    let headline = if has_loop { "a loop is waiting for `runner resume`" } else { "no loop is running" };
    let mut status = RunStatus::new(LifecycleState::Paused, headline);
    status.task = next_task(facts);
    status.since_ms = latest.activity_ms.filter(|_| has_loop);
    status.next = advice::resume(has_loop);
    status
}

fn waiting(pending: PendingWait<'_>, latest: &LatestEvents<'_>) -> RunStatus {
    let PendingWait { wait, ends_ms } = pending;
    RunStatus {
        since_ms: latest.activity_ms,
        until_ms: Some(ends_ms),
        next: advice::wait(),
        ..RunStatus::new(
            LifecycleState::Waiting,
            format!("{}, {}", wait.outcome.label().text, one_line(&wait.agent)),
        )
        .detail("no runner is waiting for it; `runner loop` waits for the rest and continues")
    }
}

/// A run that was started, has open tasks, and no recorded reason to have stopped.
fn open(facts: &RunFacts<'_>, latest: &LatestEvents<'_>) -> RunStatus {
    let is_checked_next = facts.documents.tree.is_some_and(|tree| tree.root().passes);
    let has_questions =
        facts.documents.state.is_some_and(|state| state.last_outcome == Some(Outcome::PlanQuestions));
    let headline = match facts.totals.iterations {
        _ if is_checked_next => "all tasks passed; the final check has not run",
        _ if has_questions => "the plan needs your answers",
        0 => "not run yet",
        _ => "tasks are open",
    };
    let mut status = RunStatus::new(LifecycleState::Stopped, headline);
    status.task = next_task(facts);
    status.since_ms = facts.totals.ended_ms.or(latest.activity_ms);
    let verb = if facts.totals.iterations == 0 { "start working" } else { "continue" };
    let next = || if has_questions { advice::answer_and_plan() } else { advice::run(verb) };
    status.next = facts.checkout.blocker.map_or_else(next, advice::unblock);
    status
}

/// A run that stopped for a reason, complete included.
fn ended(facts: &RunFacts<'_>, latest: &LatestEvents<'_>, reason: StopReason) -> RunStatus {
    let state =
        if reason == StopReason::Complete { LifecycleState::Complete } else { LifecycleState::Stopped };
    let mut status = RunStatus::new(state, headline::stopped(facts, &reason));
    status.details = details::of_stop(facts, &reason);
    if let Some(PendingWait { wait, ends_ms }) = facts.wait.filter(|_| is_end_of_command(&reason)) {
        let why = wait.outcome.label().text;
        status.details.push(format!("{why}, {}: `runner loop` waits for the rest", one_line(&wait.agent)));
        status.until_ms = Some(ends_ms);
    }
    status.task = next_task(facts);
    status.since_ms = latest.stop_ms.or(facts.totals.ended_ms);
    let blocker = facts.checkout.blocker.filter(|_| state != LifecycleState::Complete);
    status.next = match blocker {
        Some(blocker) => advice::unblock(blocker),
        None => advice::after_stop(&reason, facts.run),
    };
    status.stop = Some(reason);
    status
}

/// The path of the next task, if the tree is known and has one; of the stuck one, if it is stuck.
fn next_task(facts: &RunFacts<'_>) -> Option<String> {
    match next_selection(facts.documents.tree?, on_stuck(facts)) {
        Selection::Leaf(SelectedLeaf { path, .. }) | Selection::Stuck(SelectedLeaf { path, .. }) => {
            Some(path_text(&path))
        }
        Selection::Complete => None,
    }
}
