//! The task tree, drawn: one line a node, states by glyph and word and colour, numbers at the right edge.

use runner_core::labels::{NodeState, NodeStates};
use runner_core::model::tree::{Node, Tree};
use runner_term::{Glyph, Styler, TextRole};
use unicode_width::UnicodeWidthStr;

use super::clean;

/// Lines get no wider than this: numbers far away from their names are hard to read.
const WIDTH_MAX: usize = 100;

/// Which part of the tree to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeScope {
    /// How many levels.
    pub(crate) levels: usize,
    /// Only nodes that do not pass.
    pub(crate) only_open: bool,
}

impl TreeScope {
    pub(crate) fn includes(self, node: &Node) -> bool {
        !(self.only_open && node.passes)
    }
}

/// The whole drawing.
pub(crate) fn draw(tree: &Tree, shown: TreeScope, pen: &Styler) -> String {
    let mut drawing = TreeDrawing { states: NodeStates::new(tree), shown, pen, text: String::new() };
    drawing.node(tree.root(), "", "", 1);
    drawing.text
}

struct TreeDrawing<'a> {
    states: NodeStates<'a>,
    shown: TreeScope,
    pen: &'a Styler,
    text: String,
}

impl TreeDrawing<'_> {
    fn node(&mut self, node: &Node, trunk: &str, branch: &str, level: usize) {
        let below = match branch {
            "" => trunk.to_owned(),
            branch if branch == self.pen.glyph(Glyph::LastBranch) => format!("{trunk}   "),
            _ => format!("{trunk}{}", self.pen.glyph(Glyph::Trunk)),
        };
        self.line(node, &format!("{trunk}{branch}"), level);
        let depth_left = level < self.shown.levels;
        let children: Vec<&Node> =
            node.children.iter().filter(|child| depth_left && self.shown.includes(child)).collect();
        if self.pen.verbose {
            let trunk = if children.is_empty() { "  " } else { self.pen.glyph(Glyph::Trunk) };
            self.goal(node, &format!("{below}{trunk}"));
        }
        for (index, child) in children.iter().enumerate() {
            let last = index + 1 == children.len();
            let branch = self.pen.glyph(if last { Glyph::LastBranch } else { Glyph::Branch });
            self.node(child, &below, branch, level + 1);
        }
    }

    /// What the node is for, below its line.
    fn goal(&mut self, node: &Node, lead: &str) {
        let pen = self.pen;
        let goal = pen.fit(&clean(&node.goal), pen.width.min(WIDTH_MAX).saturating_sub(lead.width()));
        self.text.push_str(&pen.paint(TextRole::Faint, format!("{lead}{goal}").trim_end()));
        self.text.push('\n');
    }

    fn line(&mut self, node: &Node, lead: &str, level: usize) {
        let pen = self.pen;
        let state = self.states.of(node);
        let hidden = level >= self.shown.levels && !node.is_leaf();
        let numbers = numbers(node, state, hidden, pen);
        let width = pen.width.min(WIDTH_MAX);
        // The lead, a glyph with its space, and two spaces before the numbers are always there.
        let room = width.saturating_sub(lead.width() + 2 + 2 + numbers.width());
        let id = pen.fit(node.id.as_str(), room);
        let title = clean(&node.title);
        let title_room = room.saturating_sub(id.width() + 2);
        let title = if title_room >= 8 { pen.fit(&title, title_room) } else { String::new() };
        let used = id.width() + if title.is_empty() { 0 } else { title.width() + 2 };
        let gap = " ".repeat(room.saturating_sub(used) + 2);
        let id_ink = if state == NodeState::Next || state == NodeState::Stuck {
            state.label().tone.into()
        } else {
            TextRole::Strong
        };
        let title = if title.is_empty() { title } else { format!("  {title}") };
        let line = format!(
            "{}{} {}{}{gap}{}",
            pen.paint(TextRole::Faint, lead),
            pen.label_glyph(state.label()),
            pen.paint(id_ink, &id),
            if state == NodeState::Passed { pen.paint(TextRole::Faint, &title) } else { title },
            pen.paint(if state == NodeState::Stuck { TextRole::Bad } else { TextRole::Faint }, &numbers),
        );
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

/// What stands at the right edge: the state where it needs a word, attempts where some were spent, leaves of an
/// inner node.
fn numbers(node: &Node, state: NodeState, hidden: bool, pen: &Styler) -> String {
    if !node.is_leaf() {
        let leaves = node.leaves();
        let more = if hidden { pen.glyph(Glyph::Cut) } else { "" };
        return format!("{more}{}/{}", leaves.passed, leaves.total);
    }
    let attempts = format!("{}/{}", node.attempts, node.max_attempts);
    match state {
        NodeState::Stuck => format!("stuck {attempts}"),
        NodeState::Running | NodeState::Next if node.attempts > 0 => {
            format!("{} {} {attempts}", state.as_str(), pen.glyph(Glyph::Retried))
        }
        NodeState::Running | NodeState::Next => state.as_str().to_owned(),
        NodeState::Retried => format!("{} {attempts}", pen.glyph(Glyph::Retried)),
        NodeState::Passed | NodeState::Open => String::new(),
    }
}
