//! The rows of a tree: which are shown, and how each stands.

use std::collections::BTreeSet;
use std::sync::Arc;

use runner_term::node_state::{NodeFlags, NodeState};

use crate::api::TreeColumns;
use crate::read::tree_view::{EXHAUSTED, LEAF, PASSES};

/// A tree larger than this is closed at first, but for the way to what comes next.
const SMALL_NODES: usize = 200;

/// A tree, and which parts of it are shown.
#[derive(Debug, Default)]
pub(super) struct TreePane {
    tree: Arc<TreeColumns>,
    /// Where each node's descendants end in the columns.
    ends: Vec<usize>,
    closed: BTreeSet<String>,
    filter: String,
    /// The nodes that have a row, by their place in the columns.
    shown: Vec<usize>,
    /// The chosen row.
    row: usize,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeRow {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) depth: usize,
    pub(super) state: NodeState,
    pub(super) is_leaf: bool,
    pub(super) is_closed: bool,
    /// Attempts made and allowed.
    pub(super) attempts: (u32, u32),
    /// Leaves that pass, and all.
    pub(super) leaves: (u32, u32),
}

impl TreePane {
    /// Takes another tree in. What was open, closed and chosen stays so, by name.
    pub(super) fn take(&mut self, tree: &Arc<TreeColumns>) {
        if Arc::ptr_eq(&self.tree, tree) {
            return;
        }
        let chosen = self.chosen();
        if self.tree.id.is_empty() {
            self.closed = closed_at_first(tree);
        }
        self.tree = Arc::clone(tree);
        self.ends = ends(tree);
        self.refresh(chosen.as_deref());
    }

    /// Finds the rows anew, and the chosen one among them.
    fn refresh(&mut self, chosen: Option<&str>) {
        self.shown = if self.filter.is_empty() { self.unclosed() } else { self.matching() };
        let place = chosen.and_then(|id| self.tree.id.iter().position(|known| known == id));
        let row = place.and_then(|place| self.shown.iter().rposition(|shown| *shown <= place));
        self.row = row.unwrap_or(self.row).min(self.shown.len().saturating_sub(1));
    }

    fn unclosed(&self) -> Vec<usize> {
        let (mut shown, mut place) = (Vec::new(), 0);
        while let Some(id) = self.tree.id.get(place) {
            shown.push(place);
            let end = self.ends.get(place).copied().unwrap_or_default();
            place = if self.closed.contains(id) { end.max(place + 1) } else { place + 1 };
        }
        shown
    }

    /// What matches the filter, with the nodes on the way to it.
    fn matching(&self) -> Vec<usize> {
        let wanted = self.filter.to_lowercase();
        let holds = |text: Option<&String>| text.is_some_and(|text| text.to_lowercase().contains(&wanted));
        let mut shown = BTreeSet::new();
        for place in 0..self.tree.id.len() {
            if holds(self.tree.id.get(place)) || holds(self.tree.title.get(place)) {
                shown.extend(std::iter::successors(Some(place), |place| self.parent(*place)));
            }
        }
        shown.into_iter().collect()
    }

    fn parent(&self, place: usize) -> Option<usize> {
        self.tree.parent.get(place).and_then(|parent| usize::try_from(*parent).ok())
    }

    pub(super) fn rows(&self) -> usize {
        self.shown.len()
    }

    /// The number of the chosen row.
    pub(super) fn row(&self) -> usize {
        self.row
    }

    /// The chosen node.
    pub(super) fn chosen(&self) -> Option<String> {
        self.shown.get(self.row).and_then(|place| self.tree.id.get(*place)).cloned()
    }

    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    /// Shows what holds a text, or everything.
    pub(super) fn set_filter(&mut self, text: String) {
        let chosen = self.chosen();
        self.filter = text;
        self.refresh(chosen.as_deref());
    }

    /// Chooses another row, so many further down or up.
    pub(super) fn step(&mut self, by: isize) {
        self.row = self.row.saturating_add_signed(by).min(self.shown.len().saturating_sub(1));
    }

