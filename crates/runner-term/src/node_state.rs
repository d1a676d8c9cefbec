//! The states that a node can be in, as people see them.

use runner_core::model::id::NodeId;
use runner_core::model::tree::{Node, Selection, Tree, select};

use crate::style::{Glyph, TextRole};

/// What is to be said of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    Passed,
    /// Someone is at work on it now.
    Running,
    Next,
    Stuck,
    Retried,
    Open,
}

/// What decides the state of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFlags {
    pub passes: bool,
    pub is_running: bool,
    /// A leaf without attempts left.
    pub is_exhausted: bool,
    pub is_next: bool,
    /// A leaf that was tried.
    pub is_tried: bool,
}

impl NodeState {
    /// The state that follows.
    pub fn of(marks: NodeFlags) -> Self {
        match marks {
            NodeFlags { passes: true, .. } => Self::Passed,
            NodeFlags { is_running: true, .. } => Self::Running,
            NodeFlags { is_exhausted: true, .. } => Self::Stuck,
            NodeFlags { is_next: true, .. } => Self::Next,
            NodeFlags { is_tried: true, .. } => Self::Retried,
            NodeFlags { .. } => Self::Open,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Running => "running",
            Self::Next => "next",
            Self::Stuck => "stuck",
            Self::Retried => "retried",
            Self::Open => "open",
        }
    }

    /// Its glyph.
    pub fn glyph(self) -> Glyph {
        match self {
            Self::Passed => Glyph::Passed,
            Self::Running | Self::Next => Glyph::Next,
            Self::Stuck => Glyph::Failed,
            Self::Retried => Glyph::Retried,
            Self::Open => Glyph::Open,
        }
    }

    /// Its colour.
    pub fn role(self) -> TextRole {
        match self {
            Self::Passed => TextRole::Good,
            Self::Running | Self::Next => TextRole::Active,
            Self::Stuck => TextRole::Bad,
            Self::Retried => TextRole::Warn,
            Self::Open => TextRole::Faint,
        }
    }
}

/// Tells the state of each node of one tree.
#[derive(Debug)]
pub struct NodeStates<'t> {
    next: Option<&'t NodeId>,
}

impl<'t> NodeStates<'t> {
    /// Finds what comes next.
    pub fn new(tree: &'t Tree) -> Self {
        let next = match select(tree) {
            Selection::Leaf(choice) => Some(&choice.leaf.id),
            Selection::Stuck(_) | Selection::Complete => None,
        };
        Self { next }
    }

    /// The state of a node.
    pub fn of(&self, node: &Node) -> NodeState {
        NodeState::of(NodeFlags {
            passes: node.passes,
            is_running: false,
            is_exhausted: node.is_leaf() && node.is_exhausted(),
            is_next: self.next == Some(&node.id),
            is_tried: node.is_leaf() && node.attempts > 0,
        })
    }
}
