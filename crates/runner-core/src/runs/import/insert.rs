//! Items become open nodes below a node of a tree.

use std::collections::BTreeSet;

use serde::Serialize;
use thiserror::Error;

use super::{EntryStatus, ImportedPlan, PlanEntry, PlanFormat};
use crate::model::id::NodeId;
use crate::model::slug::fresh_id_of;
use crate::model::tree::{Node, Tree, TreeProblem, path_text};

/// A plan, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanImport {
    /// The plan.
    pub plan: ImportedPlan,
    /// The node that it goes below; nothing means the root.
    pub under: Option<NodeId>,
    /// Whether what the plan calls done is taken in too, as open work.
    pub with_done: bool,
}

impl PlanImport {
    /// How the plan was written.
    pub fn format(&self) -> PlanFormat {
        self.plan.format
    }
}

/// A tree with a plan in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedTree {
    /// The tree.
    pub tree: Tree,
    /// The node that the plan went below.
    pub under: NodeId,
    /// The new nodes, in their order.
    pub added: Vec<NodeId>,
    /// The items that were left out.
    pub skipped: Vec<SkippedEntry>,
}

/// An item that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedEntry {
    pub line: usize,
    pub title: String,
    /// What the plan says of it.
    pub status: EntryStatus,
}

/// Why a plan cannot go into a tree.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InsertError {
    /// There is no such node.
    #[error("the tree has no node `{0}`")]
    NoSuchNode(NodeId),
    /// It passed, and what passed never changes.
    #[error("`{0}` passes already, and a node that passed never changes")]
    Passed(String),
    /// Everything was left out.
    #[error("there is nothing to import: the plan calls every item ({0}) done, dropped or deferred")]
    Nothing(usize),
    /// The tree would break a rule.
    #[error("the tree would have {} fault{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Tree(Vec<TreeProblem>),
}

/// Puts a plan into a tree, behind the children that are there. Nothing that is in the tree changes.
pub fn insert_plan(tree: &Tree, import: &PlanImport, max_attempts: u32) -> Result<ImportedTree, InsertError> {
    let under = import.under.clone().unwrap_or_else(|| tree.root().id.clone());
    let path = tree.path_to(&under).ok_or_else(|| InsertError::NoSuchNode(under.clone()))?;
    if path.last().is_some_and(|node| node.passes) {
        return Err(InsertError::Passed(path_text(&path)));
    }
    let mut maker = NodeBuilder {
        taken: BTreeSet::new(),
        added: Vec::new(),
        skipped: Vec::new(),
        max_attempts,
        with_done: import.with_done,
    };
    collect_ids(tree.root(), &mut maker.taken);
    let first =
        path.last().and_then(|node| node.children.last()).map_or(1, |last| last.order.saturating_add(1));
    let new = maker.nodes(&import.plan.entries, first);
    if new.is_empty() {
        return Err(InsertError::Nothing(maker.skipped.len()));
    }
    let mut root = tree.root().clone();
    if let Some(node) = find(&mut root, &under) {
        node.children.extend(new);
    }
    let tree = Tree::new(root).map_err(InsertError::Tree)?;
    Ok(ImportedTree { tree, under, added: maker.added, skipped: maker.skipped })
}

fn find<'n>(node: &'n mut Node, id: &NodeId) -> Option<&'n mut Node> {
    if node.id == *id { Some(node) } else { node.children.iter_mut().find_map(|child| find(child, id)) }
}

fn collect_ids(node: &Node, ids: &mut BTreeSet<NodeId>) {
    ids.insert(node.id.clone());
    node.children.iter().for_each(|child| collect_ids(child, ids));
}

struct NodeBuilder {
    taken: BTreeSet<NodeId>,
    added: Vec<NodeId>,
    skipped: Vec<SkippedEntry>,
    max_attempts: u32,
    with_done: bool,
}

impl NodeBuilder {
    fn nodes(&mut self, items: &[PlanEntry], first: i64) -> Vec<Node> {
        let mut nodes = Vec::new();
        for item in items {
            let order = first.saturating_add(i64::try_from(nodes.len()).unwrap_or(i64::MAX));
            nodes.extend(self.node(item, order));
        }
        nodes
    }

