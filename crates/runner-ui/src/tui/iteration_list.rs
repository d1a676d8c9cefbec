//! The list of iterations: which one is selected, and how each is drawn.

use ratatui::text::{Line, Span};
use runner_core::labels::Label;
use runner_core::step::Outcome;
use runner_core::text::one_line;
use runner_term::TextRole;
use runner_term::format::dollars;
use unicode_width::UnicodeWidthStr;

use super::theme::TuiTheme;
use crate::api::IterationRow;

/// The selected row and the scroll position. Rows count from the oldest iteration.
#[derive(Debug, Default)]
pub(super) struct IterationList {
    pub(super) selected: usize,
    /// The first visible row.
    pub(super) top: usize,
    /// How many rows are visible.
    pub(super) height: usize,
}

impl IterationList {
    /// Moves the selection down or up.
    pub(super) fn move_selection(&mut self, by: isize, count: usize) {
        self.selected = self.selected.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// Scrolls so that the selected row is visible.
    pub(super) fn fit(&mut self, height: usize, count: usize) {
        self.height = height.max(1);
        self.selected = self.selected.min(count.saturating_sub(1));
        let lowest = self.selected.saturating_sub(self.height - 1);
        self.top = self.top.clamp(lowest, self.selected.max(lowest)).min(count.saturating_sub(self.height));
    }
}

/// How an iteration ended; none while it runs, and for an outcome of a newer runner.
fn label(row: &IterationRow) -> Option<Label> {
    row.outcome.as_deref().and_then(Outcome::from_name).map(Outcome::label)
}

/// An iteration: number, task, outcome and cost.
pub(super) fn iteration_line(row: &IterationRow, theme: &TuiTheme, width: usize) -> Line<'static> {
    let label = label(row);
    let role = label.map_or(TextRole::Active, |label| label.tone.into());
    let glyph = label.map_or(runner_term::Glyph::Next, |label| label.symbol.into());
    let outcome = match (label, row.outcome.as_deref()) {
        (Some(label), _) => label.text.to_owned(),
        (None, Some(name)) => one_line(&name.replace('_', " ")),
        (None, None) => "running".to_owned(),
    };
    let cost = row.cost_microdollars.map(|cost| format!("  {}", dollars(cost))).unwrap_or_default();
    let end = format!("{outcome}{cost}");
    let start = format!("{} #{:<4} ", theme.glyph(glyph), row.iter);
    let task = one_line(row.node.as_deref().unwrap_or("tree repair"));
    let room = width.saturating_sub(start.width() + end.width() + 2);
    let task = theme.styler.fit(&task, room);
    let gap = " ".repeat(room.saturating_sub(task.width()) + 1);
    Line::from(vec![
        theme.span(role, start),
        Span::raw(task),
        Span::raw(gap),
        theme.span(role, end),
        Span::raw(" "),
    ])
}
