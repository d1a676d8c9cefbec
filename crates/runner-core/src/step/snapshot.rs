//! The state of a run that a step reads once, before it decides anything, and the one function that builds it.
//!
//! The host builds it from the work tree or from a commit; [`verify`](crate::verify) and [`replay`](crate::replay) build it
//! from recorded files. All of them go through [`Snapshot::build`], because prompts must come out the same, byte for byte.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::layout::Doc;
use crate::model::checks::TaskChecks;
use crate::model::id::{NodeId, RunId};
use crate::model::protection::Protection;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tools::Tools;
use crate::model::tree::{Node, Selection, Tree, next_selection};
use crate::model::user_notes::UserNotes;

/// The state of a run in its last commit. The rules of the run (configuration, templates) are those that `runner start`
/// committed, never what an agent wrote since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub run_id: RunId,
    /// GOAL.md without its front matter.
    pub goal: String,
    pub config: Config,
    pub tree: Tree,
    pub state: RunState,
    /// What the user told the sessions.
    pub notes: UserNotes,
    pub memory: Memory,
    pub node_files: NodeFiles,
    /// The user's prompt templates by file name (`contract.md`); the others are built in.
    pub templates: BTreeMap<String, String>,
    /// How many of the user's own commits follow the runner's last one.
    pub user_commits: u32,
}

/// The files in `nodes/<node-id>/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFiles {
    /// context.md, at least for the node that [`next_selection`] returns.
    pub contexts: BTreeMap<NodeId, String>,
    /// tools.json, at least for the session's node and its ancestors.
    pub tools: BTreeMap<NodeId, Tools>,
    /// checks.toml with its files: for the selected node and its ancestors, and for every passed one where checks run again next.
    pub checks: BTreeMap<NodeId, TaskChecks>,
    /// The files in `artifacts/`, at least for the selected node, by name.
    pub artifacts: BTreeMap<NodeId, Vec<Artifact>>,
}

/// The documents of a snapshot, decoded. A caller reports one that cannot be decoded in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInputs {
    pub run_id: RunId,
    /// GOAL.md without its front matter.
    pub goal: String,
    pub config: Config,
    pub tree: Tree,
    pub state: RunState,
    /// How many of the user's own commits follow the runner's last one.
    pub user_commits: u32,
}

/// Where the files of a snapshot come from: the work tree, a commit, or a recorded set of files.
pub trait SnapshotSource {
    type Error;

    /// A memory document, or the user's notes; `None` if it does not exist.
    fn document(&self, doc: Doc) -> Option<&[u8]>;

    /// `nodes/<node-id>/context.md`, if it exists.
    fn node_context(&self, node: &NodeId) -> Result<Option<Vec<u8>>, Self::Error>;

    /// `nodes/<node-id>/tools.json`, decoded, if it exists.
    fn node_tools(&self, node: &NodeId) -> Result<Option<Tools>, Self::Error>;

    /// `nodes/<node-id>/checks.toml` with its files, decoded, if it exists.
    fn node_checks(&self, node: &NodeId) -> Result<Option<TaskChecks>, Self::Error>;

    /// The files in `nodes/<node-id>/artifacts/`, by name.
    fn artifacts(&self, node: &NodeId) -> Result<Vec<Artifact>, Self::Error>;

    /// The files in `prompts/`, by name.
    fn templates(&self) -> Result<BTreeMap<String, Vec<u8>>, Self::Error>;
}

/// The most bytes of a prompt template or a node's context.md; a longer file is ignored.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

impl Snapshot {
    /// Reads what the next session needs of the files around the documents: those of the selected node and its ancestors,
    /// and the tools of a node whose tree waits for a repair.
    pub fn build<S: SnapshotSource>(inputs: SnapshotInputs, source: &S) -> Result<Self, S::Error> {
        let SnapshotInputs { run_id, goal, config, tree, state, user_commits } = inputs;
        let path: Vec<NodeId> = match next_selection(&tree, config.on_stuck) {
            Selection::Leaf(choice) | Selection::Stuck(choice) => {
                choice.path.iter().map(|node| node.id.clone()).collect()
            }
            Selection::Complete => Vec::new(),
        };
        let repaired =
            state.repair.as_ref().and_then(|repair| tree.path_to(&repair.node)).unwrap_or_default();
        let mut tools = BTreeMap::new();
        for node in path.iter().chain(repaired.iter().map(|node| &node.id)) {
            if let Some(found) = source.node_tools(node)? {
                tools.insert(node.clone(), found);
            }
        }
        let mut contexts = BTreeMap::new();
        let mut artifacts = BTreeMap::new();
        let mut checks = BTreeMap::new();
        for node in &path {
            if let Some(found) = source.node_checks(node)? {
                checks.insert(node.clone(), found);
            }
        }
        if let Some(node) = path.last() {
            let context = source.node_context(node)?.and_then(|bytes| short_text(&bytes));
            contexts.extend(context.filter(|text| !text.is_empty()).map(|text| (node.clone(), text)));
            artifacts.insert(node.clone(), source.artifacts(node)?);
        }
        if path.is_empty() || !state.ratchet.due.is_empty() {
            read_passed_checks(tree.root(), source, &mut checks)?;
        }
        let templates = source.templates()?.into_iter();
        let text = |doc: Doc| String::from_utf8_lossy(source.document(doc).unwrap_or_default()).into_owned();
        Ok(Self {
            notes: UserNotes::decode(source.document(Doc::Notes).unwrap_or_default()).unwrap_or_default(),
            memory: Memory {
                assumptions: text(Doc::Assumptions),
                questions: text(Doc::Questions),
                feedback: text(Doc::Feedback),
                improvements: text(Doc::Improvements),
            },
            node_files: NodeFiles { contexts, tools, checks, artifacts },
            templates: templates.filter_map(|(name, bytes)| Some((name, short_text(&bytes)?))).collect(),
            run_id,
            goal,
            config,
            tree,
            state,
            user_commits,
        })
    }
}

fn read_passed_checks<S: SnapshotSource>(
    node: &Node,
    source: &S,
    checks: &mut BTreeMap<NodeId, TaskChecks>,
) -> Result<(), S::Error> {
    if node.passes
        && let Some(found) = source.node_checks(&node.id)?
    {
        checks.insert(node.id.clone(), found);
    }
    node.children.iter().try_for_each(|child| read_passed_checks(child, source, checks))
}

impl Snapshot {
    /// What the run protects: recorded by the last start and for the checks since; before the first one, what the configuration
    /// lists.
    pub fn protection(&self) -> Protection {
        match self.state.protection.clone() {
            Some(protection) => protection.whole(),
            None => Protection {
                files: self.config.guard.protected.clone().unwrap_or_default(),
                ..Protection::default()
            },
        }
    }
}

/// A text within the bound; bytes that are not UTF-8 are replaced.
fn short_text(bytes: &[u8]) -> Option<String> {
    (bytes.len() <= TEXT_BYTES_MAX).then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// A file that an agent or the user keeps for a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Artifact {
    /// From the node's `artifacts/` on.
    pub path: RepoPath,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub assumptions: String,
    pub questions: String,
    pub feedback: String,
    pub improvements: String,
}
