//! The export of a tree as a markdown checklist. Importing it gives the same titles, goals, criteria and nesting.

use super::markdown::{ACCEPTANCE, GOAL, TITLE};
use super::markdown_lines::{MarkdownLine, acceptance_label, classify};
use crate::model::tree::{Node, Tree};

/// The tree as markdown: the root is the heading, and every other node an item with a box, ticked if it has passed.
pub fn export(tree: &Tree) -> String {
    export_root(tree.root())
}

/// The same for nodes that need not be a valid tree.
pub(crate) fn export_root(root: &Node) -> String {
    let mut page = String::new();
    if is_plain_line(&root.title) && !root.title.contains('#') {
        page.push_str(&format!("# {}\n", root.title));
    } else {
        page.push_str("# Plan\n");
        push_block(&mut page, "", TITLE, &root.title);
    }
    push_body(&mut page, "", root);
    if !root.children.is_empty() {
        page.push('\n');
    }
    root.children.iter().for_each(|child| push_item(&mut page, 0, child));
    page
}

fn push_item(page: &mut String, level: usize, node: &Node) {
    let item_indent = "  ".repeat(level);
    let indent = "  ".repeat(level + 1);
    let tick = if node.passes { "x" } else { " " };
    let is_plain = is_plain_line(&node.title);
    let title = if is_plain { node.title.as_str() } else { "(see below)" };
    page.push_str(&format!("{item_indent}- [{tick}] {title}\n"));
    if !is_plain {
        push_block(page, &indent, TITLE, &node.title);
    }
    push_body(page, &indent, node);
    node.children.iter().for_each(|child| push_item(page, level + 1, child));
}

/// Goal and criteria, each as plain text if that is parsed as the same text.
fn push_body(page: &mut String, indent: &str, node: &Node) {
    if !node.goal.is_empty() {
        page.push('\n');
        let is_plain = node.goal.split('\n').all(|line| line.is_empty() || is_plain_line(line));
        if is_plain && node.goal.trim_matches('\n') == node.goal {
            for line in node.goal.split('\n') {
                page.push_str(format!("{indent}{line}").trim_end());
                page.push('\n');
            }
        } else {
            push_block(page, indent, GOAL, &node.goal);
        }
    }
    if node.acceptance.is_empty() {
        return;
    }
    page.push('\n');
    if node.acceptance.iter().all(|criterion| is_plain_line(criterion)) {
        page.push_str(&format!("{indent}Acceptance:\n\n"));
        node.acceptance.iter().for_each(|criterion| page.push_str(&format!("{indent}- {criterion}\n")));
        page.push('\n');
    } else {
        node.acceptance.iter().for_each(|criterion| push_block(page, indent, ACCEPTANCE, criterion));
    }
}

/// Whether a line is parsed as plain text, and as the same text.
fn is_plain_line(line: &str) -> bool {
    line == line.trim()
        && !line.chars().any(char::is_control)
        && !line.starts_with(['<', '['])
        && classify(line) == MarkdownLine::Text(line)
        && acceptance_label(line).is_none()
}

/// A fenced block, whose content is imported exactly. The fence is longer than any in the text.
fn push_block(page: &mut String, indent: &str, info: &str, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    page.push_str(&format!("{indent}{fence}{info}\n"));
    for line in text.split('\n') {
        let indent = if line.is_empty() { "" } else { indent };
        page.push_str(&format!("{indent}{line}\n"));
    }
    page.push_str(&format!("{indent}{fence}\n"));
}
