//! The rows of the tree pane: which nodes are visible, which one is selected, and the state of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use runner_core::labels::NodeState;

use crate::api::TreeColumns;
use crate::read::tree_view::LEAF;

/// A larger tree starts collapsed, except for the path to the next task.
const EXPANDED_NODES_MAX: usize = 200;

/// A tree and which parts of it are visible. Nodes are addressed by their index in the columns.
#[derive(Debug, Default)]
pub(super) struct TreePane {
    tree: Arc<TreeColumns>,
    /// For each node, the index after its last descendant.
    ends: Vec<usize>,
    collapsed: BTreeSet<String>,
    filter: String,
    /// The node of each visible row.
    visible: Vec<usize>,
    row: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeRow {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) depth: usize,
    pub(super) state: NodeState,
    pub(super) is_leaf: bool,
    pub(super) is_collapsed: bool,
    pub(super) attempts: u32,
    pub(super) max_attempts: u32,
    pub(super) leaves_passed: u32,
    pub(super) leaves: u32,
}

impl TreePane {
    /// Replaces the tree. Collapsed and selected nodes stay so, by id.
    pub(super) fn update(&mut self, tree: &Arc<TreeColumns>) {
        if Arc::ptr_eq(&self.tree, tree) {
            return;
        }
        let selected = self.selected();
        if self.tree.id.is_empty() {
            self.collapsed = initially_collapsed(tree);
        }
        self.tree = Arc::clone(tree);
        self.ends = subtree_ends(tree);
        self.refresh(selected.as_deref());
    }

    /// Computes the visible rows, and the selected one among them.
    fn refresh(&mut self, selected: Option<&str>) {
        self.visible = if self.filter.is_empty() { self.expanded() } else { self.matching() };
        let index = selected.and_then(|id| self.index_of(id));
        let row = index.and_then(|index| self.visible.iter().rposition(|visible| *visible <= index));
        self.row = row.unwrap_or(self.row).min(self.visible.len().saturating_sub(1));
    }

    fn index_of(&self, id: &str) -> Option<usize> {
        self.tree.id.iter().position(|known| known == id)
    }

    /// The nodes that are not below a collapsed one.
    fn expanded(&self) -> Vec<usize> {
        let mut visible = Vec::new();
        let mut index = 0;
        while let Some(id) = self.tree.id.get(index) {
            visible.push(index);
            let end = self.ends.get(index).copied().unwrap_or_default();
            index = if self.collapsed.contains(id) { end.max(index + 1) } else { index + 1 };
        }
        visible
    }

    /// The nodes that match the filter, with their ancestors.
    fn matching(&self) -> Vec<usize> {
        let wanted = self.filter.to_lowercase();
        let matches = |text: Option<&str>| text.is_some_and(|text| text.to_lowercase().contains(&wanted));
        let mut visible = BTreeSet::new();
        for index in 0..self.tree.id.len() {
            if matches(self.tree.id.get(index)) || matches(self.tree.title.get(index)) {
                visible.extend(std::iter::successors(Some(index), |index| self.parent(*index)));
            }
        }
        visible.into_iter().collect()
    }

    fn parent(&self, index: usize) -> Option<usize> {
        self.tree.parent.get(index).and_then(|parent| usize::try_from(*parent).ok())
    }

    pub(super) fn row_count(&self) -> usize {
        self.visible.len()
    }

    /// The number of the selected row.
    pub(super) fn row(&self) -> usize {
        self.row
    }

    /// The id of the selected node.
    pub(super) fn selected(&self) -> Option<String> {
        self.visible.get(self.row).and_then(|index| self.tree.id.get(*index)).map(str::to_owned)
    }

    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// Shows the nodes that contain a text, or all.
    pub(super) fn set_filter(&mut self, text: String) {
        let selected = self.selected();
        self.filter = text;
        self.refresh(selected.as_deref());
    }

    /// Moves the selection down or up.
    pub(super) fn move_selection(&mut self, by: isize) {
        self.row = self.row.saturating_add_signed(by).min(self.visible.len().saturating_sub(1));
    }

