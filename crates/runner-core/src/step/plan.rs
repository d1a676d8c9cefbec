//! Snapshot to job: decides the next session so completely that running it leaves nothing to decide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::escalation::{AgentChoice, next_agent};
use super::outcome::StopReason;
use super::snapshot::Snapshot;
use crate::config::{GuardConfig, OnStuck};
use crate::model::cost::{ReachedLimit, reached};
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::run_state::PendingRepair;
use crate::model::tools::{EffectiveTools, Tools, ToolsError};
use crate::model::tree::{Node, SelectedLeaf, Selection, path_text, select};
use crate::prompt::{self, ContextFiles, Prompt, PromptError};

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
}

impl SessionMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Repair => "repair",
            Self::Replan => "replan",
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
    /// Repair this rejected tree; no leaf is selected.
    Repair(Box<PendingRepair>),
}

impl SessionTarget {
    pub fn mode(&self) -> SessionMode {
        match self {
            Self::Leaf(_) => SessionMode::Leaf,
            Self::Replan(_) => SessionMode::Replan,
            Self::Repair(_) => SessionMode::Repair,
        }
    }

    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Leaf(node) | Self::Replan(node) => Some(node),
            Self::Repair(_) => None,
        }
    }
}

/// The leaf that a session is charged to: a repair belongs to the leaf whose session left the rejected tree.
pub(super) fn leaf_of(target: &SessionTarget) -> &NodeId {
    match target {
        SessionTarget::Leaf(node) | SessionTarget::Replan(node) => node,
        SessionTarget::Repair(repair) => &repair.node,
    }
}

/// The next step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The run stops without an iteration.
    Stop(StopReason),
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
    pub limits: SessionLimits,
    /// The tools that the agent may use, from tools.json of the node and its ancestors.
    pub tools: Tools,
}

/// The task of a session, as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedTask {
    /// The ids from the root to the selected node, `root/api/login`; empty in a repair.
    pub path: String,
    /// The selected node's title; empty in a repair.
    pub title: String,
    pub attempt: Ordinal,
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
}

/// Decides the next step. It depends on the snapshot alone; an error is one that the user must fix.
pub fn plan(snapshot: &Snapshot) -> Result<NextStep, PromptError> {
    let PlannedSession { target, selected } = match next_session(snapshot) {
        Ok(session) => session,
        Err(stop) => return Ok(NextStep::Stop(stop)),
    };
    let attempt = match (&target, &selected) {
        (SessionTarget::Leaf(_), Some(selected)) => {
            Ordinal { nth: selected.leaf.attempts.saturating_add(1), of: selected.leaf.max_attempts }
        }
        (SessionTarget::Repair(repair), _) => {
            Ordinal { nth: repair.tries.saturating_add(1), of: REPAIRS_MAX }
        }
        (SessionTarget::Leaf(_) | SessionTarget::Replan(_), _) => Ordinal { nth: 1, of: 1 },
    };
    let path = match (&selected, &target) {
        (Some(selected), _) => selected.path.clone(),
        (None, SessionTarget::Repair(repair)) => snapshot.tree.path_to(&repair.node).unwrap_or_default(),
        (None, SessionTarget::Leaf(_) | SessionTarget::Replan(_)) => Vec::new(),
    };
    let (agent, tools) = agent_and_tools(snapshot, &path)?;
    let context = prompt::context_files(snapshot, &target, selected.as_ref());
    let prompt = prompt::compose(snapshot, &target, selected.as_ref(), attempt, &context)?;
    let config = &snapshot.config;
    let limit = |value: i64| u64::try_from(value).unwrap_or_default();
    Ok(NextStep::Work(Box::new(Job {
        run_id: snapshot.run_id.clone(),
        iteration: snapshot.state.next_iter,
        task: SelectedTask {
            path: selected.as_ref().map(|selected| path_text(&selected.path)).unwrap_or_default(),
            title: selected.map(|selected| selected.leaf.title.clone()).unwrap_or_default(),
            attempt,
        },
        target,
        context,
        prompt,
        agent,
        guard: config.guard.clone(),
        limits: SessionLimits {
            iteration_secs: limit(config.iteration_timeout_secs.get()),
            idle_secs: Some(limit(config.idle_timeout_secs.get())).filter(|secs| *secs > 0),
            executor_output_bytes: limit(config.executor_output_limit_bytes.get()),
            guard_output_bytes: limit(config.guard_output_limit_bytes.get()),
        },
        tools,
    })))
}

/// The agent for the node at the end of this path, and the tools that it may use there. A model in tools.json replaces the one
/// of the ladder's first rung only: a higher rung has its own model on purpose.
fn agent_and_tools(snapshot: &Snapshot, path: &[&Node]) -> Result<(AgentChoice, Tools), ToolsError> {
    let mut agent = next_agent(&snapshot.config, &snapshot.state, path.last().copied());
    let files = path.iter().filter_map(|node| Some((&node.id, snapshot.node_files.tools.get(&node.id)?)));
    let effective = EffectiveTools::along(files)?;
    effective.check(&agent.executor)?;
    if let (1, Some(model)) = (agent.rung.nth, &effective.tools.model) {
        agent.executor.model = Some(model.clone());
    }
    Ok((agent, effective.tools))
}

/// A session before its prompt is composed.
struct PlannedSession<'t> {
    target: SessionTarget,
    /// The selected leaf; `None` in a repair.
    selected: Option<SelectedLeaf<'t>>,
}

/// The next session, or the first reason to stop, in a fixed order.
fn next_session(snapshot: &Snapshot) -> Result<PlannedSession<'_>, StopReason> {
    let state = &snapshot.state;
    let can_replan = |selected: &SelectedLeaf<'_>| {
        snapshot.config.on_stuck == OnStuck::Replan && !state.replanned.contains(&selected.leaf.id)
    };
    let session = match (select(&snapshot.tree), &state.repair) {
        (Selection::Complete, _) => return Err(StopReason::Complete),
        (Selection::Leaf(_) | Selection::Stuck(_), Some(repair)) => {
            PlannedSession { target: SessionTarget::Repair(Box::new(repair.clone())), selected: None }
        }
        (Selection::Leaf(leaf), None) => {
            PlannedSession { target: SessionTarget::Leaf(leaf.leaf.id.clone()), selected: Some(leaf) }
        }
        (Selection::Stuck(leaf), None) if can_replan(&leaf) => {
            PlannedSession { target: SessionTarget::Replan(leaf.leaf.id.clone()), selected: Some(leaf) }
        }
        (Selection::Stuck(leaf), None) => return Err(StopReason::Stuck { node: leaf.leaf.id.clone() }),
    };
    let max = snapshot.config.max_iterations.as_u32();
    if state.next_iter.get() > max {
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
