//! The task tree, drawn: one line a node, states by glyph and word and colour, numbers at the right edge.

use runner_cli::state::{State, States};
use runner_cli::{Glyph, Ink, Pen};
use runner_core::tree::{Node, Tree};
use unicode_width::UnicodeWidthStr;

use super::clean;

/// Lines get no wider than this: numbers far away from their names are hard to read.
const WIDTH_MAX: usize = 100;

/// Which part of the tree to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// How many levels.
    pub(crate) levels: usize,
    /// Only nodes that do not pass.
    pub(crate) only_open: bool,
}

impl Shown {
    pub(crate) fn includes(self, node: &Node) -> bool {
        !(self.only_open && node.passes)
    }
}

/// The whole drawing.
pub(crate) fn draw(tree: &Tree, shown: Shown, pen: &Pen) -> String {
    let mut drawing = Drawing { states: States::new(tree), shown, pen, text: String::new() };
    drawing.node(tree.root(), "", "", 1);
    drawing.text
}

struct Drawing<'a> {
    states: States<'a>,
    shown: Shown,
    pen: &'a Pen,
    text: String,
}

impl Drawing<'_> {
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
        self.text.push_str(&pen.ink(Ink::Faint, format!("{lead}{goal}").trim_end()));
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
        let id_ink = if state == State::Next || state == State::Stuck { state.ink() } else { Ink::Strong };
        let title = if title.is_empty() { title } else { format!("  {title}") };
        let line = format!(
            "{}{} {}{}{gap}{}",
            pen.ink(Ink::Faint, lead),
            pen.ink(state.ink(), pen.glyph(state.glyph())),
            pen.ink(id_ink, &id),
            if state == State::Passed { pen.ink(Ink::Faint, &title) } else { title },
            pen.ink(if state == State::Stuck { Ink::Bad } else { Ink::Faint }, &numbers),
        );
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

/// What stands at the right edge: the state where it needs a word, attempts where some were spent, leaves of an
/// inner node.
fn numbers(node: &Node, state: State, hidden: bool, pen: &Pen) -> String {
    if !node.is_leaf() {
        let leaves = node.leaves();
        let more = if hidden { pen.glyph(Glyph::Cut) } else { "" };
        return format!("{more}{}/{}", leaves.passed, leaves.total);
    }
    let attempts = format!("{}/{}", node.attempts, node.max_attempts);
    match state {
        State::Stuck => format!("stuck {attempts}"),
        State::Running | State::Next if node.attempts > 0 => {
            format!("{} {} {attempts}", state.word(), pen.glyph(Glyph::Retried))
        }
        State::Running | State::Next => state.word().to_owned(),
        State::Retried => format!("{} {attempts}", pen.glyph(Glyph::Retried)),
        State::Passed | State::Open => String::new(),
    }
}
