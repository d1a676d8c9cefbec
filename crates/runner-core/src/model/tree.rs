//! The task tree: its nodes, its canonical form and its limits.
//!
//! A [`Tree`] is always valid: the only ways to make one are decoding a document without errors, and checking nodes
//! against the same rules. Code that has one need not check again.

mod agent_tree;
mod decode;
pub(crate) mod index;
mod problem;
mod rules;
mod select;
mod serialized_len;
mod user_edit_rules;

use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use agent_tree::AgentTree;
pub use problem::{JsonKind, TreeError, TreeProblem};
pub use select::{SelectedLeaf, Selection, SelectionStep, next_selection, select, stuck_leaves};
pub use user_edit_rules::{ForbiddenEdit, UserEditError, user_edit_violations};

use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::strict::SAFE_INTEGER_MAX;

/// The version of the document's format.
pub const VERSION: i64 = 1;
/// The most levels of a tree; the root is level 1.
pub const DEPTH_MAX: usize = 32;
/// The most nodes of a tree.
pub const NODES_MAX: usize = 100_000;
/// The most bytes of a tree's document.
pub const BYTES_MAX: usize = 64 << 20;
/// The bounds of a node's `order`.
pub const ORDER_RANGE: std::ops::RangeInclusive<i64> = -SAFE_INTEGER_MAX..=SAFE_INTEGER_MAX;
/// The bounds of a node's `attempts`.
pub const ATTEMPTS_RANGE: std::ops::RangeInclusive<i64> = 0..=1_000_000;
/// The largest `max_attempts` of a node.
pub const MAX_ATTEMPTS_MAX: u32 = 1_000_000;
/// The bounds of a node's `max_attempts`.
pub const MAX_ATTEMPTS_RANGE: std::ops::RangeInclusive<i64> = 1..=MAX_ATTEMPTS_MAX as i64;

/// A task: an agent works on a leaf; a parent passes when all its children do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Node {
    /// Unique in the tree.
    pub id: NodeId,
    /// Siblings are sorted by order, then by id.
    #[schemars(range(min = *ORDER_RANGE.start(), max = *ORDER_RANGE.end()))]
    pub order: i64,
    /// A short name for people.
    pub title: String,
    /// What must be true when the node is done.
    pub goal: String,
    /// The acceptance criteria: statements that must be true before the node is done.
    pub acceptance: Vec<String>,
    /// Whether the node is done. Only the runner sets it, after the guard succeeded.
    pub passes: bool,
    /// How many attempts are used. Only the runner counts them.
    #[schemars(range(min = *ATTEMPTS_RANGE.start(), max = *ATTEMPTS_RANGE.end()))]
    pub attempts: u32,
    /// The most attempts of the node.
    #[schemars(range(min = *MAX_ATTEMPTS_RANGE.start(), max = *MAX_ATTEMPTS_RANGE.end()))]
    pub max_attempts: u32,
    /// The parts of the task, in order.
    pub children: Vec<Node>,
}

impl Node {
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// Whether all attempts are used.
    pub fn is_exhausted(&self) -> bool {
        self.attempts >= self.max_attempts
    }

    /// Counts the leaves of this subtree.
    pub fn leaves(&self) -> LeafCount {
        if self.is_leaf() {
            return LeafCount { total: 1, passed: usize::from(self.passes) };
        }
        self.children.iter().map(Node::leaves).fold(LeafCount { total: 0, passed: 0 }, |sum, more| {
            LeafCount { total: sum.total + more.total, passed: sum.passed + more.passed }
        })
    }

    /// The node of this subtree with this id.
    pub(crate) fn find_mut(&mut self, id: &NodeId) -> Option<&mut Self> {
        if self.id == *id {
            return Some(self);
        }
        self.children.iter_mut().find_map(|child| child.find_mut(id))
    }

    /// Recomputes `passes` of every parent in this subtree.
    pub(crate) fn derive_passes(&mut self) {
        self.children.iter_mut().for_each(Self::derive_passes);
        if !self.is_leaf() {
            self.passes = self.children.iter().all(|child| child.passes);
        }
    }

    /// The sorting key among siblings.
    pub(crate) fn sort_key(&self) -> (i64, &NodeId) {
        (self.order, &self.id)
    }
}

/// A count of leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeafCount {
    pub total: usize,
    pub passed: usize,
}

/// A valid task tree. It is immutable, so clones share it and its canonical form, which is computed once.
#[derive(Clone, Debug)]
pub struct Tree(Arc<TreeInner>);

#[derive(Debug)]
struct TreeInner {
    root: Node,
    bytes: OnceLock<Vec<u8>>,
    sha256: OnceLock<Sha256>,
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.root() == other.root()
    }
}

impl Eq for Tree {}

/// A task tree: the only source of truth for a run's progress.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tree", deny_unknown_fields)]
pub(crate) struct TreeDocument<'t> {
    /// The version of the format.
    #[schemars(extend("const" = VERSION))]
    version: i64,
    /// The goal as a task.
    root: &'t Node,
}

