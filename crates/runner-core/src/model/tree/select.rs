//! The selection of the next leaf: the leftmost open one, with an explanation.

use super::{Node, Tree};
use crate::config::OnStuck;

/// The next step that follows from a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection<'t> {
    /// The root passes: nothing is left to do.
    Complete,
    /// Work on this leaf.
    Leaf(SelectedLeaf<'t>),
    /// This leaf is next, but has no attempts left.
    Stuck(SelectedLeaf<'t>),
}

/// A leaf and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedLeaf<'t> {
    pub leaf: &'t Node,
    /// The nodes from the root to the leaf, both included.
    pub path: Vec<&'t Node>,
}

/// One level of the selection: the child that was chosen, and its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectionStep<'t> {
    pub parent: &'t Node,
    /// The first open child that was not skipped.
    pub chosen: &'t Node,
    /// How many siblings before it have passed.
    pub passed_before: usize,
    /// How many siblings before it are open, but were skipped because no task in them has attempts left.
    pub skipped_before: usize,
    /// How many siblings after it are open.
    pub open_after: usize,
}

/// Selects the next leaf: from the root downwards, always the first open child, with siblings in the order `(order, id)`. The
/// result depends on nothing but the tree.
pub fn select(tree: &Tree) -> Selection<'_> {
    let mut node = tree.root();
    if node.passes {
        return Selection::Complete;
    }
    let mut path = vec![node];
    while let Some(open) = node.children.iter().find(|child| !child.passes) {
        node = open;
        path.push(node);
    }
    let selected = SelectedLeaf { leaf: node, path };
    if node.is_exhausted() { Selection::Stuck(selected) } else { Selection::Leaf(selected) }
}

/// Selects the next leaf by the policy for stuck tasks: with "skip", the leftmost open leaf that has attempts left. The result
/// depends on nothing but tree and configuration.
pub fn next_selection(tree: &Tree, on_stuck: OnStuck) -> Selection<'_> {
    match (select(tree), on_stuck) {
        (Selection::Stuck(stuck), OnStuck::Skip) => {
            let mut path = Vec::new();
            let leaf = first_with_attempts(tree.root(), &mut path);
            leaf.map_or(Selection::Stuck(stuck), |leaf| Selection::Leaf(SelectedLeaf { leaf, path }))
        }
        (selection, OnStuck::Stop | OnStuck::Replan | OnStuck::Skip) => selection,
    }
}

/// The leftmost open leaf with attempts left, and the path to it.
fn first_with_attempts<'t>(node: &'t Node, path: &mut Vec<&'t Node>) -> Option<&'t Node> {
    if node.passes || node.is_leaf() && node.is_exhausted() {
        return None;
    }
    path.push(node);
    if node.is_leaf() {
        return Some(node);
    }
    let found = node.children.iter().find_map(|child| first_with_attempts(child, path));
    if found.is_none() {
        path.pop();
    }
    found
}

/// The open leaves without attempts left, in the order of the tree.
pub fn stuck_leaves(tree: &Tree) -> Vec<&Node> {
    fn collect<'t>(node: &'t Node, stuck: &mut Vec<&'t Node>) {
        if node.is_leaf() && !node.passes && node.is_exhausted() {
            stuck.push(node);
        }
        node.children.iter().for_each(|child| collect(child, stuck));
    }
    let mut stuck = Vec::new();
    collect(tree.root(), &mut stuck);
    stuck
}

impl<'t> SelectedLeaf<'t> {
    /// The levels of the selection, from the root.
    pub fn steps(&self) -> impl Iterator<Item = SelectionStep<'t>> {
        self.path.iter().zip(self.path.iter().skip(1)).map(|(parent, chosen)| {
            let index = parent.children.iter().position(|child| child.id == chosen.id).unwrap_or_default();
            let passed = parent.children.iter().take(index).filter(|child| child.passes).count();
            let after = parent.children.iter().skip(index + 1);
            SelectionStep {
                parent,
                chosen,
                passed_before: passed,
                skipped_before: index - passed,
                open_after: after.filter(|child| !child.passes).count(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::path_text;
    use crate::model::tree::sample::{inner, leaf, passed, tree};

    #[test]
    fn the_leftmost_open_leaf_is_selected() {
        let done = inner("a", vec![passed("b"), passed("c")]);
        let half = inner("d", vec![passed("e"), inner("f", vec![leaf("g"), leaf("h")]), leaf("i")]);
        let tree = tree(inner("root", vec![done, half, leaf("j"), leaf("k")]));
        let Selection::Leaf(choice) = select(&tree) else { panic!("a leaf is open") };
        assert_eq!(path_text(&choice.path), "root/d/f/g");
        assert_eq!(choice.leaf.id.as_str(), "g");
        let steps: Vec<_> = choice
            .steps()
            .map(|step| {
                (step.parent.id.as_str(), step.chosen.id.as_str(), step.passed_before, step.open_after)
            })
            .collect();
        assert_eq!(steps, [("root", "d", 1, 2), ("d", "f", 1, 1), ("f", "g", 0, 1)]);
    }

    #[test]
    fn a_root_without_children_is_a_leaf() {
        let tree = tree(leaf("root"));
        let Selection::Leaf(choice) = select(&tree) else { panic!("the root is open") };
        assert_eq!((choice.leaf.id.as_str(), choice.path.len(), choice.steps().count()), ("root", 1, 0));
    }

    #[test]
    fn nothing_is_selected_if_the_root_passes() {
        assert_eq!(select(&tree(inner("root", vec![passed("a")]))), Selection::Complete);
        assert_eq!(select(&tree(passed("root"))), Selection::Complete);
    }

    #[test]
    fn a_stuck_leaf_is_skipped_where_the_policy_says_so() {
        let stuck = |id| Node { attempts: 3, ..leaf(id) };
        let first = inner("a", vec![stuck("b"), stuck("c")]);
        let open =
            tree(inner("root", vec![first.clone(), passed("d"), inner("e", vec![stuck("f"), leaf("g")])]));
        let Selection::Leaf(choice) = next_selection(&open, OnStuck::Skip) else { panic!("a leaf is open") };
        assert_eq!(path_text(&choice.path), "root/e/g");
        let steps: Vec<_> = choice.steps().map(|step| (step.passed_before, step.skipped_before)).collect();
        assert_eq!(steps, [(1, 1), (0, 1)]);
        let ids: Vec<&str> = stuck_leaves(&open).iter().map(|leaf| leaf.id.as_str()).collect();
        assert_eq!(ids, ["b", "c", "f"]);
        for policy in [OnStuck::Stop, OnStuck::Replan] {
            assert_eq!(next_selection(&open, policy), select(&open));
        }
        let none_left = tree(inner("root", vec![first, passed("d")]));
        assert!(
            matches!(next_selection(&none_left, OnStuck::Skip), Selection::Stuck(leaf) if leaf.leaf.id.as_str() == "b")
        );
        let done = tree(passed("root"));
        assert_eq!(next_selection(&done, OnStuck::Skip), Selection::Complete);
    }

    #[test]
    fn a_leaf_without_attempts_is_stuck_and_not_skipped() {
        let exhausted = Node { attempts: 3, ..leaf("a") };
        let tree = tree(inner("root", vec![exhausted, leaf("b")]));
        assert!(matches!(select(&tree), Selection::Stuck(choice) if choice.leaf.id.as_str() == "a"));
    }
}
