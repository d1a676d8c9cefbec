//! The rules for an agent's tree. All violations are reported at once, each with what to do instead.

use std::fmt;

use serde::Serialize;

use super::plan::SessionTarget;
use crate::config::RemovalPolicy;
use crate::layout::checks_path;
use crate::model::agent_output::AgentStatus;
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::tree::index::{IndexedNode, NodeIndex};
use crate::model::tree::{AgentTree, Node, Tree};

/// One violated rule. A node is named by its path in the tree before the session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Violation {
    PassedRemoved {
        node: String,
    },
    PassedMoved {
        node: String,
    },
    PassedChanged {
        node: String,
        fields: Vec<&'static str>,
    },
    /// A node that passed got a new child.
    PassedGained {
        node: String,
        child: NodeId,
    },
    OpenRemoved {
        node: String,
    },
    RootReplaced {
        node: String,
    },
    SelectedRemoved {
        node: String,
    },
    /// The selected node got children although the status is not `decomposed`.
    UnexpectedChildren {
        node: String,
        status: AgentStatus,
    },
    /// The selected node has no children although the status is `decomposed`.
    MissingChildren {
        node: String,
    },
    /// A session added or moved a node below the lowest level for agents.
    TooDeep {
        node: String,
        level: usize,
        max: usize,
    },
    TooManyChildren {
        node: String,
        count: usize,
        max: usize,
    },
    TooManyNodes {
        count: usize,
        max: usize,
    },
    /// A planning session asked more questions than it may.
    TooManyQuestions {
        count: u32,
    },
    /// A planning session answered `retry` without a question.
    MissingQuestions,
    Protected {
        path: RepoPath,
    },
    /// The checks of a new task are invalid.
    InvalidChecks {
        node: NodeId,
        problem: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PassedRemoved { node } => {
                write!(f, "{node}: has passed and must not be removed: leave it as it is")
            }
            Self::PassedMoved { node } => {
                write!(f, "{node}: has passed and must not be moved: leave it under its parent")
            }
            Self::PassedChanged { node, fields } => write!(
                f,
                "{node}: has passed and must not change (changed: {}): leave it as it is and add a new open node for \
                 further work",
                fields.join(", ")
            ),
            Self::PassedGained { node, child } => write!(
                f,
                "{node}: has passed and must not get the child `{child}`: add new work under an open node"
            ),
            Self::OpenRemoved { node } => write!(
                f,
                "{node}: is open and must not be removed: keep it, edit it, or do it and answer `done` when it is \
                 selected"
            ),
            Self::RootReplaced { node } => {
                write!(f, "{node}: is the root and must stay the root: add other nodes below it")
            }
            Self::SelectedRemoved { node } => {
                write!(f, "{node}: is the selected node and must stay in the tree")
            }
            Self::UnexpectedChildren { node, status } => write!(
                f,
                "{node}: got children although the status is `{}`: answer `decomposed` if you split the \
                 selected node, and add no children otherwise",
                status.as_str()
            ),
            Self::MissingChildren { node } => write!(
                f,
                "{node}: the status is `decomposed`, but the selected node has no children: add them to \
                 tree.json, or answer `done` or `retry`"
            ),
            Self::TooDeep { node, level, max } => write!(
                f,
                "{node}: was added on level {level}, but `max_depth` is {max}: do the work, or split a node higher up"
            ),
            Self::TooManyChildren { node, count, max } => write!(
                f,
                "{node}: got {count} children, but `max_children` is {max}: add fewer and larger ones"
            ),
            Self::TooManyNodes { count, max } => {
                write!(
                    f,
                    "the tree: has {count} nodes, but `max_nodes` is {max}: do the work instead of splitting it"
                )
            }
            Self::TooManyQuestions { count } => write!(
                f,
                "questions.md: got {count} questions, but at most {QUESTIONS_MAX} are allowed: decide what you can, and record it \
                 in assumptions.md"
            ),
            Self::MissingQuestions => f.write_str(
                "questions.md: got no question, but the status is `retry`: ask what you must know there, or write the plan and \
                 answer `decomposed`",
            ),
            Self::Protected { path } => {
                write!(f, "`{path}`: is protected and was restored: reach the goal without changing it")
            }
            Self::InvalidChecks { node, problem } => write!(f, "{}: {problem}", checks_path(node)),
        }
    }
}

/// How many questions a planning session may ask.
pub const QUESTIONS_MAX: u32 = 5;

/// What is wrong with the questions of a planning session.
pub(super) fn question_violation(status: AgentStatus, questions: u32) -> Option<Violation> {
    match status {
        _ if questions > QUESTIONS_MAX => Some(Violation::TooManyQuestions { count: questions }),
        AgentStatus::Retry if questions == 0 => Some(Violation::MissingQuestions),
        AgentStatus::Retry | AgentStatus::Done | AgentStatus::Decomposed => None,
    }
}

/// Every rule that an agent's tree violates, sorted.
pub fn tree_violations(
    before: &Tree,
    after: &AgentTree,
    target: &SessionTarget,
    status: AgentStatus,
    removal: RemovalPolicy,
) -> Vec<Violation> {
    let old = NodeIndex::of(before.root());
    let new = NodeIndex::of(after.root());
    let mut violations = Vec::new();
    if before.root().id != after.root().id {
        violations.push(Violation::RootReplaced { node: before.root().id.to_string() });
    }
    for was in old.iter() {
        let is = new.get(&was.node.id);
        if was.node.passes {
            violations.extend(passed_violations(&old, was, is));
        } else if is.is_none() && target.node() != Some(&was.node.id) && removal == RemovalPolicy::Refuse {
            violations.push(Violation::OpenRemoved { node: old.path(&was.node.id) });
        }
    }
    // A planning session may give any open node children, and answers for the plan as a whole.
    let selected = target.node().filter(|_| !matches!(target, SessionTarget::Plan(_)));
    if let Some(selected) = selected.and_then(|id| old.get(id)) {
        let node = old.path(&selected.node.id);
        let has_children = new.get(&selected.node.id).map(|is| !is.node.is_leaf());
        violations.extend(match (has_children, status) {
            (None, _) => Some(Violation::SelectedRemoved { node }),
            (Some(true), AgentStatus::Done | AgentStatus::Retry) => {
                Some(Violation::UnexpectedChildren { node, status })
            }
            (Some(false), AgentStatus::Decomposed) => Some(Violation::MissingChildren { node }),
            (Some(true), AgentStatus::Decomposed) | (Some(false), AgentStatus::Done | AgentStatus::Retry) => {
                None
            }
        });
    }
    violations.sort();
    violations
}

fn passed_violations(
    old: &NodeIndex<'_>,
    was: IndexedNode<'_>,
    is: Option<IndexedNode<'_>>,
) -> Vec<Violation> {
    let node = old.path(&was.node.id);
    let Some(is) = is else { return vec![Violation::PassedRemoved { node }] };
    let mut violations = Vec::new();
    if is.parent != was.parent {
        violations.push(Violation::PassedMoved { node: node.clone() });
    }
    let fields = changed_fields(was.node, is.node);
    if !fields.is_empty() {
        violations.push(Violation::PassedChanged { node: node.clone(), fields });
    }
    for child in &is.node.children {
        if !was.node.children.iter().any(|known| known.id == child.id) {
            violations.push(Violation::PassedGained { node: node.clone(), child: child.id.clone() });
        }
    }
    violations
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
