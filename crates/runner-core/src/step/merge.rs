//! Merges an agent's tree into the runner's: the agent's plan, with the runner's own fields as they were before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::model::id::NodeId;
use crate::model::tree::index::NodeIndex;
use crate::model::tree::{AgentTree, Node, Tree, TreeProblem};

/// One edit of the plan by an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEdit {
    pub node: NodeId,
    #[serde(flatten)]
    pub edit: EditKind,
}

/// How a node was edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum EditKind {
    Added {
        under: Option<NodeId>,
    },
    Removed {
        from: Option<NodeId>,
    },
    Moved {
        from: Option<NodeId>,
        to: Option<NodeId>,
    },
    Reordered {
        from: i64,
        to: i64,
    },
    Title,
    Goal,
    Acceptance,
    /// A kind of edit that only a newer runner knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// The agent's plan with the runner's own fields: passes, attempts and limits of known nodes are those of the tree before,
/// new nodes are open without attempts, and inner nodes are derived. Merging the result again changes nothing.
///
/// The acceptance criteria of the node that the session works on are kept too, since it must not decide what its own work is
/// measured by: it may only add some after them.
pub fn merge(
    before: &Tree,
    agent: &AgentTree,
    config: &Config,
    worked_on: Option<&NodeId>,
) -> Result<Tree, Vec<TreeProblem>> {
    if agent.is(before) {
        return Ok(before.clone());
    }
    let known = NodeIndex::of(before.root());
    let attempts_max = u32::try_from(config.max_attempts_default.get()).unwrap_or(1);
    let mut root = merged(agent.root(), &known, attempts_max);
    let kept = worked_on.and_then(|id| known.get(id)).map(|entry| &entry.node.acceptance);
    if let Some((kept, node)) = kept.zip(worked_on.and_then(|id| root.find_mut(id)))
        && !node.acceptance.starts_with(kept)
    {
        node.acceptance.clone_from(kept);
    }
    Tree::new(root)
}

fn merged(node: &Node, before: &NodeIndex<'_>, attempts_max: u32) -> Node {
    let children: Vec<Node> = node.children.iter().map(|child| merged(child, before, attempts_max)).collect();
    let known = before.get(&node.id).map(|entry| entry.node);
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

/// Every difference between two plans, in the order of the nodes. The runner's own fields are not part of a plan.
pub fn plan_edits(before: &Tree, after: &Tree) -> Vec<PlanEdit> {
    if before == after {
        return Vec::new();
    }
    let old = NodeIndex::of(before.root());
    let new = NodeIndex::of(after.root());
    let mut edits = Vec::new();
    let mut record = |node: &NodeId, edit| edits.push(PlanEdit { node: node.clone(), edit });
    for was in old.iter() {
        let id = &was.node.id;
        let Some(is) = new.get(id) else {
            record(id, EditKind::Removed { from: was.parent.cloned() });
            continue;
        };
        if is.parent != was.parent {
            record(id, EditKind::Moved { from: was.parent.cloned(), to: is.parent.cloned() });
        }
        if is.node.order != was.node.order {
            record(id, EditKind::Reordered { from: was.node.order, to: is.node.order });
        }
        if is.node.title != was.node.title {
            record(id, EditKind::Title);
        }
        if is.node.goal != was.node.goal {
            record(id, EditKind::Goal);
        }
        if is.node.acceptance != was.node.acceptance {
            record(id, EditKind::Acceptance);
        }
    }
    for is in new.iter().filter(|is| old.get(&is.node.id).is_none()) {
        record(&is.node.id, EditKind::Added { under: is.parent.cloned() });
    }
    edits
}
