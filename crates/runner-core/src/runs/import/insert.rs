//! Inserts the entries of a plan into a tree, as open nodes.

use std::collections::BTreeSet;

use serde::Serialize;
use thiserror::Error;

use super::{EntryStatus, ImportedPlan, PlanEntry, PlanFormat};
use crate::model::id::NodeId;
use crate::model::slug::fresh_id_of;
use crate::model::tree::{Node, Tree, TreeProblem, path_text};

/// A plan, and where to insert it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanImport {
    pub plan: ImportedPlan,
    /// The parent of the new nodes [default: the root].
    pub under: Option<NodeId>,
    /// Whether to import completed entries too, as open work.
    pub with_done: bool,
}

impl PlanImport {
    pub fn format(&self) -> PlanFormat {
        self.plan.format
    }
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedTree {
    pub tree: Tree,
    /// The parent of the new nodes.
    pub under: NodeId,
    /// The new nodes, in order.
    pub added: Vec<NodeId>,
    pub skipped: Vec<SkippedEntry>,
}

/// An entry that was not imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedEntry {
    pub line: usize,
    pub title: String,
    pub status: EntryStatus,
}

/// Why a plan cannot be imported.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InsertError {
    #[error("no such task: `{0}`")]
    NoSuchNode(NodeId),
    #[error("`{0}` has passed and cannot get new children")]
    Passed(String),
    /// Every entry was skipped.
    #[error("nothing to import: all {0} items are done, dropped or deferred")]
    Nothing(usize),
    #[error("the tree would have {} error{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Tree(Vec<TreeProblem>),
}

/// Inserts a plan after the existing children of a node. Existing nodes do not change.
pub fn insert_plan(tree: &Tree, import: &PlanImport, max_attempts: u32) -> Result<ImportedTree, InsertError> {
    let under = import.under.clone().unwrap_or_else(|| tree.root().id.clone());
    let path = tree.path_to(&under).ok_or_else(|| InsertError::NoSuchNode(under.clone()))?;
    if path.last().is_some_and(|node| !tree.accepts_children(node)) {
        return Err(InsertError::Passed(path_text(&path)));
    }
    let mut builder = NodeBuilder {
        used_ids: BTreeSet::new(),
        added: Vec::new(),
        skipped: Vec::new(),
        max_attempts,
        with_done: import.with_done,
    };
    collect_ids(tree.root(), &mut builder.used_ids);
    let first_order =
        path.last().and_then(|node| node.children.last()).map_or(1, |last| last.order.saturating_add(1));
    let new = builder.nodes(&import.plan.entries, first_order);
    if new.is_empty() {
        return Err(InsertError::Nothing(builder.skipped.len()));
    }
    let mut root = tree.root().clone();
    if let Some(node) = root.find_mut(&under) {
        node.children.extend(new);
    }
    root.derive_passes();
    let tree = Tree::new(root).map_err(InsertError::Tree)?;
    Ok(ImportedTree { tree, under, added: builder.added, skipped: builder.skipped })
}

fn collect_ids(node: &Node, ids: &mut BTreeSet<NodeId>) {
    ids.insert(node.id.clone());
    node.children.iter().for_each(|child| collect_ids(child, ids));
}

struct NodeBuilder {
    used_ids: BTreeSet<NodeId>,
    added: Vec<NodeId>,
    skipped: Vec<SkippedEntry>,
    max_attempts: u32,
    with_done: bool,
}

impl NodeBuilder {
    fn nodes(&mut self, entries: &[PlanEntry], first_order: i64) -> Vec<Node> {
        let mut nodes = Vec::new();
        for entry in entries {
            let order = first_order.saturating_add(i64::try_from(nodes.len()).unwrap_or(i64::MAX));
            nodes.extend(self.node(entry, order));
        }
        nodes
    }

    /// The node of an entry; none if the entry and all its children are skipped.
    fn node(&mut self, entry: &PlanEntry, order: i64) -> Option<Node> {
        if !self.is_imported(entry) {
            self.skip(entry);
            return None;
        }
        let id = fresh_id_of(entry.name.as_deref(), &entry.title, |id| self.used_ids.contains(id));
        self.used_ids.insert(id.clone());
        self.added.push(id.clone());
        Some(Node {
            id,
            order,
            title: entry.title.clone(),
            goal: entry.goal.clone(),
            acceptance: entry.acceptance.clone(),
            passes: false,
            attempts: 0,
            max_attempts: self.max_attempts,
            children: self.nodes(&entry.children, 1),
        })
    }

