//! The tree on a few lines: the way to the selected node, and a bounded summary of the rest.

use crate::id::NodeId;
use crate::text::{head, one_line};
use crate::tree::{Choice, Node, Tree};

/// How long the summary may get before the budget is even looked at.
const OUTLINE_BYTES_MAX: usize = 16 << 10;
/// How much of a title is shown.
const TITLE_BYTES_MAX: usize = 200;

/// The nodes from the root to the selected one, a line each.
pub(super) fn path(choice: &Choice<'_>) -> String {
    let line = |(depth, node): (usize, &&Node)| format!("{}{}\n", "  ".repeat(depth), named(node));
    choice.path.iter().enumerate().map(line).collect()
}

/// Every other node, a line each, as far as there is room. What lies below a node that passes is only counted.
pub(super) fn rest(tree: &Tree, selected: Option<&NodeId>) -> String {
    let mut outline = Outline { text: String::new(), selected, left_out: 0 };
    outline.add(tree.root(), 0);
    if outline.left_out > 0 {
        outline.text.push_str(&format!("and {} more nodes\n", outline.left_out));
    }
    outline.text
}

struct Outline<'t> {
    text: String,
    selected: Option<&'t NodeId>,
    left_out: usize,
}

impl Outline<'_> {
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
