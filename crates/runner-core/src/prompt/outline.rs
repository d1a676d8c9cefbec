//! The tree in the prompt: the path to the selected node, and a bounded outline of the rest.

use crate::model::id::NodeId;
use crate::model::tree::{Node, SelectedLeaf, Tree};
use crate::text::{head, one_line};

/// The longest outline, whatever the budget.
const OUTLINE_BYTES_MAX: usize = 16 << 10;
/// The longest title to show.
const TITLE_BYTES_MAX: usize = 200;

/// The nodes from the root to the selected one, one per line.
pub(super) fn path(selected: &SelectedLeaf<'_>) -> String {
    let nodes = selected.path.iter().enumerate();
    nodes.map(|(depth, node)| format!("{}{}\n", "  ".repeat(depth), label(node))).collect()
}

/// All nodes, one per line, as far as there is room. The leaves below a passed node are only counted.
pub(super) fn rest(tree: &Tree, selected: Option<&NodeId>) -> String {
    let mut outline = TreeOutline { text: String::new(), selected, omitted: 0 };
    outline.add(tree.root(), 0);
    if outline.omitted > 0 {
        outline.text.push_str(&format!("… and {} more nodes\n", outline.omitted));
    }
    outline.text
}

struct TreeOutline<'t> {
    text: String,
    selected: Option<&'t NodeId>,
    omitted: usize,
}

impl TreeOutline<'_> {
    fn add(&mut self, node: &Node, depth: usize) {
        let is_selected = self.selected == Some(&node.id);
        if self.text.len() > OUTLINE_BYTES_MAX {
            self.omitted += 1;
        } else {
            let checkbox = if node.passes { "[x]" } else { "[ ]" };
            let arrow = if is_selected { " <- selected" } else { "" };
            let leaves = if node.passes && !node.is_leaf() {
                format!(" ({} leaves)", node.leaves().total)
            } else {
                String::new()
            };
            let indent = "  ".repeat(depth);
            self.text.push_str(&format!("{indent}{checkbox} {}{leaves}{arrow}\n", label(node)));
        }
        if !node.passes && !is_selected {
            node.children.iter().for_each(|child| self.add(child, depth + 1));
        }
    }
}

fn label(node: &Node) -> String {
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
    fn leaves_below_a_passed_node_are_counted_and_those_below_the_selected_one_omitted() {
        let root = inner(
            "root",
            vec![
                inner("a", vec![passed("a1"), passed("a2")]),
                inner("b", vec![leaf("b1"), passed("b2")]),
                inner("c", vec![leaf("c1")]),
            ],
        );
        let expected = "[ ] root: Title of root\n  \
            [x] a: Title of a (2 leaves)\n  \
            [ ] b: Title of b\n    \
            [ ] b1: Title of b1\n    \
            [x] b2: Title of b2\n  \
            [ ] c: Title of c <- selected\n";
        assert_eq!(rest_of(root, "c"), expected);
    }

    #[test]
    fn a_long_outline_ends_with_the_number_of_omitted_nodes() {
        // Lines of 128 bytes; the first is shorter, so that the outline is exactly full before the last lines.
        let line = |nth: usize, bytes: usize| Node {
            title: "t".repeat(bytes - "  [ ] n000: \n".len()),
            order: i64::try_from(nth).unwrap(),
            ..leaf(&format!("n{nth:03}"))
        };
        let full = OUTLINE_BYTES_MAX / 128;
        let first = 128 - "[ ] root: Title of root\n".len() - " <- selected".len();
        let nodes = [line(0, first)].into_iter().chain((1..full + 4).map(|nth| line(nth, 128)));
        let outline = rest_of(inner("root", nodes.collect()), "n000");
        assert_eq!(outline.find(&format!("  [ ] n{full}: t")), Some(OUTLINE_BYTES_MAX));
        assert!(outline.ends_with("\n… and 3 more nodes\n"), "{outline}");
    }
}
