//! Snapshot to job: decides the next session so completely that running it leaves nothing to decide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::before_work;
use super::checks::JobChecks;
use super::escalation::{AgentChoice, next_agent};
use super::final_check;
use super::outcome::StopReason;
use super::recheck;
use super::recorded_guard::{GuardJob, GuardOccasion};
use super::review::{self, ReviewPlan};
use super::settle::Transition;
use super::snapshot::Snapshot;
use crate::config::{ApprovalPolicy, Config, GuardConfig, NetworkAccess, OnStuck, VacuousPolicy};
use crate::model::checks::TaskChecks;
use crate::model::cost::{ReachedLimit, SessionBudget, reached};
use crate::model::heldout::HeldoutTask;
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::protection::Protection;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::PendingRepair;
use crate::model::tools::{EffectiveTools, Tools, ToolsError};
use crate::model::tree::{Node, SelectedLeaf, Selection, next_selection, path_text};
use crate::prompt::{self, ContextFiles, Prompt, PromptError, SessionAccess};

/// How many repairs of a rejected tree are tried before the loop continues without it.
pub const REPAIRS_MAX: u32 = 2;

/// What a session is for, as `RUNNER_MODE` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SessionMode {
    /// Work on a leaf.
    Leaf,
    /// Repair a rejected tree.
    Repair,
    /// Rewrite or split a stuck leaf.
    Replan,
    /// Split a leaf that did not fit into one session.
    Split,
    /// Write the plan, and nothing else.
    Plan,
    /// Review work that would pass.
    Review,
}

impl SessionMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Repair => "repair",
            Self::Replan => "replan",
            Self::Split => "split",
            Self::Plan => "plan",
            Self::Review => "review",
        }
    }
}

/// What a session is for, with its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionTarget {
    /// Work on this leaf.
    Leaf(NodeId),
    /// Rewrite or split this leaf.
    Replan(NodeId),
    Split(NodeId),
    /// Write the plan below the root, whose id this is.
    Plan(NodeId),
    /// Repair this rejected tree; no leaf is selected.
    Repair(Box<PendingRepair>),
}

impl SessionTarget {
    pub fn mode(&self) -> SessionMode {
        match self {
            Self::Leaf(_) => SessionMode::Leaf,
            Self::Replan(_) => SessionMode::Replan,
            Self::Split(_) => SessionMode::Split,
            Self::Plan(_) => SessionMode::Plan,
            Self::Repair(_) => SessionMode::Repair,
        }
    }

    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Leaf(node) | Self::Replan(node) | Self::Split(node) | Self::Plan(node) => Some(node),
            Self::Repair(_) => None,
        }
    }

    /// The node whose acceptance criteria measure the session's own work. Sessions that are asked to change the plan have none.
    pub(super) fn measured_node(&self) -> Option<&NodeId> {
        match self {
            Self::Leaf(node) | Self::Split(node) => Some(node),
            Self::Repair(repair) => (repair.mode != SessionMode::Replan).then_some(&repair.node),
            Self::Replan(_) | Self::Plan(_) => None,
        }
    }
}

/// The leaf that a session is charged to: a repair belongs to the leaf whose session left the rejected tree.
pub(super) fn leaf_of(target: &SessionTarget) -> &NodeId {
    match target {
        SessionTarget::Leaf(node)
        | SessionTarget::Replan(node)
        | SessionTarget::Split(node)
        | SessionTarget::Plan(node) => node,
        SessionTarget::Repair(repair) => &repair.node,
    }
}

/// What the user's command asks of the next session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionRequest {
    /// The session that is due: what `step` and `loop` run.
    #[default]
    Next,
    /// A session that writes the plan: what `plan make` runs.
    Plan,
}

/// The next step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The run stops without an iteration.
    Stop(StopReason),
    /// A task with parts passed: the checks of passed tasks run again.
    Milestone(Box<GuardJob>),
    /// All tasks passed: guard and checks run once more, in a clean checkout.
    FinalCheck(Box<GuardJob>),
    Work(Box<Job>),
}

