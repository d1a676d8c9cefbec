//! The mouse: the wheel scrolls the pane below the pointer, a click selects, a second one opens.

#![expect(clippy::wildcard_enum_match_arm, reason = "most mouse events have no meaning here")]

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::reader::WatchData;
use super::view::{FocusedPane, LeftPane, TuiAction, WatchView};

/// How many rows a turn of the wheel moves.
const WHEEL_ROWS: isize = 3;

impl WatchView {
    /// Handles the mouse: the wheel scrolls the pane below the pointer, a click selects.
    pub(super) fn mouse(&mut self, event: MouseEvent, data: Option<&WatchData>) -> TuiAction {
        let at = Position { x: event.column, y: event.row };
        let pane = match (self.left.left_area.contains(at), self.left.text_area.contains(at)) {
            (true, _) => FocusedPane::Tree,
            (_, true) => FocusedPane::Text,
            (false, false) => return TuiAction::Draw,
        };
        let is_click = event.kind == MouseEventKind::Down(MouseButton::Left);
        // The pointer alone changes nothing.
        if is_click || matches!(event.kind, MouseEventKind::ScrollDown | MouseEventKind::ScrollUp) {
            self.focus = pane;
        }
        match event.kind {
            MouseEventKind::ScrollDown => self.move_by(WHEEL_ROWS, data),
            MouseEventKind::ScrollUp => self.move_by(-WHEEL_ROWS, data),
            _ if is_click && pane == FocusedPane::Tree => {
                // The first row is the heading.
                let row = usize::from(at.y.saturating_sub(self.left.left_area.y));
                let Some(row) = row.checked_sub(1) else { return TuiAction::Draw };
                return self.click(row, data);
            }
            _ => {}
        }
        TuiAction::Draw
    }

    /// Selects a visible row of the left pane, or opens it if it is selected.
    fn click(&mut self, row: usize, data: Option<&WatchData>) -> TuiAction {
        self.stop_following(data);
        let (clicked, selected) = match self.left.shows {
            LeftPane::Tree => (self.tree.top + row, self.tree.pane.row()),
            LeftPane::Iterations => (self.left.list.top + row, self.left.list.selected),
        };
        if clicked == selected {
            return self.open(data);
        }
        let by = isize::try_from(clicked).unwrap_or(0) - isize::try_from(selected).unwrap_or(0);
        self.move_by(by, data);
        TuiAction::Draw
    }
}
