//! The tree on a few lines: the way to the selected node, and a bounded summary of the rest.

use crate::model::id::NodeId;
use crate::model::tree::{Node, SelectedLeaf, Tree};
use crate::text::{head, one_line};

/// How long the summary may get before the budget is even looked at.
const OUTLINE_BYTES_MAX: usize = 16 << 10;
/// How much of a title is shown.
const TITLE_BYTES_MAX: usize = 200;

/// The nodes from the root to the selected one, a line each.
pub(super) fn path(choice: &SelectedLeaf<'_>) -> String {
    let line = |(depth, node): (usize, &&Node)| format!("{}{}\n", "  ".repeat(depth), named(node));
    choice.path.iter().enumerate().map(line).collect()
}

/// Every other node, a line each, as far as there is room. What lies below a node that passes is only counted.
pub(super) fn rest(tree: &Tree, selected: Option<&NodeId>) -> String {
    let mut outline = TreeOutline { text: String::new(), selected, left_out: 0 };
    outline.add(tree.root(), 0);
    if outline.left_out > 0 {
        outline.text.push_str(&format!("and {} more nodes\n", outline.left_out));
    }
    outline.text
}

struct TreeOutline<'t> {
    text: String,
    selected: Option<&'t NodeId>,
    left_out: usize,
}

impl TreeOutline<'_> {
    fn add(&mut self, node: &Node, depth: usize) {
        let is_selected = self.selected == Some(&node.id);
        if self.text.len() > OUTLINE_BYTES_MAX {
            self.left_out += 1;
        } else {
            let mark = if node.passes { "[x]" } else { "[ ]" };
            let here = if is_selected { " <- selected" } else { "" };
            let inside = if node.passes && !node.is_leaf() {
                format!(" ({} leaves)", node.leaves().total)
            } else {
                String::new()
            };
            let indent = "  ".repeat(depth);
            self.text.push_str(&format!("{indent}{mark} {}{inside}{here}\n", named(node)));
        }
        if !node.passes && !is_selected {
            node.children.iter().for_each(|child| self.add(child, depth + 1));
        }
    }
}

fn named(node: &Node) -> String {
    format!("{}: {}", node.id, head(&one_line(&node.title), TITLE_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{inner, leaf, passed, tree};

    fn rest_of(root: Node, selected: &str) -> String {
        rest(&tree(root), Some(&NodeId::new(selected).unwrap()))
    }

    #[test]
    fn what_is_below_a_passed_node_is_counted_and_below_the_selected_one_left_out() {
        let root = inner(
            "root",
            vec![
                inner("a", vec![passed("a1"), passed("a2")]),
                inner("b", vec![leaf("b1"), passed("b2")]),
                inner("c", vec![leaf("c1")]),
            ],
        );
        let told = "[ ] root: Title of root\n  \
            [x] a: Title of a (2 leaves)\n  \
            [ ] b: Title of b\n    \
            [ ] b1: Title of b1\n    \
            [x] b2: Title of b2\n  \
            [ ] c: Title of c <- selected\n";
        assert_eq!(rest_of(root, "c"), told);
    }

    #[test]
    fn a_long_outline_ends_with_how_many_nodes_it_leaves_out() {
        // Lines of 128 bytes; the first is shorter, so that the outline is full to the byte when one more comes.
        let line = |nth: usize, bytes: usize| Node {
            title: "t".repeat(bytes - "  [ ] n000: \n".len()),
            order: i64::try_from(nth).unwrap(),
            ..leaf(&format!("n{nth:03}"))
        };
        let full = OUTLINE_BYTES_MAX / 128;
        let first = 128 - "[ ] root: Title of root\n".len() - " <- selected".len();
        let nodes = [line(0, first)].into_iter().chain((1..full + 4).map(|nth| line(nth, 128)));
        let told = rest_of(inner("root", nodes.collect()), "n000");
        assert_eq!(told.find(&format!("  [ ] n{full}: t")), Some(OUTLINE_BYTES_MAX));
        assert!(told.ends_with("\nand 3 more nodes\n"), "{told}");
    }
}