/// One session, with everything that is needed to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub run_id: RunId,
    pub iteration: IterationNumber,
    pub target: SessionTarget,
    pub task: SelectedTask,
    /// The files for `.runner/context/`.
    pub context: ContextFiles,
    pub prompt: Prompt,
    pub agent: AgentChoice,
    pub guard: GuardConfig,
    pub permissions: SessionPermissions,
    pub limits: SessionLimits,
}

/// What a session may use, and what it may not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPermissions {
    /// From tools.json of the node and its ancestors.
    pub tools: Tools,
    pub protection: Protection,
}

impl Job {
    /// The job, with a session that may use no more than this.
    pub(super) fn within(mut self: Box<Self>, budget: SessionBudget) -> Box<Self> {
        self.limits.budget = self.limits.budget.and(budget);
        self
    }

    /// Where the check files of the task are while it is worked on.
    pub fn destinations(&self) -> Vec<RepoPath> {
        let files = self.task.checks.iter().flat_map(|checks| checks.task.files());
        files.map(|(path, _)| path.to_repo_path()).collect()
    }

    pub(super) fn is_destination(&self, path: &RepoPath) -> bool {
        self.task.checks.as_ref().is_some_and(|checks| checks.task.is_destination(path.as_str()))
    }
}

/// The checks of the leaf that a session works on, with what is on record about them.
fn job_checks(snapshot: &Snapshot, target: &SessionTarget) -> Option<JobChecks> {
    let SessionTarget::Leaf(node) = target else { return None };
    let task = snapshot.node_files.checks.get(node)?.clone();
    let red = snapshot.state.proof_of(node).filter(|proof| proof.digest == task.digest).cloned();
    Some(JobChecks { node: node.clone(), task, red, vacuous: snapshot.config.checks.vacuous })
}

/// The task of a session, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedTask {
    /// The ids from the root to the selected node, `root/api/login`; empty in a repair.
    pub path: String,
    /// The selected node's title; empty in a repair.
    pub title: String,
    pub attempt: Ordinal,
    /// The checks of the task, if it has any.
    pub checks: Option<JobChecks>,
    /// The checks of tasks above it that must fail before the session.
    pub above: Vec<JobChecks>,
    /// The held-out checks of the task and of those above it.
    pub heldout: Vec<HeldoutTask>,
    /// What happens with a check that does not fail before the work.
    pub vacuous: VacuousPolicy,
    pub review: ReviewPlan,
}

/// The n-th of a number of things: attempt 2 of 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ordinal {
    /// From 1.
    pub nth: u32,
    /// How many there are.
    pub of: u32,
}

/// The limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// For agent and guard together.
    pub iteration_secs: u64,
    /// How long the agent may produce no output; `None` if the limit is off.
    pub idle_secs: Option<u64>,
    /// How much of each output stream of the agent is kept.
    pub executor_output_bytes: u64,
    /// How much of the guard's output is kept.
    pub guard_output_bytes: u64,
    /// What the session may use. It is stopped when it has.
    pub budget: SessionBudget,
}

impl SessionLimits {
    pub(super) fn of(config: &Config) -> Self {
        let limit = |value: i64| u64::try_from(value).unwrap_or_default();
        Self {
            iteration_secs: limit(config.iteration_timeout_secs.get()),
            idle_secs: Some(limit(config.idle_timeout_secs.get())).filter(|secs| *secs > 0),
            executor_output_bytes: limit(config.executor_output_limit_bytes.get()),
            guard_output_bytes: limit(config.guard_output_limit_bytes.get()),
            budget: SessionBudget::default(),
        }
    }
}

/// Which attempt the session is.
fn attempt_at(target: &SessionTarget, selected: Option<&SelectedLeaf<'_>>) -> Ordinal {
    match (target, selected) {
        (SessionTarget::Leaf(_) | SessionTarget::Split(_), Some(selected)) => {
            Ordinal { nth: selected.leaf.attempts.saturating_add(1), of: selected.leaf.max_attempts }
        }
        (SessionTarget::Repair(repair), _) => {
            Ordinal { nth: repair.tries.saturating_add(1), of: REPAIRS_MAX }
        }
        (
            SessionTarget::Leaf(_)
            | SessionTarget::Replan(_)
            | SessionTarget::Split(_)
            | SessionTarget::Plan(_),
            _,
        ) => Ordinal { nth: 1, of: 1 },
    }
}