    /// Whether an entry is open, or contains an open one.
    fn is_imported(&self, entry: &PlanEntry) -> bool {
        let is_open = match entry.status {
            EntryStatus::Open => true,
            EntryStatus::Done => self.with_done,
            EntryStatus::Dropped | EntryStatus::Deferred => false,
        };
        is_open || entry.children.iter().any(|child| self.is_imported(child))
    }

    fn skip(&mut self, entry: &PlanEntry) {
        let skipped = SkippedEntry { line: entry.line, title: entry.title.clone(), status: entry.status };
        self.skipped.push(skipped);
        entry.children.iter().for_each(|child| self.skip(child));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{inner, leaf, passed, tree};

    fn entry(title: &str, status: EntryStatus, children: Vec<PlanEntry>) -> PlanEntry {
        PlanEntry { title: title.to_owned(), status, children, line: 3, ..PlanEntry::default() }
    }

    fn import(entries: Vec<PlanEntry>, under: Option<&str>, with_done: bool) -> PlanImport {
        let plan = ImportedPlan {
            format: PlanFormat::Markdown,
            title: String::new(),
            goal: String::new(),
            acceptance: Vec::new(),
            entries,
            warnings: Vec::new(),
        };
        PlanImport { plan, under: under.map(|id| NodeId::new(id).unwrap()), with_done }
    }

    fn ids(imported: &ImportedTree) -> Vec<&str> {
        imported.added.iter().map(NodeId::as_str).collect()
    }

    #[test]
    fn new_nodes_come_after_existing_ones() {
        let before = tree(inner("root", vec![passed("a"), Node { order: 5, ..leaf("b") }]));
        let entries = vec![entry("The B!", EntryStatus::Open, vec![]), entry("b", EntryStatus::Open, vec![])];
        let imported = insert_plan(&before, &import(entries, None, false), 2).unwrap();
        assert_eq!(ids(&imported), ["the-b", "b-2"]);
        let orders: Vec<i64> = imported.tree.root().children.iter().map(|child| child.order).collect();
        assert_eq!(orders, [0, 5, 6, 7]);
        assert!(crate::model::tree::user_edit_violations(&before, &imported.tree).is_empty());
    }

    #[test]
    fn completed_entries_are_skipped_unless_they_contain_open_ones() {
        let entries = || {
            vec![
                entry("a", EntryStatus::Done, vec![entry("b", EntryStatus::Done, vec![])]),
                entry(
                    "c",
                    EntryStatus::Done,
                    vec![entry("d", EntryStatus::Open, vec![]), entry("e", EntryStatus::Dropped, vec![])],
                ),
            ]
        };
        let before = tree(leaf("root"));
        let imported = insert_plan(&before, &import(entries(), None, false), 3).unwrap();
        assert_eq!(ids(&imported), ["c", "d"]);
        assert_eq!(
            imported.skipped.iter().map(|item| item.title.as_str()).collect::<Vec<_>>(),
            ["a", "b", "e"]
        );
        let imported = insert_plan(&before, &import(entries(), None, true), 3).unwrap();
        assert_eq!(ids(&imported), ["a", "b", "c", "d"]);
        assert!(!imported.tree.root().passes, "nothing is imported as passed");
        let none =
            insert_plan(&before, &import(vec![entry("a", EntryStatus::Deferred, vec![])], None, true), 3);
        assert_eq!(none, Err(InsertError::Nothing(1)));
    }

    #[test]
    fn plans_can_only_be_inserted_below_open_nodes() {
        let before = tree(inner("root", vec![passed("a"), leaf("b")]));
        let entries = || vec![entry("x", EntryStatus::Open, vec![])];
        let passed = insert_plan(&before, &import(entries(), Some("a"), false), 3);
        assert_eq!(passed, Err(InsertError::Passed("root/a".to_owned())));
        assert!(matches!(
            insert_plan(&before, &import(entries(), Some("z"), false), 3),
            Err(InsertError::NoSuchNode(_))
        ));
        let below = insert_plan(&before, &import(entries(), Some("b"), false), 3).unwrap();
        assert_eq!(below.tree.root().children[1].children[0].id.as_str(), "x");
    }
}
