//! Search in the shown log: the rows that contain a text, and the one that is shown.

use ratatui::text::Line;

/// Which match comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchDirection {
    Forward,
    Back,
}

#[derive(Debug, Default)]
pub(super) struct TextSearch {
    pub(super) query: String,
    /// The row of the match that is shown.
    pub(super) found: Option<usize>,
}

impl TextSearch {
    pub(super) fn matches(&self, line: &Line<'_>) -> bool {
        !self.query.is_empty() && line.to_string().to_lowercase().contains(&self.query.to_lowercase())
    }

    /// Moves to the next match after the shown one, or after `top`. At either end, it starts again at the other.
    pub(super) fn step(
        &mut self,
        lines: &[Line<'_>],
        top: usize,
        direction: SearchDirection,
    ) -> Option<usize> {
        let rows: Vec<usize> =
            (0..lines.len()).filter(|row| lines.get(*row).is_some_and(|line| self.matches(line))).collect();
        let after = |row: &&usize| self.found.map_or(**row >= top, |found| **row > found);
        let before = |row: &&usize| self.found.map_or(**row < top, |found| **row < found);
        let next = match direction {
            SearchDirection::Forward => rows.iter().find(after).or(rows.first()),
            SearchDirection::Back => rows.iter().rev().find(before).or(rows.last()),
        };
        self.found = next.copied();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_visited_in_order_and_again_from_the_start() {
        let lines: Vec<Line<'_>> = ["ok", "Error: a", "ok", "an error"].map(Line::from).into();
        let mut search = TextSearch { query: "ERROR".to_owned(), found: None };
        let mut step = |direction| search.step(&lines, 0, direction);
        assert_eq!(step(SearchDirection::Forward), Some(1));
        assert_eq!(step(SearchDirection::Forward), Some(3));
        assert_eq!(step(SearchDirection::Forward), Some(1));
        assert_eq!(step(SearchDirection::Back), Some(3));
        let mut nothing = TextSearch { query: "none".to_owned(), found: None };
        assert_eq!(nothing.step(&lines, 0, SearchDirection::Forward), None);
        assert!(!TextSearch::default().matches(&Line::from("x")));
    }
}