/// Decides the next step. It depends on the snapshot and the command alone; an error is one that the user must fix.
pub fn plan(snapshot: &Snapshot, request: SessionRequest) -> Result<NextStep, PromptError> {
    if request == SessionRequest::Next && recheck::is_due(snapshot) {
        return Ok(NextStep::Milestone(Box::new(GuardJob::new(GuardOccasion::Milestone, snapshot))));
    }
    let PlannedSession { target, selected } = match next_session(snapshot, request) {
        Ok(session) => session,
        Err(StopReason::Complete) if request == SessionRequest::Next && final_check::is_due(snapshot) => {
            return Ok(NextStep::FinalCheck(Box::new(GuardJob::new(GuardOccasion::Final, snapshot))));
        }
        Err(stop) => return Ok(NextStep::Stop(stop)),
    };
    let attempt = attempt_at(&target, selected.as_ref());
    let path = match (&selected, &target) {
        (Some(selected), _) => selected.path.clone(),
        (None, SessionTarget::Repair(repair)) => snapshot.tree.path_to(&repair.node).unwrap_or_default(),
        (
            None,
            SessionTarget::Leaf(_)
            | SessionTarget::Replan(_)
            | SessionTarget::Split(_)
            | SessionTarget::Plan(_),
        ) => Vec::new(),
    };
    let (agent, tools) = agent_and_tools(snapshot, &path)?;
    let leaf = target.node().and_then(|node| snapshot.state.spent_on(node));
    let budget = SessionBudget {
        price: snapshot.config.price_of(&agent.executor),
        ..SessionBudget::left(&snapshot.config.budget, &snapshot.state.spent, leaf)
    };
    let context = prompt::context_files(snapshot, &target, selected.as_ref());
    let access = SessionAccess::new(&agent.executor, &tools);
    let prompt = prompt::compose(snapshot, &target, selected.as_ref(), attempt, &context, &access)?;
    let job = Job {
        run_id: snapshot.run_id.clone(),
        iteration: snapshot.state.next_iter,
        task: SelectedTask {
            path: selected.as_ref().map(|selected| path_text(&selected.path)).unwrap_or_default(),
            title: selected.map(|selected| selected.leaf.title.clone()).unwrap_or_default(),
            attempt,
            checks: job_checks(snapshot, &target),
            above: before_work::above(snapshot, &target),
            heldout: before_work::heldout(snapshot, &target),
            vacuous: snapshot.config.checks.vacuous,
            review: ReviewPlan::of(snapshot, &target),
        },
        target,
        context,
        prompt,
        agent,
        guard: snapshot.config.guard.clone(),
        permissions: SessionPermissions { tools, protection: snapshot.protection() },
        limits: SessionLimits { budget, ..SessionLimits::of(&snapshot.config) },
    };
    review::check_template(snapshot, &job)?;
    Ok(NextStep::Work(Box::new(job)))
}

/// A job that runs the checks of a task outside of an iteration, whatever limits the run has reached; none for a run that is
/// complete.
pub fn check_job(snapshot: &Snapshot, node: &NodeId, task: TaskChecks) -> Result<Option<Job>, PromptError> {
    let mut unlimited = snapshot.clone();
    unlimited.config.budget = Config::default().budget;
    unlimited.state.progress.outages = u32::MAX;
    let NextStep::Work(mut job) = plan(&unlimited, SessionRequest::Plan)? else { return Ok(None) };
    job.task.checks =
        Some(JobChecks { node: node.clone(), task, red: None, vacuous: VacuousPolicy::Annotate });
    Ok(Some(*job))
}

/// The agent for the node at the end of this path, and the tools that it may use there, with the network that the
/// configuration gives it; a node can only take it away. A model in tools.json replaces the one
/// of the ladder's first rung only: a higher rung has its own model on purpose.
fn agent_and_tools(snapshot: &Snapshot, path: &[&Node]) -> Result<(AgentChoice, Tools), ToolsError> {
    let mut agent = next_agent(&snapshot.config, &snapshot.state, path.last().copied());
    let files = path.iter().filter_map(|node| Some((&node.id, snapshot.node_files.tools.get(&node.id)?)));
    let effective = EffectiveTools::along(files)?;
    effective.check(&agent.executor)?;
    if let (1, Some(model)) = (agent.rung.nth, &effective.tools.model) {
        agent.executor.model = Some(model.clone());
    }
    let network = match agent.executor.network {
        Some(NetworkAccess::None) => Some(false),
        Some(NetworkAccess::Registries | NetworkAccess::Full) => {
            Some(effective.tools.network.unwrap_or(true))
        }
        None => effective.tools.network,
    };
    Ok((agent, Tools { network, ..effective.tools }))
}

