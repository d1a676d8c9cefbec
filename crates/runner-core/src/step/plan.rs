//! Snapshot to job: which session comes next, decided so completely that carrying it out leaves no choice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::escalation::{AgentChoice, next_agent};
use super::outcome::StopReason;
use super::snapshot::Snapshot;
use crate::config::{CommandArgv, Executor, OnStuck, ProtectPolicy};
use crate::model::cost::{ReachedLimit, reached};
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::run_state::PendingRepair;
use crate::model::tools::{EffectiveTools, Tools, ToolsError};
use crate::model::tree::{Node, SelectedLeaf, Selection, path_text, select};
use crate::prompt::{self, ContextFiles, Prompt, PromptError};

/// How many repairs a rejected tree gets before the loop goes on without it.
pub const REPAIRS_MAX: u32 = 2;

/// What a session is for, as `RUNNER_MODE` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SessionMode {
    /// To work on a leaf.
    Leaf,
    /// To mend a rejected tree.
    Repair,
    /// To rewrite or split a leaf that is stuck.
    Replan,
}

impl SessionMode {
    /// The mode as agents see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Repair => "repair",
            Self::Replan => "replan",
        }
    }
}

/// What a session is for, with the node it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionTarget {
    /// To work on this leaf.
    Leaf(NodeId),
    /// To rewrite or split this leaf.
    Replan(NodeId),
    /// To mend this rejected tree; no leaf is selected.
    Repair(Box<PendingRepair>),
}

impl SessionTarget {
    /// The mode.
    pub fn mode(&self) -> SessionMode {
        match self {
            Self::Leaf(_) => SessionMode::Leaf,
            Self::Replan(_) => SessionMode::Replan,
            Self::Repair(_) => SessionMode::Repair,
        }
    }

    /// The selected node.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Leaf(node) | Self::Replan(node) => Some(node),
            Self::Repair(_) => None,
        }
    }
}

/// The leaf that a session is about: a repair is about the one whose session left the rejected tree.
pub(super) fn leaf_of(aim: &SessionTarget) -> &NodeId {
    match aim {
        SessionTarget::Leaf(node) | SessionTarget::Replan(node) => node,
        SessionTarget::Repair(repair) => &repair.node,
    }
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Nothing: the run stops here, and no iteration is made.
    Stop(StopReason),
    /// This session.
    Work(Box<Job>),
}

/// One session, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The run.
    pub run_id: RunId,
    /// The iteration's number.
    pub iteration: IterationNumber,
    /// What the session is for.
    pub target: SessionTarget,
    /// The ids from the root to the selected node, `root/api/login`; empty in a repair.
    pub path: String,
    /// The selected node's title; empty in a repair.
    pub title: String,
    /// Which try this is.
    pub attempt: Ordinal,
    /// The files for `.runner/context/`.
    pub context: ContextFiles,
    /// The prompt.
    pub prompt: Prompt,
    /// The agent.
    pub executor: Executor,
    /// The agent's name.
    pub agent: String,
    /// Its rung on the ladder.
    pub rung: Ordinal,
    /// The guard's program and arguments.
    pub guard: CommandArgv,
    /// The patterns of protected paths.
    pub protected: Vec<String>,
    /// What happens to changes of them.
    pub protect: ProtectPolicy,
    /// What bounds the session.
    pub limits: SessionLimits,
    /// What the agent may use, by the files of the node and its ancestors.
    pub tools: Tools,
}

/// One of so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ordinal {
    /// From 1.
    pub nth: u32,
    /// How many there are.
    pub of: u32,
}

/// What bounds a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// How long agent and guard may take together.
    pub iteration_secs: u64,
    /// How long the agent may be silent; none where that limit is off.
    pub idle_secs: Option<u64>,
    /// How much of each of the agent's streams is kept.
    pub executor_output_bytes: u64,
    /// How much of the guard's output is kept.
    pub guard_output_bytes: u64,
}