    /// The node of an item; none where the item and everything in it is left out.
    fn node(&mut self, item: &PlanEntry, order: i64) -> Option<Node> {
        if !self.is_wanted(item) {
            self.skip(item);
            return None;
        }
        let id = fresh_id_of(item.name.as_deref(), &item.title, |id| self.taken.contains(id));
        self.taken.insert(id.clone());
        self.added.push(id.clone());
        Some(Node {
            id,
            order,
            title: item.title.clone(),
            goal: item.goal.clone(),
            acceptance: item.acceptance.clone(),
            passes: false,
            attempts: 0,
            max_attempts: self.max_attempts,
            children: self.nodes(&item.children, 1),
        })
    }

    /// Whether there is work in an item: it is open itself, or something in it is.
    fn is_wanted(&self, item: &PlanEntry) -> bool {
        let itself = match item.status {
            EntryStatus::Open => true,
            EntryStatus::Done => self.with_done,
            EntryStatus::Dropped | EntryStatus::Deferred => false,
        };
        itself || item.children.iter().any(|child| self.is_wanted(child))
    }

    fn skip(&mut self, item: &PlanEntry) {
        let (line, title, standing) = (item.line, item.title.clone(), item.status);
        self.skipped.push(SkippedEntry { line, title, status: standing });
        item.children.iter().for_each(|child| self.skip(child));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{inner, leaf, passed, tree};

    fn item(title: &str, standing: EntryStatus, children: Vec<PlanEntry>) -> PlanEntry {
        PlanEntry { title: title.to_owned(), status: standing, children, line: 3, ..PlanEntry::default() }
    }

    fn import(items: Vec<PlanEntry>, under: Option<&str>, with_done: bool) -> PlanImport {
        let plan = ImportedPlan {
            format: PlanFormat::Markdown,
            title: String::new(),
            goal: String::new(),
            acceptance: Vec::new(),
            entries: items,
            warnings: Vec::new(),
        };
        PlanImport { plan, under: under.map(|id| NodeId::new(id).unwrap()), with_done }
    }

    fn ids(grafted: &ImportedTree) -> Vec<&str> {
        grafted.added.iter().map(NodeId::as_str).collect()
    }

    #[test]
    fn new_nodes_come_behind_those_that_are_there() {
        let before = tree(inner("root", vec![passed("a"), Node { order: 5, ..leaf("b") }]));
        let items = vec![item("The B!", EntryStatus::Open, vec![]), item("b", EntryStatus::Open, vec![])];
        let grafted = insert_plan(&before, &import(items, None, false), 2).unwrap();
        assert_eq!(ids(&grafted), ["the-b", "b-2"]);
        let orders: Vec<i64> = grafted.tree.root().children.iter().map(|child| child.order).collect();
        assert_eq!(orders, [0, 5, 6, 7]);
        assert!(crate::model::tree::user_edit_violations(&before, &grafted.tree).is_empty());
    }

    #[test]
    fn what_is_done_is_left_out_unless_something_in_it_is_open() {
        let items = || {
            vec![
                item("a", EntryStatus::Done, vec![item("b", EntryStatus::Done, vec![])]),
                item(
                    "c",
                    EntryStatus::Done,
                    vec![item("d", EntryStatus::Open, vec![]), item("e", EntryStatus::Dropped, vec![])],
                ),
            ]
        };
        let before = tree(leaf("root"));
        let grafted = insert_plan(&before, &import(items(), None, false), 3).unwrap();
        assert_eq!(ids(&grafted), ["c", "d"]);
        assert_eq!(
            grafted.skipped.iter().map(|item| item.title.as_str()).collect::<Vec<_>>(),
            ["a", "b", "e"]
        );
        let grafted = insert_plan(&before, &import(items(), None, true), 3).unwrap();
        assert_eq!(ids(&grafted), ["a", "b", "c", "d"]);
        assert!(!grafted.tree.root().passes, "nothing is imported as passed");
        let none =
            insert_plan(&before, &import(vec![item("a", EntryStatus::Deferred, vec![])], None, true), 3);
        assert_eq!(none, Err(InsertError::Nothing(1)));
    }

    #[test]
    fn a_plan_goes_below_open_nodes_only() {
        let before = tree(inner("root", vec![passed("a"), leaf("b")]));
        let items = || vec![item("x", EntryStatus::Open, vec![])];
        let passed = insert_plan(&before, &import(items(), Some("a"), false), 3);
        assert_eq!(passed, Err(InsertError::Passed("root/a".to_owned())));
        assert!(matches!(
            insert_plan(&before, &import(items(), Some("z"), false), 3),
            Err(InsertError::NoSuchNode(_))
        ));
        let below = insert_plan(&before, &import(items(), Some("b"), false), 3).unwrap();
        assert_eq!(below.tree.root().children[1].children[0].id.as_str(), "x");
    }
}
