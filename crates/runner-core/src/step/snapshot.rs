//! What a step reads, once, before it decides anything.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::model::id::{NodeId, RunId};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tools::Tools;
use crate::model::tree::Tree;

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
    /// `nodes/<node-id>/context.md`, at least that of the node [`select`](crate::model::tree::select) names.
    pub node_contexts: BTreeMap<NodeId, String>,
    /// `nodes/<node-id>/tools.json`, at least those of the nodes on the way to the session's node.
    pub tools: BTreeMap<NodeId, Tools>,
    /// What lies in `nodes/<node-id>/artifacts/`, at least of the node that is selected, by name.
    pub artifacts: BTreeMap<NodeId, Vec<Artifact>>,
    /// The user's own prompt templates by file name (`contract.md`); the rest are the built-in ones.
    pub templates: BTreeMap<String, String>,
    /// How many commits of the user's own lie on top of the runner's last one.
    pub user_commits: u32,
}

/// A file that was kept for a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Artifact {
    /// Its path from the node's `artifacts/` on.
    pub path: RepoPath,
    /// Its size.
    pub bytes: u64,
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
