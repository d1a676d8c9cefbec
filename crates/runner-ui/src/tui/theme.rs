//! How the view looks: inks as the terminal's own colours, glyphs that it has, lines that fit.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use runner_term::{Glyph, Styler, TextRole};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::api::StateWord;

/// What a text takes when it goes on in the next row.
const INDENT: usize = 2;

/// Draws for one terminal.
#[derive(Clone, Debug)]
pub(super) struct TuiTheme {
    pub(super) pen: Styler,
}

/// A line of what is read: a mark before it, and how it looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StyledLine {
    pub(super) glyph: Option<Glyph>,
    pub(super) ink: Option<TextRole>,
    pub(super) text: String,
}

impl StyledLine {
    pub(super) fn new(glyph: Glyph, ink: Option<TextRole>, text: impl Into<String>) -> Self {
        Self { glyph: Some(glyph), ink, text: text.into() }
    }

    /// A line that belongs to the one before it.
    pub(super) fn under(ink: Option<TextRole>, text: impl Into<String>) -> Self {
        Self { glyph: None, ink, text: text.into() }
    }
}

impl TuiTheme {
    /// The style of an ink. Without colour there is none at all.
    pub(super) fn style(&self, ink: TextRole) -> Style {
        if !self.pen.is_coloured() {
            return Style::new();
        }
        match ink {
            TextRole::Good => Style::new().fg(Color::Green),
            TextRole::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            TextRole::Warn => Style::new().fg(Color::Yellow),
            TextRole::Active => Style::new().fg(Color::Cyan),
            TextRole::Strong => Style::new().add_modifier(Modifier::BOLD),
            TextRole::Faint => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// What is chosen stands out without any colour.
    pub(super) fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn glyph(&self, glyph: Glyph) -> &'static str {
        self.pen.glyph(glyph)
    }

    pub(super) fn span(&self, ink: TextRole, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(ink))
    }

    /// A rule across the screen with a heading in it, and at its right end what must be seen.
    pub(super) fn heading(&self, (text, right): (&str, &str), width: usize, ink: TextRole) -> Line<'static> {
        let rule = self.glyph(Glyph::Rule);
        let right = if right.is_empty() { String::new() } else { format!(" {right} ") };
        let text = self.pen.fit(text, width.saturating_sub(4 + right.width()));
        let rest = width.saturating_sub(text.width() + 3 + right.width());
        Line::from(vec![
            self.span(TextRole::Faint, format!("{rule} ")),
            self.span(ink, text),
            self.span(TextRole::Faint, format!(" {}", rule.repeat(rest))),
            self.span(TextRole::Active, right),
        ])
    }

    /// A line in as many rows as it needs.
    pub(super) fn wrapped(&self, told: &StyledLine, width: usize) -> Vec<Line<'static>> {
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
pub(super) fn look(state: StateWord) -> (Glyph, &'static str, TextRole) {
    match state {
        StateWord::Empty => (Glyph::Open, "no run", TextRole::Faint),
        StateWord::Invalid => (Glyph::Failed, "invalid", TextRole::Bad),
        StateWord::Running => (Glyph::Next, "running", TextRole::Active),
        StateWord::Guarding => (Glyph::Next, "guarding", TextRole::Active),
        StateWord::Committing => (Glyph::Next, "committing", TextRole::Active),
        StateWord::Waiting => (Glyph::Retried, "waiting", TextRole::Warn),
        StateWord::Paused => (Glyph::Halted, "paused", TextRole::Warn),
        StateWord::Complete => (Glyph::Passed, "complete", TextRole::Good),
        StateWord::Stuck => (Glyph::Failed, "stuck", TextRole::Bad),
        StateWord::Limit => (Glyph::Halted, "limit reached", TextRole::Warn),
        StateWord::Failed => (Glyph::Failed, "failed", TextRole::Bad),
        StateWord::Interrupted => (Glyph::Halted, "interrupted", TextRole::Warn),
        StateWord::Died => (Glyph::Failed, "died", TextRole::Bad),
        StateWord::Idle => (Glyph::Open, "idle", TextRole::Strong),
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
        let paint = TuiTheme { pen: Styler::plain(80) };
        let told = StyledLine::new(Glyph::Next, None, "a 日本語 of many words and averyveryverylongone");
        for width in 3..30 {
            let rows = paint.wrapped(&told, width);
            assert!(rows.iter().all(|row| row.width() <= width.max(4)), "{width}: {rows:?}");
        }
    }
}
