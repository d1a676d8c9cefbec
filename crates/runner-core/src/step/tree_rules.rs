//! The rules that bind an agent, all of them at once, each breach with what to do instead.

use std::fmt;

use serde::Serialize;

use super::plan::SessionTarget;
use crate::config::RemovalPolicy;
use crate::model::agent_output::AgentStatus;
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::tree::index::{IndexedNode, NodeIndex};
use crate::model::tree::{AgentTree, Node, Tree};

/// One broken rule. A node is named by its path in the tree before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Violation {
    /// A node that passed is gone.
    PassedRemoved { node: String },
    /// A node that passed has another parent.
    PassedMoved { node: String },
    /// A node that passed is not the same any more.
    PassedChanged { node: String, fields: Vec<&'static str> },
    /// A node that passed has a child that it did not have.
    PassedGained { node: String, child: NodeId },
    /// An open node is gone.
    OpenRemoved { node: String },
    /// The root is another node.
    RootReplaced { node: String },
    /// The selected node is gone.
    SelectedRemoved { node: String },
    /// The selected node has children although the status says that it was worked on.
    Gained { node: String, status: AgentStatus },
    /// The selected node has no children although the status says that it was divided.
    NotGained { node: String },
    /// A protected file was changed.
    Protected { path: RepoPath },
    /// A breach that a record tells in these words; judging never gives it.
    Told { words: String },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PassedRemoved { node } => {
                write!(f, "{node}: passed and may not be removed: leave it as it is")
            }
            Self::PassedMoved { node } => {
                write!(f, "{node}: passed and may not be moved: leave it under its parent")
            }
            Self::PassedChanged { node, fields } => write!(
                f,
                "{node}: passed and may not be changed (changed: {}): leave it as it is, and add a new open node \
                 for further work",
                fields.join(", ")
            ),
            Self::PassedGained { node, child } => write!(
                f,
                "{node}: passed and may not get the child `{child}`: put new work under an open node"
            ),
            Self::OpenRemoved { node } => write!(
                f,
                "{node}: is open and may not be removed: leave it, edit it, or do what it asks and answer `done` \
                 when it is selected"
            ),
            Self::RootReplaced { node } => {
                write!(f, "{node}: is the root and stays the root: put other nodes below it")
            }
            Self::SelectedRemoved { node } => {
                write!(f, "{node}: is the selected node and must stay in the tree")
            }
            Self::Gained { node, status } => write!(
                f,
                "{node}: got children although the status is `{}`: answer `decomposed` when you divide the \
                 selected node, and leave it without children otherwise",
                status.as_str()
            ),
            Self::NotGained { node } => write!(
                f,
                "{node}: the status is `decomposed`, but the selected node has no children: add them to \
                 tree.json, or answer `done` or `retry`"
            ),
            Self::Protected { path } => {
                write!(f, "`{path}`: is protected and was put back: reach the goal without changing it")
            }
            Self::Told { words } => f.write_str(words),
        }
    }
}

/// Every rule about the plan that an agent's tree breaks, sorted.
pub fn tree_violations(
    before: &Tree,
    after: &AgentTree,
    aim: &SessionTarget,
    status: AgentStatus,
    removal: RemovalPolicy,
) -> Vec<Violation> {
    let (old, new) = (NodeIndex::of(before.root()), NodeIndex::of(after.root()));
    let mut violations = Vec::new();
    if before.root().id != after.root().id {
        violations.push(Violation::RootReplaced { node: before.root().id.to_string() });
    }
    for was in old.iter() {
        let is = new.get(&was.node.id);
        if was.node.passes {
            violations.extend(passed_breaches(&old, was, is));
        } else if is.is_none() && aim.node() != Some(&was.node.id) && removal == RemovalPolicy::Refuse {
            violations.push(Violation::OpenRemoved { node: old.path(&was.node.id) });
        }
    }
    if let Some(selected) = aim.node().and_then(|id| old.get(id)) {
        let node = old.path(&selected.node.id);
        let gained = new.get(&selected.node.id).map(|is| !is.node.is_leaf());
        violations.extend(match (gained, status) {
            (None, _) => Some(Violation::SelectedRemoved { node }),
            (Some(true), AgentStatus::Done | AgentStatus::Retry) => Some(Violation::Gained { node, status }),
            (Some(false), AgentStatus::Decomposed) => Some(Violation::NotGained { node }),
            (Some(true), AgentStatus::Decomposed) | (Some(false), AgentStatus::Done | AgentStatus::Retry) => {
                None
            }
        });
    }
    violations.sort();
    violations
}

fn passed_breaches(old: &NodeIndex<'_>, was: IndexedNode<'_>, is: Option<IndexedNode<'_>>) -> Vec<Violation> {
    let node = old.path(&was.node.id);
    let Some(is) = is else { return vec![Violation::PassedRemoved { node }] };
    let mut breaches = Vec::new();
    if is.parent != was.parent {
        breaches.push(Violation::PassedMoved { node: node.clone() });
    }
    let fields = changed_fields(was.node, is.node);
    if !fields.is_empty() {
        breaches.push(Violation::PassedChanged { node: node.clone(), fields });
    }
    let known = |child: &Node| was.node.children.iter().any(|known| known.id == child.id);
    let gained = is.node.children.iter().filter(|child| !known(child));
    breaches
        .extend(gained.map(|child| Violation::PassedGained { node: node.clone(), child: child.id.clone() }));
    breaches
}

fn changed_fields(was: &Node, is: &Node) -> Vec<&'static str> {
    let fields = [
        ("order", was.order == is.order),
        ("title", was.title == is.title),
        ("goal", was.goal == is.goal),
        ("acceptance", was.acceptance == is.acceptance),
        ("passes", was.passes == is.passes),
        ("attempts", was.attempts == is.attempts),
        ("max_attempts", was.max_attempts == is.max_attempts),
    ];
    fields.into_iter().filter(|(_, same)| !same).map(|(field, _)| field).collect()
}
