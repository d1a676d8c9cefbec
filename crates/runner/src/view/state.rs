//! The states that a node can be in, as people see them.

use runner_core::id::NodeId;
use runner_core::tree::{Node, Selection, Tree, select};

use crate::out::{Glyph, Ink};

/// What is to be said of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Passed,
    Next,
    Stuck,
    Retried,
    Open,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Next => "next",
            Self::Stuck => "stuck",
            Self::Retried => "retried",
            Self::Open => "open",
        }
    }

    pub(crate) fn glyph(self) -> Glyph {
        match self {
            Self::Passed => Glyph::Passed,
            Self::Next => Glyph::Next,
            Self::Stuck => Glyph::Failed,
            Self::Retried => Glyph::Retried,
            Self::Open => Glyph::Open,
        }
    }

    pub(crate) fn ink(self) -> Ink {
        match self {
            Self::Passed => Ink::Good,
            Self::Next => Ink::Active,
            Self::Stuck => Ink::Bad,
            Self::Retried => Ink::Warn,
            Self::Open => Ink::Faint,
        }
    }
}

/// Tells the state of each node of one tree.
pub(crate) struct States<'t> {
    next: Option<&'t NodeId>,
}

impl<'t> States<'t> {
    pub(crate) fn new(tree: &'t Tree) -> Self {
        let next = match select(tree) {
            Selection::Leaf(choice) => Some(&choice.leaf.id),
            Selection::Stuck(_) | Selection::Complete => None,
        };
        Self { next }
    }

    pub(crate) fn of(&self, node: &Node) -> State {
        match node {
            node if node.passes => State::Passed,
            node if node.is_leaf() && node.is_exhausted() => State::Stuck,
            node if self.next == Some(&node.id) => State::Next,
            node if node.is_leaf() && node.attempts > 0 => State::Retried,
            _ => State::Open,
        }
    }
}