    /// Selects a node and expands its ancestors.
    pub(super) fn select(&mut self, id: &str) {
        if self.selected().as_deref() == Some(id) {
            return;
        }
        let Some(index) = self.index_of(id) else { return };
        let mut ancestor = self.parent(index);
        while let Some(index) = ancestor {
            if let Some(id) = self.tree.id.get(index) {
                self.collapsed.remove(id);
            }
            ancestor = self.parent(index);
        }
        self.refresh(Some(id));
    }

    /// Collapses the selected node, or selects its parent.
    pub(super) fn collapse(&mut self) {
        let Some(index) = self.visible.get(self.row).copied() else { return };
        let id = self.tree.id.get(index).unwrap_or_default().to_owned();
        if !self.is_leaf(index) && !self.collapsed.contains(&id) && self.filter.is_empty() {
            self.collapsed.insert(id.clone());
            self.refresh(Some(&id));
        } else if let Some(parent) = self.parent(index).and_then(|index| self.tree.id.get(index)) {
            let parent = parent.to_owned();
            self.refresh(Some(&parent));
        }
    }

    /// Expands the selected node, or selects its first child.
    pub(super) fn expand(&mut self) {
        let Some(id) = self.selected() else { return };
        if self.collapsed.remove(&id) {
            self.refresh(Some(&id));
        } else if self.visible.get(self.row).is_some_and(|index| !self.is_leaf(*index)) {
            self.move_selection(1);
        }
    }

    fn is_leaf(&self, index: usize) -> bool {
        self.tree.flags.get(index).is_some_and(|flags| flags & LEAF != 0)
    }

    /// A visible row; `running` is the node that a session works on.
    pub(super) fn at(&self, row: usize, running: Option<&str>) -> Option<TreeRow> {
        let index = *self.visible.get(row)?;
        let tree = &self.tree;
        let id = tree.id.get(index)?;
        let state = tree.state.get(index).copied().unwrap_or(NodeState::Open);
        let is_running = running == Some(id) && state != NodeState::Passed;
        let number = |column: &[u32]| column.get(index).copied().unwrap_or_default();
        Some(TreeRow {
            id: id.to_owned(),
            title: runner_core::text::one_line(tree.title.get(index)?),
            depth: usize::try_from(number(&tree.depth)).unwrap_or_default(),
            state: if is_running { NodeState::Running } else { state },
            is_leaf: self.is_leaf(index),
            is_collapsed: self.filter.is_empty() && self.collapsed.contains(id),
            attempts: number(&tree.attempts),
            max_attempts: number(&tree.max_attempts),
            leaves_passed: number(&tree.passed),
            leaves: number(&tree.leaves),
        })
    }
}

/// For each node, the index after its last descendant.
fn subtree_ends(tree: &TreeColumns) -> Vec<usize> {
    let mut ends: Vec<usize> = (1..=tree.id.len()).collect();
    for index in (0..tree.id.len()).rev() {
        let end = ends.get(index).copied().unwrap_or_default();
        let parent = tree.parent.get(index).and_then(|parent| usize::try_from(*parent).ok());
        if let Some(parent_end) = parent.and_then(|parent| ends.get_mut(parent)) {
            *parent_end = end.max(*parent_end);
        }
    }
    ends
}

