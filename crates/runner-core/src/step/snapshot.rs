//! What a step reads, once, before it decides anything.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::id::{NodeId, RunId};
use crate::run_state::RunState;
use crate::tree::Tree;

/// The state of a run as its last commit has it. The rules of the run (configuration, templates) are those that
/// `runner start` committed, never what an agent wrote since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The run.
    pub run_id: RunId,
    /// GOAL.md without its front matter.
    pub goal: String,
    /// The pinned configuration.
    pub config: Config,
    /// The tree.
    pub tree: Tree,
    /// The run's book-keeping.
    pub state: RunState,
    /// The memory files.
    pub memory: Memory,
    /// `nodes/<node-id>/context.md`, at least that of the node [`select`](crate::tree::select) names.
    pub node_contexts: BTreeMap<NodeId, String>,
    /// The user's own prompt templates by file name (`contract.md`); the rest are the built-in ones.
    pub templates: BTreeMap<String, String>,
    /// How many commits of the user's own lie on top of the runner's last one.
    pub own_commits: u32,
}

/// The memory files, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// assumptions.md
    pub assumptions: String,
    /// questions.md
    pub questions: String,
    /// feedback.md
    pub feedback: String,
    /// improvements.md
    pub improvements: String,
}
