//! A bar that says how far a run is.

use runner_core::tree::Leaves;

use crate::out::{Glyph, Ink, Pen};

/// `██████░░░░ 41/120 leaves`, the bar `cells` wide. It is full only when every leaf passes, and shows something as
/// soon as one does.
pub(crate) fn bar(leaves: Leaves, cells: usize, pen: &Pen) -> String {
    let exact = cells * leaves.passed / leaves.total.max(1);
    let full = if leaves.passed > 0 { exact.max(1) } else { 0 };
    let done = pen.ink(Ink::Good, &pen.glyph(Glyph::Full).repeat(full));
    let left = pen.ink(Ink::Faint, &pen.glyph(Glyph::Empty).repeat(cells - full));
    let plural = if leaves.total == 1 { "leaf" } else { "leaves" };
    format!("{done}{left} {}/{} {plural}", leaves.passed, leaves.total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_at_the_end_and_not_before() {
        let bar = |passed, total| bar(Leaves { total, passed }, 4, &Pen::plain(80));
        assert_eq!(bar(0, 3), "░░░░ 0/3 leaves");
        assert_eq!(bar(1, 100), "█░░░ 1/100 leaves");
        assert_eq!(bar(99, 100), "███░ 99/100 leaves");
        assert_eq!(bar(100, 100), "████ 100/100 leaves");
        assert_eq!(bar(0, 1), "░░░░ 0/1 leaf");
    }
}