impl Tree {
    /// Decodes a document strictly. Reports every problem, in the order of the nodes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<TreeProblem>> {
        let (root, problems) = decode::document(bytes).map_err(|problem| vec![problem])?;
        problems.into_result(&root)?;
        Ok(Self::of(root))
    }

    /// Checks nodes that the runner made against the rules.
    pub fn new(root: Node) -> Result<Self, Vec<TreeProblem>> {
        let mut problems = problem::FaultCollector::default();
        rules::check(&root, &mut problems);
        problems.into_result(&root)?;
        Ok(Self::of(root))
    }

    fn of(root: Node) -> Self {
        Self(Arc::new(TreeInner { root, bytes: OnceLock::new(), sha256: OnceLock::new() }))
    }

    pub fn root(&self) -> &Node {
        &self.0.root
    }

    /// Whether a user may add tasks below a node: an open one, or a root with parts, whose pass is derived from them.
    pub fn accepts_children(&self, node: &Node) -> bool {
        !node.passes || node.id == self.root().id && !node.is_leaf()
    }

    /// The canonical form: indented by two spaces, fields in a fixed order, one newline at the end.
    pub fn bytes(&self) -> &[u8] {
        let write = || crate::strict::canonical_json(&TreeDocument { version: VERSION, root: self.root() });
        self.0.bytes.get_or_init(write)
    }

    /// The hash of the canonical form.
    pub fn sha256(&self) -> Sha256 {
        *self.0.sha256.get_or_init(|| Sha256::of(self.bytes()))
    }

    /// The path to a node, root first.
    pub fn path_to(&self, id: &NodeId) -> Option<Vec<&Node>> {
        fn descend<'t>(node: &'t Node, id: &NodeId, path: &mut Vec<&'t Node>) -> bool {
            path.push(node);
            if node.id == *id || node.children.iter().any(|child| descend(child, id, path)) {
                return true;
            }
            path.pop();
            false
        }
        let mut path = Vec::new();
        descend(self.root(), id, &mut path).then_some(path)
    }

    pub fn node_count(&self) -> usize {
        fn count(node: &Node) -> usize {
            1 + node.children.iter().map(count).sum::<usize>()
        }
        count(self.root())
    }
}

/// A path as text: `root/api/login`.
pub fn path_text(path: &[&Node]) -> String {
    path.iter().map(|node| node.id.as_str()).collect::<Vec<_>>().join("/")
}

/// Nodes for the tests of this crate.
#[cfg(test)]
pub(crate) mod sample {
    use super::*;

    pub(crate) fn leaf(id: &str) -> Node {
        Node {
            id: NodeId::new(id).unwrap(),
            order: 0,
            title: format!("Title of {id}"),
            goal: String::new(),
            acceptance: Vec::new(),
            passes: false,
            attempts: 0,
            max_attempts: 3,
            children: Vec::new(),
        }
    }

    pub(crate) fn passed(id: &str) -> Node {
        Node { passes: true, ..leaf(id) }
    }

    pub(crate) fn inner(id: &str, children: Vec<Node>) -> Node {
        Node { passes: children.iter().all(|child| child.passes), children, ..leaf(id) }
    }

    pub(crate) fn tree(root: Node) -> Tree {
        Tree::new(root).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::sample::{inner, leaf, passed, tree};
    use super::*;

    #[test]
    fn a_tree_has_one_canonical_form() {
        let mut root = inner("root", vec![Node { order: -2, attempts: 1, ..leaf("a") }]);
        root.acceptance = vec!["say \"é\"\n".to_owned(), String::new()];
        let text = r#"{
  "version": 1,
  "root": {
    "id": "root",
    "order": 0,
    "title": "Title of root",
    "goal": "",
    "acceptance": [
      "say \"é\"\n",
      ""
    ],
    "passes": false,
    "attempts": 0,
    "max_attempts": 3,
    "children": [
      {
        "id": "a",
        "order": -2,
        "title": "Title of a",
        "goal": "",
        "acceptance": [],
        "passes": false,
        "attempts": 1,
        "max_attempts": 3,
        "children": []
      }
    ]
  }
}
"#;
        let tree = tree(root);
        assert_eq!(String::from_utf8(tree.bytes().to_vec()).unwrap(), text);
        assert_eq!(Tree::decode(text.as_bytes()), Ok(tree));
    }

    #[test]
    fn fields_may_be_in_any_order_and_numbers_in_any_form() {
        let text = r#"{"root": {"children": [], "max_attempts": 3e0, "attempts": 0.0, "passes": false, "acceptance": [],
            "goal": "", "title": "Title of x", "order": -0, "id": "\u0078"}, "version": 1.0}"#;
        assert_eq!(Tree::decode(text.as_bytes()), Ok(tree(leaf("x"))));
    }

    #[test]
    fn leaves_and_nodes_are_counted() {
        let root = inner("root", vec![inner("a", vec![passed("b"), leaf("c")]), passed("d")]);
        assert_eq!(root.leaves(), LeafCount { total: 3, passed: 2 });
        assert_eq!(leaf("x").leaves(), LeafCount { total: 1, passed: 0 });
        assert!(!root.is_leaf() && leaf("x").is_leaf());
        assert_eq!(tree(root).node_count(), 5);
    }

    #[test]
    fn a_node_is_exhausted_at_its_maximum() {
        assert!(!Node { attempts: 2, ..leaf("x") }.is_exhausted());
        assert!(Node { attempts: 3, ..leaf("x") }.is_exhausted());
    }

    #[test]
    fn paths_start_at_the_root() {
        let tree = tree(inner("root", vec![inner("a", vec![leaf("b")]), inner("c", vec![leaf("d")])]));
        let path = |id: &str| tree.path_to(&NodeId::new(id).unwrap()).map(|path| path_text(&path));
        assert_eq!(path("d"), Some("root/c/d".to_owned()));
        assert_eq!(path("a"), Some("root/a".to_owned()));
        assert_eq!(path("root"), Some("root".to_owned()));
        assert_eq!(path("x"), None);
    }
}