    /// Chooses a node, and opens the way to it.
    pub(super) fn choose(&mut self, id: &str) {
        if self.chosen().as_deref() == Some(id) {
            return;
        }
        let Some(place) = self.tree.id.iter().position(|known| known == id) else { return };
        let way: Vec<usize> =
            std::iter::successors(self.parent(place), |place| self.parent(*place)).collect();
        for above in way {
            if let Some(above) = self.tree.id.get(above) {
                self.closed.remove(above);
            }
        }
        self.refresh(Some(id));
    }

    /// Closes the chosen node, or goes to the one above it.
    pub(super) fn close(&mut self) {
        let Some(place) = self.shown.get(self.row).copied() else { return };
        let id = self.tree.id.get(place).cloned().unwrap_or_default();
        if !self.is_leaf(place) && !self.closed.contains(&id) && self.filter.is_empty() {
            self.closed.insert(id.clone());
            self.refresh(Some(&id));
        } else if let Some(above) = self.parent(place).and_then(|place| self.tree.id.get(place)).cloned() {
            self.refresh(Some(&above));
        }
    }

    /// Opens the chosen node, or goes to the first one below it.
    pub(super) fn open(&mut self) {
        let Some(id) = self.chosen() else { return };
        if self.closed.remove(&id) {
            self.refresh(Some(&id));
        } else if self.shown.get(self.row).is_some_and(|place| !self.is_leaf(*place)) {
            self.step(1);
        }
    }

    fn is_leaf(&self, place: usize) -> bool {
        self.tree.flags.get(place).is_some_and(|flags| flags & LEAF != 0)
    }

    /// A row as it is to be drawn; `running` is the node that is worked on.
    pub(super) fn at(&self, row: usize, running: Option<&str>) -> Option<TreeRow> {
        let place = *self.shown.get(row)?;
        let tree = &self.tree;
        let (id, flags) = (tree.id.get(place)?, *tree.flags.get(place)?);
        let number = |column: &[u32]| column.get(place).copied().unwrap_or_default();
        let attempts = (number(&tree.attempts), number(&tree.max_attempts));
        let marks = NodeFlags {
            passes: flags & PASSES != 0,
            is_running: running == Some(id),
            is_exhausted: flags & EXHAUSTED != 0,
            is_next: tree.selected.as_ref() == Some(id),
            is_tried: flags & LEAF != 0 && attempts.0 > 0,
        };
        Some(TreeRow {
            id: id.clone(),
            title: runner_core::text::one_line(tree.title.get(place)?),
            depth: usize::try_from(number(&tree.depth)).unwrap_or_default(),
            state: NodeState::of(marks),
            is_leaf: flags & LEAF != 0,
            is_closed: self.filter.is_empty() && self.closed.contains(id),
            attempts,
            leaves: (number(&tree.passed), number(&tree.leaves)),
        })
    }
}

/// Where each node's descendants end in the columns: the place behind the last one.
fn ends(tree: &TreeColumns) -> Vec<usize> {
    let mut ends: Vec<usize> = (1..=tree.id.len()).collect();
    for place in (0..tree.id.len()).rev() {
        let end = ends.get(place).copied().unwrap_or_default();
        let parent = tree.parent.get(place).and_then(|parent| usize::try_from(*parent).ok());
        if let Some(of_parent) = parent.and_then(|parent| ends.get_mut(parent)) {
            *of_parent = end.max(*of_parent);
        }
    }
    ends
}

