//! The progress bar of a run.

use runner_core::model::tree::LeafCount;

use crate::style::{Glyph, Styler, TextRole};

/// The width of the bar itself, without the counts.
const CELLS: std::ops::RangeInclusive<usize> = 6..=24;

/// `██████░░░░ 41/120 tasks`, in at most `width` cells unless that is less than the narrowest bar.
pub fn bar(leaves: LeafCount, width: usize, styler: &Styler) -> String {
    let noun = if leaves.total == 1 { "task" } else { "tasks" };
    let counts = format!(" {}/{} {noun}", leaves.passed, leaves.total);
    let cells = width.saturating_sub(counts.len()).clamp(*CELLS.start(), *CELLS.end());
    let full = full_cells(leaves, cells);
    let passed = styler.paint(TextRole::Good, &styler.glyph(Glyph::Full).repeat(full));
    let open = styler.paint(TextRole::Faint, &styler.glyph(Glyph::Empty).repeat(cells - full));
    format!("{passed}{open}{counts}")
}

/// How many of a bar's cells are full: all only if every leaf passed, and at least one once a leaf passed.
pub fn full_cells(leaves: LeafCount, cells: usize) -> usize {
    let exact = cells * leaves.passed / leaves.total.max(1);
    if leaves.passed > 0 { exact.max(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_full_only_when_every_leaf_passed() {
        let bar = |passed, total| bar(LeafCount { total, passed }, 0, &Styler::plain(80));
        assert_eq!(bar(0, 3), "░░░░░░ 0/3 tasks");
        assert_eq!(bar(1, 100), "█░░░░░ 1/100 tasks");
        assert_eq!(bar(99, 100), "█████░ 99/100 tasks");
        assert_eq!(bar(100, 100), "██████ 100/100 tasks");
        assert_eq!(bar(0, 1), "░░░░░░ 0/1 task");
    }

    #[test]
    fn bar_fills_the_given_width_up_to_its_maximum() {
        let width = |cells| bar(LeafCount { total: 8, passed: 4 }, cells, &Styler::plain(80)).chars().count();
        assert_eq!(width(20), 20);
        assert_eq!(width(500), 24 + " 4/8 tasks".len());
    }
}