/// A session before its prompt is composed.
struct PlannedSession<'t> {
    target: SessionTarget,
    /// The selected leaf; `None` in a repair.
    selected: Option<SelectedLeaf<'t>>,
}

/// Whether the next session is impossible because a task has no attempts left.
pub fn stuck_after(snapshot: &Snapshot, transition: &Transition) -> Option<StopReason> {
    let tree = transition.tree.clone();
    let after = Snapshot { tree, state: transition.state.clone(), ..snapshot.clone() };
    match next_session(&after, SessionRequest::Next) {
        Err(stop @ StopReason::Stuck { .. }) => Some(stop),
        Err(_) | Ok(_) => None,
    }
}

/// The next session, or the first reason to stop, in a fixed order.
fn next_session(snapshot: &Snapshot, request: SessionRequest) -> Result<PlannedSession<'_>, StopReason> {
    let state = &snapshot.state;
    let session = match request {
        SessionRequest::Next => due_session(snapshot)?,
        SessionRequest::Plan if snapshot.tree.root().passes => return Err(StopReason::Complete),
        SessionRequest::Plan => {
            let root = snapshot.tree.root();
            let selected = SelectedLeaf { path: vec![root], leaf: root };
            PlannedSession { target: SessionTarget::Plan(root.id.clone()), selected: Some(selected) }
        }
    };
    let max = snapshot.config.max_iterations.as_u32();
    if state.counted_iterations() >= max {
        return Err(StopReason::MaxIterations { max });
    }
    let leaf = leaf_of(&session.target);
    match reached(&snapshot.config.budget, &state.spent, state.spent_on(leaf)) {
        Some(ReachedLimit { limit, spent, max }) => {
            let node = limit.is_of_leaf().then(|| leaf.clone());
            Err(StopReason::Budget { limit, node, spent, max })
        }
        None => Ok(session),
    }
}

/// The session that the plan calls for. A plan that the user must approve first calls for none.
fn due_session(snapshot: &Snapshot) -> Result<PlannedSession<'_>, StopReason> {
    let state = &snapshot.state;
    let can_replan = |selected: &SelectedLeaf<'_>| {
        snapshot.config.on_stuck == OnStuck::Replan && !state.replanned.contains(&selected.leaf.id)
    };
    let must_split =
        |selected: &SelectedLeaf<'_>| state.progress.must_split.as_ref() == Some(&selected.leaf.id);
    let is_unapproved =
        snapshot.config.plan.approval == ApprovalPolicy::Required && state.plan_approval.is_none();
    Ok(match (next_selection(&snapshot.tree, snapshot.config.on_stuck), &state.repair) {
        (Selection::Complete, _) => return Err(StopReason::Complete),
        (Selection::Leaf(_) | Selection::Stuck(_), _) if is_unapproved => {
            return Err(StopReason::NotApproved);
        }
        (Selection::Leaf(_) | Selection::Stuck(_), Some(repair)) => {
            PlannedSession { target: SessionTarget::Repair(Box::new(repair.clone())), selected: None }
        }
        (Selection::Leaf(leaf), None) if must_split(&leaf) => {
            PlannedSession { target: SessionTarget::Split(leaf.leaf.id.clone()), selected: Some(leaf) }
        }
        (Selection::Leaf(leaf), None) => {
            PlannedSession { target: SessionTarget::Leaf(leaf.leaf.id.clone()), selected: Some(leaf) }
        }
        (Selection::Stuck(leaf), None) if can_replan(&leaf) => {
            PlannedSession { target: SessionTarget::Replan(leaf.leaf.id.clone()), selected: Some(leaf) }
        }
        (Selection::Stuck(leaf), None) => return Err(StopReason::Stuck { node: leaf.leaf.id.clone() }),
    })
}
