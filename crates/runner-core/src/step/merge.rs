//! An agent's tree taken over into the runner's: what the agent may write is kept, what the runner owns is not.

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::model::id::NodeId;
use crate::model::tree::index::NodeIndex;
use crate::model::tree::{AgentTree, Node, Tree, TreeProblem};

/// One edit of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEdit {
    /// The node.
    pub node: NodeId,
    /// What was done to it.
    #[serde(flatten)]
    pub edit: EditKind,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum EditKind {
    /// It is new.
    Added { under: Option<NodeId> },
    /// It is gone.
    Removed { from: Option<NodeId> },
    /// It has another parent.
    Moved { from: Option<NodeId>, to: Option<NodeId> },
    /// It has another place among its siblings.
    Reordered { from: i64, to: i64 },
    /// It has another title.
    Title,
    /// It has another goal.
    Goal,
    /// It has other points of acceptance.
    Acceptance,
    /// A kind of edit that only a newer runner knows.
    #[serde(other)]
    Unknown,
}

/// The agent's plan with the runner's own fields: passes, attempts and limits of known nodes are those of the
/// tree before, new nodes are open and unattempted, inner nodes are derived. Doing it twice changes nothing.
pub fn merge(before: &Tree, agent: &AgentTree, config: &Config) -> Result<Tree, Vec<TreeProblem>> {
    if agent.is(before) {
        return Ok(before.clone());
    }
    let places = NodeIndex::of(before.root());
    let attempts_max = config.max_attempts_default.as_u32();
    Tree::new(merged(agent.root(), &places, attempts_max))
}

fn merged(node: &Node, before: &NodeIndex<'_>, attempts_max: u32) -> Node {
    let children: Vec<Node> = node.children.iter().map(|child| merged(child, before, attempts_max)).collect();
    let known = before.get(&node.id).map(|place| place.node);
    let leaf_passes = known.is_some_and(|known| known.passes);
    Node {
        id: node.id.clone(),
        order: node.order,
        title: node.title.clone(),
        goal: node.goal.clone(),
        acceptance: node.acceptance.clone(),
        passes: if children.is_empty() { leaf_passes } else { children.iter().all(|child| child.passes) },
        attempts: known.map_or(0, |known| known.attempts),
        max_attempts: known.map_or(node.max_attempts.min(attempts_max), |known| known.max_attempts),
        children,
    }
}

/// Every difference between two plans, by node; what the runner owns is no part of a plan.
pub fn plan_edits(before: &Tree, after: &Tree) -> Vec<PlanEdit> {
    if before == after {
        return Vec::new();
    }
    let (old, new) = (NodeIndex::of(before.root()), NodeIndex::of(after.root()));
    let mut edits = Vec::new();
    let mut note = |node: &NodeId, edit| edits.push(PlanEdit { node: node.clone(), edit });
    for was in old.iter() {
        let id = &was.node.id;
        let Some(is) = new.get(id) else {
            note(id, EditKind::Removed { from: was.parent.cloned() });
            continue;
        };
        if is.parent != was.parent {
            note(id, EditKind::Moved { from: was.parent.cloned(), to: is.parent.cloned() });
        }
        if is.node.order != was.node.order {
            note(id, EditKind::Reordered { from: was.node.order, to: is.node.order });
        }
        let texts = [
            (is.node.title != was.node.title, EditKind::Title),
            (is.node.goal != was.node.goal, EditKind::Goal),
            (is.node.acceptance != was.node.acceptance, EditKind::Acceptance),
        ];
        texts.into_iter().filter(|(edited, _)| *edited).for_each(|(_, edit)| note(id, edit));
    }
    for is in new.iter().filter(|is| old.get(&is.node.id).is_none()) {
        note(&is.node.id, EditKind::Added { under: is.parent.cloned() });
    }
    edits
}