/// The nodes that start collapsed: in a large tree, all below the root that are not on the path to the next task.
fn initially_collapsed(tree: &TreeColumns) -> BTreeSet<String> {
    if tree.id.len() <= EXPANDED_NODES_MAX {
        return BTreeSet::new();
    }
    let next = tree.selected.as_ref().and_then(|id| tree.id.iter().position(|known| known == id));
    let parent = |index: &usize| tree.parent.get(*index).and_then(|parent| usize::try_from(*parent).ok());
    let path: BTreeSet<usize> = std::iter::successors(next, parent).collect();
    let mut collapsed = BTreeSet::new();
    for (index, (id, depth)) in tree.id.iter().zip(&tree.depth).enumerate() {
        if *depth >= 1 && !path.contains(&index) {
            collapsed.insert(id.to_owned());
        }
    }
    collapsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tree_view::{EXHAUSTED, PASSES};

    /// root with a (a1, a2) and b.
    fn tree() -> Arc<TreeColumns> {
        let texts = |list: [&'static str; 5]| list.into_iter().collect();
        Arc::new(TreeColumns {
            id: texts(["root", "a", "a1", "a2", "b"]),
            title: texts(["All", "First", "One", "Two", "Second"]),
            parent: vec![-1, 0, 1, 1, 0],
            depth: vec![0, 1, 2, 2, 1],
            flags: vec![0, 0, LEAF | PASSES, LEAF | EXHAUSTED, LEAF],
            state: vec![
                NodeState::Open,
                NodeState::Open,
                NodeState::Passed,
                NodeState::Stuck,
                NodeState::Retried,
            ],
            attempts: vec![0, 0, 0, 3, 1],
            max_attempts: vec![3; 5],
            leaves: vec![3, 2, 1, 1, 1],
            passed: vec![1, 1, 1, 0, 0],
            selected: Some("a2".to_owned()),
            ..TreeColumns::default()
        })
    }

    fn ids(pane: &TreePane) -> Vec<String> {
        (0..pane.row_count()).filter_map(|row| pane.at(row, None)).map(|row| row.id).collect()
    }

    #[test]
    fn collapsed_node_hides_its_descendants_and_keeps_the_selection() {
        let mut pane = TreePane::default();
        pane.update(&tree());
        assert_eq!(ids(&pane), ["root", "a", "a1", "a2", "b"]);
        pane.select("a2");
        pane.collapse();
        assert_eq!(pane.selected().as_deref(), Some("a"));
        pane.collapse();
        assert_eq!(
            (ids(&pane), pane.selected().as_deref()),
            (["root", "a", "b"].map(str::to_owned).into(), Some("a"))
        );
        pane.update(&tree());
        assert_eq!(
            (pane.row_count(), pane.selected().as_deref()),
            (3, Some("a")),
            "an update changes nothing"
        );
        pane.expand();
        pane.expand();
        assert_eq!(pane.selected().as_deref(), Some("a1"));
        pane.collapse();
        pane.collapse();
        pane.select("a2");
        assert_eq!((pane.row_count(), pane.selected().as_deref()), (5, Some("a2")));
    }

    #[test]
    fn filter_shows_matches_with_their_ancestors() {
        let mut pane = TreePane::default();
        pane.update(&tree());
        pane.set_filter("TWO".to_owned());
        assert_eq!(ids(&pane), ["root", "a", "a2"]);
        pane.set_filter("nothing".to_owned());
        assert_eq!((ids(&pane), pane.selected()), (Vec::new(), None));
        pane.set_filter(String::new());
        assert_eq!(pane.row_count(), 5);
    }

    #[test]
    fn running_node_is_shown_as_running() {
        let mut pane = TreePane::default();
        pane.update(&tree());
        let states: Vec<NodeState> =
            (0..5).filter_map(|row| pane.at(row, Some("b"))).map(|row| row.state).collect();
        assert_eq!(
            states,
            [NodeState::Open, NodeState::Open, NodeState::Passed, NodeState::Stuck, NodeState::Running]
        );
        let last = pane.at(4, None).map(|row| (row.state, row.attempts, row.max_attempts));
        assert_eq!(last, Some((NodeState::Retried, 1, 3)));
        let passed = pane.at(2, Some("a1")).map(|row| row.state);
        assert_eq!(passed, Some(NodeState::Passed));
    }

    #[test]
    fn large_tree_is_only_expanded_to_the_next_task() {
        let mut large = TreeColumns { selected: Some("n150".to_owned()), ..TreeColumns::default() };
        for nth in 0..300_i64 {
            large.id.push(&format!("n{nth}"));
            large.title.push("");
            large.parent.push(if nth == 0 { -1 } else { (nth - 1) / 100 * 100 });
            large.depth.push(if nth == 0 { 0 } else { u32::from(nth > 100) + 1 });
            large.flags.push(0);
        }
        let mut pane = TreePane::default();
        pane.update(&Arc::new(large));
        assert!(pane.row_count() < 300 && ids(&pane).contains(&"n150".to_owned()), "{}", pane.row_count());
    }
}
