//! The drawing of the task tree: one line per node, its state as glyph, word and colour, counts at the right edge.

use runner_core::config::OnStuck;
use runner_core::labels::{NodeState, NodeStates};
use runner_core::model::tree::{Node, Tree};
use runner_term::{Glyph, Styler, TextRole};
use unicode_width::UnicodeWidthStr;

use super::clean;

/// Lines are not wider than this: counts far away from their titles are hard to read.
const WIDTH_MAX: usize = 100;

/// The part of the tree to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeScope {
    pub(crate) levels: usize,
    pub(crate) only_open: bool,
}

impl TreeScope {
    pub(crate) fn includes(self, node: &Node) -> bool {
        !(self.only_open && node.passes)
    }
}

pub(crate) fn draw(tree: &Tree, on_stuck: OnStuck, scope: TreeScope, styler: &Styler) -> String {
    let states = NodeStates::new(tree, on_stuck);
    let mut drawing = TreeDrawing { states, scope, styler, text: String::new() };
    drawing.node(tree.root(), "", "", 1);
    drawing.text
}

struct TreeDrawing<'a> {
    states: NodeStates<'a>,
    scope: TreeScope,
    styler: &'a Styler,
    text: String,
}

impl TreeDrawing<'_> {
    fn node(&mut self, node: &Node, trunk: &str, branch: &str, level: usize) {
        let below = match branch {
            "" => trunk.to_owned(),
            branch if branch == self.styler.glyph(Glyph::LastBranch) => format!("{trunk}   "),
            _ => format!("{trunk}{}", self.styler.glyph(Glyph::Trunk)),
        };
        self.line(node, &format!("{trunk}{branch}"), level);
        let has_more_levels = level < self.scope.levels;
        let children: Vec<&Node> =
            node.children.iter().filter(|child| has_more_levels && self.scope.includes(child)).collect();
        if self.styler.verbose {
            let trunk = if children.is_empty() { "  " } else { self.styler.glyph(Glyph::Trunk) };
            self.goal(node, &format!("{below}{trunk}"));
        }
        for (index, child) in children.iter().enumerate() {
            let last = index + 1 == children.len();
            let branch = self.styler.glyph(if last { Glyph::LastBranch } else { Glyph::Branch });
            self.node(child, &below, branch, level + 1);
        }
    }

    fn goal(&mut self, node: &Node, lead: &str) {
        let styler = self.styler;
        let goal = styler.fit(&clean(&node.goal), styler.width.min(WIDTH_MAX).saturating_sub(lead.width()));
        self.text.push_str(&styler.paint(TextRole::Faint, format!("{lead}{goal}").trim_end()));
        self.text.push('\n');
    }

    fn line(&mut self, node: &Node, lead: &str, level: usize) {
        let styler = self.styler;
        let state = self.states.of(node);
        let hidden = level >= self.scope.levels && !node.is_leaf();
        let counts = counts(node, state, hidden, styler);
        let width = styler.width.min(WIDTH_MAX);
        // Besides the lead there are always a glyph with its space, and two spaces before the counts.
        let free = width.saturating_sub(lead.width() + 2 + 2 + counts.width());
        let id = styler.fit(node.id.as_str(), free);
        let title = clean(&node.title);
        let title_width = free.saturating_sub(id.width() + 2);
        let title = if title_width >= 8 { styler.fit(&title, title_width) } else { String::new() };
        let used = id.width() + if title.is_empty() { 0 } else { title.width() + 2 };
        let gap = " ".repeat(free.saturating_sub(used) + 2);
        let id_role = if state == NodeState::Next || state == NodeState::Stuck {
            state.label().tone.into()
        } else {
            TextRole::Strong
        };
        let title = if title.is_empty() { title } else { format!("  {title}") };
        let line = format!(
            "{}{} {}{}{gap}{}",
            styler.paint(TextRole::Faint, lead),
            styler.label_glyph(state.label()),
            styler.paint(id_role, &id),
            if state == NodeState::Passed { styler.paint(TextRole::Faint, &title) } else { title },
            styler.paint(if state == NodeState::Stuck { TextRole::Bad } else { TextRole::Faint }, &counts),
        );
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

/// The text at the right edge: a leaf's state and used attempts as far as they matter, and the leaf counts of a parent.
fn counts(node: &Node, state: NodeState, hidden: bool, styler: &Styler) -> String {
    if !node.is_leaf() {
        let leaves = node.leaves();
        let more = if hidden { styler.glyph(Glyph::Cut) } else { "" };
        return format!("{more}{}/{}", leaves.passed, leaves.total);
    }
    let attempts = format!("{}/{}", node.attempts, node.max_attempts);
    match state {
        NodeState::Stuck => format!("stuck {attempts}"),
        NodeState::Running | NodeState::Next if node.attempts > 0 => {
            format!("{} {} {attempts}", state.as_str(), styler.glyph(Glyph::Retried))
        }
        NodeState::Running | NodeState::Next => state.as_str().to_owned(),
        NodeState::Retried => format!("{} {attempts}", styler.glyph(Glyph::Retried)),
        NodeState::Passed | NodeState::Open => String::new(),
    }
}
