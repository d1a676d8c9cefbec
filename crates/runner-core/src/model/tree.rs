//! The task tree: what it is, its one written form, and its limits.
//!
//! A [`Tree`] is always valid: it can only be had by decoding a document without fault or by passing nodes
//! through the same rules. Code that holds one does not check again.

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
pub use select::{SelectedLeaf, Selection, SelectionStep, select};
pub use user_edit_rules::{ForbiddenEdit, UserEditError, user_edit_faults};

use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::strict::SAFE_INTEGER_MAX;

/// The version of the tree's format.
pub const VERSION: i64 = 1;
/// The most levels a tree may have; the root is level 1.
pub const DEPTH_MAX: usize = 32;
/// The most nodes a tree may have.
pub const NODES_MAX: usize = 100_000;
/// The most bytes a tree's document may have.
pub const BYTES_MAX: usize = 64 << 20;
/// The bounds of a node's `order`.
pub const ORDER_RANGE: std::ops::RangeInclusive<i64> = -SAFE_INTEGER_MAX..=SAFE_INTEGER_MAX;
/// The bounds of a node's `attempts`.
pub const ATTEMPTS_RANGE: std::ops::RangeInclusive<i64> = 0..=1_000_000;
/// The bounds of a node's `max_attempts`.
pub const MAX_ATTEMPTS_RANGE: std::ops::RangeInclusive<i64> = 1..=1_000_000;

/// One task: a leaf is worked on, an inner node passes when all its children do.
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
    /// How one sees that it is, point by point.
    pub acceptance: Vec<String>,
    /// Whether the node is done. Written by the runner alone, after a green guard.
    pub passes: bool,
    /// How many attempts were spent. Written by the runner alone.
    #[schemars(range(min = *ATTEMPTS_RANGE.start(), max = *ATTEMPTS_RANGE.end()))]
    pub attempts: u32,
    /// How many attempts the node has.
    #[schemars(range(min = *MAX_ATTEMPTS_RANGE.start(), max = *MAX_ATTEMPTS_RANGE.end()))]
    pub max_attempts: u32,
    /// The steps it is divided into, in order.
    pub children: Vec<Node>,
}

impl Node {
    /// Whether the node has no children.
    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// Whether every attempt is spent.
    pub fn is_exhausted(&self) -> bool {
        self.attempts >= self.max_attempts
    }

    /// How many leaves lie at or below this node, and how many of them pass.
    pub fn leaves(&self) -> LeafCount {
        if self.is_leaf() {
            return LeafCount { total: 1, passed: usize::from(self.passes) };
        }
        self.children.iter().map(Node::leaves).fold(LeafCount { total: 0, passed: 0 }, |sum, more| {
            LeafCount { total: sum.total + more.total, passed: sum.passed + more.passed }
        })
    }

    /// The node at or below this one that has this id.
    pub(crate) fn find_mut(&mut self, id: &NodeId) -> Option<&mut Self> {
        if self.id == *id {
            return Some(self);
        }
        self.children.iter_mut().find_map(|child| child.find_mut(id))
    }

    /// Says anew of every inner node at or below this one whether it passes.
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
    /// All of them.
    pub total: usize,
    /// Those that pass.
    pub passed: usize,
}

/// A task tree in which every rule holds. It never changes, so copies share it, with its written form once that was
/// asked for.
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
    /// The goal as a whole.
    root: &'t Node,
}

impl Tree {
    /// Reads a document strictly. Every fault in it is told, in the order of the nodes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<TreeProblem>> {
        let (root, found) = decode::document(bytes).map_err(|problem| vec![problem])?;
        found.into_result(&root)?;
        Ok(Self::of(root))
    }

    /// Takes nodes that the runner made, if every rule holds for them.
    pub fn new(root: Node) -> Result<Self, Vec<TreeProblem>> {
        let mut found = problem::FaultCollector::default();
        rules::check(&root, &mut found);
        found.into_result(&root)?;
        Ok(Self::of(root))
    }

    fn of(root: Node) -> Self {
        Self(Arc::new(TreeInner { root, bytes: OnceLock::new(), sha256: OnceLock::new() }))
    }

    /// The goal as a whole.
    pub fn root(&self) -> &Node {
        &self.0.root
    }

    /// The one written form of this tree: two spaces of indent, fields in their order, one newline at the end.
    pub fn bytes(&self) -> &[u8] {
        let write = || crate::strict::canonical_json(&TreeDocument { version: VERSION, root: self.root() });
        self.0.bytes.get_or_init(write)
    }

    /// The fingerprint of the written form.
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

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        fn count(node: &Node) -> usize {
            1 + node.children.iter().map(count).sum::<usize>()
        }
        count(self.root())
    }
}

/// The ids on the way to a node, as people write them: `root/api/login`.
pub fn path_text(path: &[&Node]) -> String {
    path.iter().map(|node| node.id.as_str()).collect::<Vec<_>>().join("/")
}

/// Nodes for the tests of this crate.
#[cfg(test)]
pub(crate) mod sample {
    use super::*;

    /// An open leaf.
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

    /// A leaf that passes.
    pub(crate) fn passed(id: &str) -> Node {
        Node { passes: true, ..leaf(id) }
    }

    /// A node that passes if all these do.
    pub(crate) fn inner(id: &str, children: Vec<Node>) -> Node {
        Node { passes: children.iter().all(|child| child.passes), children, ..leaf(id) }
    }

    /// A tree with this root.
    pub(crate) fn tree(root: Node) -> Tree {
        Tree::new(root).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::sample::{inner, leaf, passed, tree};
    use super::*;

    #[test]
    fn a_tree_is_written_in_one_form() {
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
    fn fields_may_come_in_any_order_and_numbers_in_any_form() {
        let text = r#"{"root": {"children": [], "max_attempts": 3e0, "attempts": 0.0, "passes": false, "acceptance": [],
            "goal": "", "title": "Title of x", "order": -0, "id": "\u0078"}, "version": 1.0}"#;
        assert_eq!(Tree::decode(text.as_bytes()), Ok(tree(leaf("x"))));
    }

    #[test]
    fn leaves_are_counted_and_nodes_too() {
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
    fn the_path_to_a_node_begins_at_the_root() {
        let tree = tree(inner("root", vec![inner("a", vec![leaf("b")]), inner("c", vec![leaf("d")])]));
        let path = |id: &str| tree.path_to(&NodeId::new(id).unwrap()).map(|path| path_text(&path));
        assert_eq!(path("d"), Some("root/c/d".to_owned()));
        assert_eq!(path("a"), Some("root/a".to_owned()));
        assert_eq!(path("root"), Some("root".to_owned()));
        assert_eq!(path("x"), None);
    }
}
