//! Which leaf comes next: the leftmost open one, and why it is that one.

use super::{Node, Tree};

/// What the tree says comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection<'t> {
    /// Nothing: the root passes.
    Complete,
    /// This leaf.
    Leaf(SelectedLeaf<'t>),
    /// This leaf, but every attempt at it is spent.
    Stuck(SelectedLeaf<'t>),
}

/// A leaf and the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedLeaf<'t> {
    /// The leaf.
    pub leaf: &'t Node,
    /// The nodes from the root to the leaf, both included.
    pub path: Vec<&'t Node>,
}

/// One turn on the way down: which child was taken, and what of its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectionStep<'t> {
    /// The node whose children were looked at.
    pub parent: &'t Node,
    /// The first open one.
    pub taken: &'t Node,
    /// How many siblings before it pass already.
    pub passed_before: usize,
    /// How many siblings behind it are open too, and wait.
    pub open_behind: usize,
}

/// Picks the next leaf: from the root downwards always the first open child, siblings in the order
/// `(order, id)`. A function of the tree alone.
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
    let choice = SelectedLeaf { leaf: node, path };
    if node.is_exhausted() { Selection::Stuck(choice) } else { Selection::Leaf(choice) }
}

impl<'t> SelectedLeaf<'t> {
    /// The turns on the way down, from the root.
    pub fn turns(&self) -> impl Iterator<Item = SelectionStep<'t>> {
        self.path.iter().zip(self.path.iter().skip(1)).map(|(parent, taken)| {
            let place = parent.children.iter().position(|child| child.id == taken.id).unwrap_or_default();
            let behind = parent.children.iter().skip(place + 1);
            SelectionStep {
                parent,
                taken,
                passed_before: place,
                open_behind: behind.filter(|child| !child.passes).count(),
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
    fn the_leftmost_open_leaf_comes_next() {
        let done = inner("a", vec![passed("b"), passed("c")]);
        let half = inner("d", vec![passed("e"), inner("f", vec![leaf("g"), leaf("h")]), leaf("i")]);
        let tree = tree(inner("root", vec![done, half, leaf("j"), leaf("k")]));
        let Selection::Leaf(choice) = select(&tree) else { panic!("a leaf is open") };
        assert_eq!(path_text(&choice.path), "root/d/f/g");
        assert_eq!(choice.leaf.id.as_str(), "g");
        let turns: Vec<_> = choice
            .turns()
            .map(|turn| {
                (turn.parent.id.as_str(), turn.taken.id.as_str(), turn.passed_before, turn.open_behind)
            })
            .collect();
        assert_eq!(turns, [("root", "d", 1, 2), ("d", "f", 1, 1), ("f", "g", 0, 1)]);
    }

    #[test]
    fn a_root_alone_is_its_own_leaf() {
        let tree = tree(leaf("root"));
        let Selection::Leaf(choice) = select(&tree) else { panic!("the root is open") };
        assert_eq!((choice.leaf.id.as_str(), choice.path.len(), choice.turns().count()), ("root", 1, 0));
    }

    #[test]
    fn nothing_comes_after_a_root_that_passes() {
        assert_eq!(select(&tree(inner("root", vec![passed("a")]))), Selection::Complete);
        assert_eq!(select(&tree(passed("root"))), Selection::Complete);
    }

    #[test]
    fn a_leaf_without_attempts_is_stuck_and_not_passed_over() {
        let spent = Node { attempts: 3, ..leaf("a") };
        let tree = tree(inner("root", vec![spent, leaf("b")]));
        assert!(matches!(select(&tree), Selection::Stuck(choice) if choice.leaf.id.as_str() == "a"));
    }
}
