//! How the view looks: inks as the terminal's own colours, glyphs that it has, lines that fit.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use runner_cli::{Glyph, Ink, Pen};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::api::StateWord;

/// What a text takes when it goes on in the next row.
const INDENT: usize = 2;

/// Draws for one terminal.
#[derive(Clone, Debug)]
pub(super) struct Paint {
    pub(super) pen: Pen,
}

/// A line of what is read: a mark before it, and how it looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) glyph: Option<Glyph>,
    pub(super) ink: Option<Ink>,
    pub(super) text: String,
}

impl Told {
    pub(super) fn new(glyph: Glyph, ink: Option<Ink>, text: impl Into<String>) -> Self {
        Self { glyph: Some(glyph), ink, text: text.into() }
    }

    /// A line that belongs to the one before it.
    pub(super) fn under(ink: Option<Ink>, text: impl Into<String>) -> Self {
        Self { glyph: None, ink, text: text.into() }
    }
}

impl Paint {
    /// The style of an ink. Without colour there is none at all.
    pub(super) fn style(&self, ink: Ink) -> Style {
        if !self.pen.is_coloured() {
            return Style::new();
        }
        match ink {
            Ink::Good => Style::new().fg(Color::Green),
            Ink::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Ink::Warn => Style::new().fg(Color::Yellow),
            Ink::Active => Style::new().fg(Color::Cyan),
            Ink::Strong => Style::new().add_modifier(Modifier::BOLD),
            Ink::Faint => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// What is chosen stands out without any colour.
    pub(super) fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn glyph(&self, glyph: Glyph) -> &'static str {
        self.pen.glyph(glyph)
    }

    pub(super) fn span(&self, ink: Ink, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(ink))
    }

    /// A rule across the screen with a heading in it, and at its right end what must be seen.
    pub(super) fn heading(&self, (text, right): (&str, &str), width: usize, ink: Ink) -> Line<'static> {
        let rule = self.glyph(Glyph::Rule);
        let right = if right.is_empty() { String::new() } else { format!(" {right} ") };
        let text = self.pen.fit(text, width.saturating_sub(4 + right.width()));
        let rest = width.saturating_sub(text.width() + 3 + right.width());
        Line::from(vec![
            self.span(Ink::Faint, format!("{rule} ")),
            self.span(ink, text),
            self.span(Ink::Faint, format!(" {}", rule.repeat(rest))),
            self.span(Ink::Active, right),
        ])
    }

    /// A line in as many rows as it needs.
    pub(super) fn wrapped(&self, told: &Told, width: usize) -> Vec<Line<'static>> {
        let style = told.ink.map(|ink| self.style(ink)).unwrap_or_default();
        let mark = told
            .glyph
            .map_or_else(|| " ".repeat(INDENT), |glyph| format!("{:INDENT$}", self.glyph(glyph).trim_end()));
        let rows = rows(&told.text, width.saturating_sub(INDENT).max(1));
        let row = |(nth, text): (usize, String)| {
            let before = if nth == 0 { mark.clone() } else { " ".repeat(INDENT) };
            Line::from(vec![Span::styled(before, style), Span::styled(text, style)])
        };
        rows.into_iter().enumerate().map(row).collect()
    }
}

/// A text cut into rows of so many cells, between words where that is possible.
fn rows(text: &str, width: usize) -> Vec<String> {
    let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
    for word in text.replace('\t', "    ").split_inclusive(' ') {
        let cells = word.trim_end().width();
        if used > 0 && used + cells > width {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        for c in word.chars() {
            let cells = c.width().unwrap_or(0);
            if used + cells > width {
                if c == ' ' {
                    continue;
                }
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push(c);
            used += cells;
        }
    }
    rows.push(row);
    rows
}

/// How a run stands, as people see it.
pub(super) fn look(state: StateWord) -> (Glyph, &'static str, Ink) {
    match state {
        StateWord::Empty => (Glyph::Open, "no run", Ink::Faint),
        StateWord::Invalid => (Glyph::Failed, "invalid", Ink::Bad),
        StateWord::Running => (Glyph::Next, "running", Ink::Active),
        StateWord::Guarding => (Glyph::Next, "guarding", Ink::Active),
        StateWord::Committing => (Glyph::Next, "committing", Ink::Active),
        StateWord::Waiting => (Glyph::Retried, "waiting", Ink::Warn),
        StateWord::Paused => (Glyph::Halted, "paused", Ink::Warn),
        StateWord::Complete => (Glyph::Passed, "complete", Ink::Good),
        StateWord::Stuck => (Glyph::Failed, "stuck", Ink::Bad),
        StateWord::Limit => (Glyph::Halted, "limit reached", Ink::Warn),
        StateWord::Failed => (Glyph::Failed, "failed", Ink::Bad),
        StateWord::Interrupted => (Glyph::Halted, "interrupted", Ink::Warn),
        StateWord::Died => (Glyph::Failed, "died", Ink::Bad),
        StateWord::Idle => (Glyph::Open, "idle", Ink::Strong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_words_and_long_words_anywhere() {
        assert_eq!(rows("one two three", 7), ["one two", "three"]);
        assert_eq!(rows("abcdefgh ij", 3), ["abc", "def", "gh ", "ij"]);
        assert_eq!(rows("日本語", 4), ["日本", "語"]);
        assert_eq!(rows("  deep\tin", 40), ["  deep    in"]);
        assert_eq!(rows("", 5), [""]);
    }

    #[test]
    fn no_row_is_wider_than_the_pane() {
        let paint = Paint { pen: Pen::plain(80) };
        let told = Told::new(Glyph::Next, None, "a 日本語 of many words and averyveryverylongone");
        for width in 3..30 {
            let rows = paint.wrapped(&told, width);
            assert!(rows.iter().all(|row| row.width() <= width.max(4)), "{width}: {rows:?}");
        }
    }
}
