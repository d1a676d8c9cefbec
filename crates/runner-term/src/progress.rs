//! A bar that says how far a run is.

use runner_core::model::tree::LeafCount;

use crate::style::{Glyph, Styler, TextRole};

/// The widest and the narrowest that the bar itself gets.
const CELLS: std::ops::RangeInclusive<usize> = 6..=24;

/// `██████░░░░ 41/120 leaves` in at most `room` cells, as far as that is possible.
pub fn bar(leaves: LeafCount, room: usize, pen: &Styler) -> String {
    let plural = if leaves.total == 1 { "leaf" } else { "leaves" };
    let says = format!(" {}/{} {plural}", leaves.passed, leaves.total);
    let cells = room.saturating_sub(says.len()).clamp(*CELLS.start(), *CELLS.end());
    let full = full_cells(leaves, cells);
    let done = pen.paint(TextRole::Good, &pen.glyph(Glyph::Full).repeat(full));
    let left = pen.paint(TextRole::Faint, &pen.glyph(Glyph::Empty).repeat(cells - full));
    format!("{done}{left}{says}")
}

/// How many of a bar's cells are full: all only when every leaf passes, and one as soon as one does.
pub fn full_cells(leaves: LeafCount, cells: usize) -> usize {
    let exact = cells * leaves.passed / leaves.total.max(1);
    if leaves.passed > 0 { exact.max(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_at_the_end_and_not_before() {
        let bar = |passed, total| bar(LeafCount { total, passed }, 0, &Styler::plain(80));
        assert_eq!(bar(0, 3), "░░░░░░ 0/3 leaves");
        assert_eq!(bar(1, 100), "█░░░░░ 1/100 leaves");
        assert_eq!(bar(99, 100), "█████░ 99/100 leaves");
        assert_eq!(bar(100, 100), "██████ 100/100 leaves");
        assert_eq!(bar(0, 1), "░░░░░░ 0/1 leaf");
    }

    #[test]
    fn a_bar_takes_the_room_there_is() {
        let width = |room| bar(LeafCount { total: 8, passed: 4 }, room, &Styler::plain(80)).chars().count();
        assert_eq!(width(20), 20);
        assert_eq!(width(500), 24 + " 4/8 leaves".len());
    }
}