/// Which nodes are closed at first: in a large tree all below the root that are not on the way to what comes next.
fn closed_at_first(tree: &TreeColumns) -> BTreeSet<String> {
    if tree.id.len() <= SMALL_NODES {
        return BTreeSet::new();
    }
    let next = tree.selected.as_ref().and_then(|id| tree.id.iter().position(|known| known == id));
    let parent = |place: &usize| tree.parent.get(*place).and_then(|parent| usize::try_from(*parent).ok());
    let way: BTreeSet<usize> = std::iter::successors(next, parent).collect();
    let is_closed = |(place, depth): &(usize, &u32)| **depth >= 1 && !way.contains(place);
    let closed = tree.depth.iter().enumerate().filter(is_closed);
    closed.filter_map(|(place, _)| tree.id.get(place).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// root with a (a1, a2) and b.
    fn tree() -> Arc<TreeColumns> {
        let texts = |list: [&str; 5]| list.map(str::to_owned).into();
        Arc::new(TreeColumns {
            id: texts(["root", "a", "a1", "a2", "b"]),
            title: texts(["All", "First", "One", "Two", "Second"]),
            parent: vec![-1, 0, 1, 1, 0],
            depth: vec![0, 1, 2, 2, 1],
            flags: vec![0, 0, LEAF | PASSES, LEAF | EXHAUSTED, LEAF],
            attempts: vec![0, 0, 0, 3, 1],
            max_attempts: vec![3; 5],
            leaves: vec![3, 2, 1, 1, 1],
            passed: vec![1, 1, 1, 0, 0],
            selected: Some("a2".to_owned()),
            ..TreeColumns::default()
        })
    }

    fn ids(branches: &TreePane) -> Vec<String> {
        (0..branches.rows()).filter_map(|row| branches.at(row, None)).map(|row| row.id).collect()
    }

    #[test]
    fn what_is_closed_hides_what_is_below_it_and_keeps_the_choice() {
        let mut branches = TreePane::default();
        branches.take(&tree());
        assert_eq!(ids(&branches), ["root", "a", "a1", "a2", "b"]);
        branches.choose("a2");
        branches.close();
        assert_eq!(branches.chosen().as_deref(), Some("a"));
        branches.close();
        assert_eq!(
            (ids(&branches), branches.chosen().as_deref()),
            (["root", "a", "b"].map(str::to_owned).into(), Some("a"))
        );
        branches.take(&tree());
        assert_eq!(
            (branches.rows(), branches.chosen().as_deref()),
            (3, Some("a")),
            "another look changes nothing"
        );
        branches.open();
        branches.open();
        assert_eq!(branches.chosen().as_deref(), Some("a1"));
        branches.close();
        branches.close();
        branches.choose("a2");
        assert_eq!((branches.rows(), branches.chosen().as_deref()), (5, Some("a2")));
    }

    #[test]
    fn a_filter_shows_what_matches_and_the_way_to_it() {
        let mut branches = TreePane::default();
        branches.take(&tree());
        branches.set_filter("TWO".to_owned());
        assert_eq!(ids(&branches), ["root", "a", "a2"]);
        branches.set_filter("nothing".to_owned());
        assert_eq!((ids(&branches), branches.chosen()), (Vec::new(), None));
        branches.set_filter(String::new());
        assert_eq!(branches.rows(), 5);
    }

    #[test]
    fn every_node_stands_as_its_marks_say() {
        let mut branches = TreePane::default();
        branches.take(&tree());
        let states: Vec<NodeState> =
            (0..5).filter_map(|row| branches.at(row, Some("b"))).map(|row| row.state).collect();
        assert_eq!(
            states,
            [NodeState::Open, NodeState::Open, NodeState::Passed, NodeState::Stuck, NodeState::Running]
        );
        let last = branches.at(4, None).map(|row| (row.state, row.attempts));
        assert_eq!(last, Some((NodeState::Retried, (1, 3))));
    }

    #[test]
    fn a_large_tree_is_open_only_where_the_work_is() {
        let mut large = TreeColumns { selected: Some("n150".to_owned()), ..TreeColumns::default() };
        for nth in 0..300_i64 {
            large.id.push(format!("n{nth}"));
            large.title.push(String::new());
            large.parent.push(if nth == 0 { -1 } else { (nth - 1) / 100 * 100 });
            large.depth.push(if nth == 0 { 0 } else { u32::from(nth > 100) + 1 });
            large.flags.push(0);
        }
        let mut branches = TreePane::default();
        branches.take(&Arc::new(large));
        assert!(branches.rows() < 300 && ids(&branches).contains(&"n150".to_owned()), "{}", branches.rows());
    }
}