/// Decides what comes next. A function of the snapshot alone; a fault is the user's to mend.
pub fn plan(snapshot: &Snapshot) -> Result<NextStep, PromptError> {
    let (aim, choice) = match decide(snapshot) {
        Ok(found) => found,
        Err(stop) => return Ok(NextStep::Stop(stop)),
    };
    let attempt = match (&aim, &choice) {
        (SessionTarget::Leaf(_), Some(choice)) => {
            Ordinal { nth: choice.leaf.attempts.saturating_add(1), of: choice.leaf.max_attempts }
        }
        (SessionTarget::Repair(repair), _) => {
            Ordinal { nth: repair.tries.saturating_add(1), of: REPAIRS_MAX }
        }
        (SessionTarget::Leaf(_) | SessionTarget::Replan(_), _) => Ordinal { nth: 1, of: 1 },
    };
    let on_path = match (&choice, &aim) {
        (Some(choice), _) => choice.path.clone(),
        (None, SessionTarget::Repair(repair)) => snapshot.tree.path_to(&repair.node).unwrap_or_default(),
        (None, SessionTarget::Leaf(_) | SessionTarget::Replan(_)) => Vec::new(),
    };
    let (agent, tools) = equip(snapshot, &on_path)?;
    let context = prompt::context_files(snapshot, &aim, choice.as_ref());
    let prompt = prompt::compose(snapshot, &aim, choice.as_ref(), attempt, &context)?;
    let config = &snapshot.config;
    let bytes = |limit: i64| u64::try_from(limit).unwrap_or_default();
    Ok(NextStep::Work(Box::new(Job {
        run_id: snapshot.run_id.clone(),
        iteration: snapshot.state.next_iter,
        path: choice.as_ref().map(|choice| path_text(&choice.path)).unwrap_or_default(),
        title: choice.map(|choice| choice.leaf.title.clone()).unwrap_or_default(),
        target: aim,
        attempt,
        context,
        prompt,
        agent: agent.executor.label(),
        executor: agent.executor,
        rung: agent.rung,
        guard: config.guard.command.clone(),
        protected: config.guard.protected.clone(),
        protect: config.guard.protect,
        limits: SessionLimits {
            iteration_secs: bytes(config.iteration_timeout_secs.get()),
            idle_secs: Some(bytes(config.idle_timeout_secs.get())).filter(|secs| *secs > 0),
            executor_output_bytes: bytes(config.executor_output_limit_bytes.get()),
            guard_output_bytes: bytes(config.guard_output_limit_bytes.get()),
        },
        tools,
    })))
}

/// The agent for a session at the end of this path, and what it may use there. A node's own model is that of the
/// ladder's first rung: who climbs it asked for the model that stands there.
fn equip(snapshot: &Snapshot, path: &[&Node]) -> Result<(AgentChoice, Tools), ToolsError> {
    let mut agent = next_agent(&snapshot.config, &snapshot.state, path.last().copied());
    let files = path.iter().filter_map(|node| Some((&node.id, snapshot.tools.get(&node.id)?)));
    let held = EffectiveTools::along(files)?;
    held.check(&agent.executor)?;
    if let (1, Some(model)) = (agent.rung.nth, &held.tools.model) {
        agent.executor.model = Some(model.clone());
    }
    Ok((agent, held.tools))
}

/// The one way through the reasons to stop and to go on, in their order.
fn decide(snapshot: &Snapshot) -> Result<(SessionTarget, Option<SelectedLeaf<'_>>), StopReason> {
    let state = &snapshot.state;
    let replan = |choice: &SelectedLeaf<'_>| {
        snapshot.config.on_stuck == OnStuck::Replan && !state.replanned.contains(&choice.leaf.id)
    };
    let aimed = match (select(&snapshot.tree), &state.repair) {
        (Selection::Complete, _) => return Err(StopReason::Complete),
        (Selection::Leaf(_) | Selection::Stuck(_), Some(repair)) => {
            (SessionTarget::Repair(Box::new(repair.clone())), None)
        }
        (Selection::Leaf(choice), None) => (SessionTarget::Leaf(choice.leaf.id.clone()), Some(choice)),
        (Selection::Stuck(choice), None) if replan(&choice) => {
            (SessionTarget::Replan(choice.leaf.id.clone()), Some(choice))
        }
        (Selection::Stuck(choice), None) => return Err(StopReason::Stuck { node: choice.leaf.id.clone() }),
    };
    let max = snapshot.config.max_iterations.as_u32();
    if state.next_iter.get() > max {
        return Err(StopReason::MaxIterations { max });
    }
    let leaf = leaf_of(&aimed.0);
    match reached(&snapshot.config.budget, &state.spent, state.spent_on(leaf)) {
        Some(ReachedLimit { limit, spent, max }) => {
            let node = limit.is_of_leaf().then(|| leaf.clone());
            Err(StopReason::Budget { limit, node, spent, max })
        }
        None => Ok(aimed),
    }
}
