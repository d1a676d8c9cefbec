//! The look of the terminal UI: styles in the terminal's own colours, glyphs, and wrapped lines.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use runner_term::{Glyph, Styler, TextRole};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The indentation of wrapped rows.
const INDENT: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct TuiTheme {
    pub(super) styler: Styler,
}

/// A line of text with its glyph and style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StyledLine {
    pub(super) glyph: Option<Glyph>,
    pub(super) role: Option<TextRole>,
    pub(super) text: String,
}

impl StyledLine {
    pub(super) fn new(glyph: Glyph, role: Option<TextRole>, text: impl Into<String>) -> Self {
        Self { glyph: Some(glyph), role, text: text.into() }
    }

    /// A line that continues the one before it.
    pub(super) fn continued(role: Option<TextRole>, text: impl Into<String>) -> Self {
        Self { glyph: None, role, text: text.into() }
    }
}

impl TuiTheme {
    /// The style of a role; without colour, no style at all.
    pub(super) fn style(&self, role: TextRole) -> Style {
        if !self.styler.is_coloured() {
            return Style::new();
        }
        match role {
            TextRole::Good => Style::new().fg(Color::Green),
            TextRole::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            TextRole::Warn => Style::new().fg(Color::Yellow),
            TextRole::Active => Style::new().fg(Color::Cyan),
            TextRole::Strong => Style::new().add_modifier(Modifier::BOLD),
            TextRole::Faint => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// The style of the selected row, which does not depend on colour.
    pub(super) fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn glyph(&self, glyph: Glyph) -> &'static str {
        self.styler.glyph(glyph)
    }

    pub(super) fn span(&self, role: TextRole, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(role))
    }

    /// A horizontal rule with a heading, and a note at its right end.
    pub(super) fn heading(&self, text: &str, right: &str, width: usize, role: TextRole) -> Line<'static> {
        let rule = self.glyph(Glyph::Rule);
        let right = if right.is_empty() { String::new() } else { format!(" {right} ") };
        let text = self.styler.fit(text, width.saturating_sub(4 + right.width()));
        let rest = width.saturating_sub(text.width() + 3 + right.width());
        Line::from(vec![
            self.span(TextRole::Faint, format!("{rule} ")),
            self.span(role, text),
            self.span(TextRole::Faint, format!(" {}", rule.repeat(rest))),
            self.span(TextRole::Active, right),
        ])
    }

    /// A line wrapped into as many rows as it needs.
    pub(super) fn wrapped(&self, line: &StyledLine, width: usize) -> Vec<Line<'static>> {
        let style = line.role.map(|role| self.style(role)).unwrap_or_default();
        let glyph = line.glyph.map(|glyph| self.glyph(glyph).trim_end()).unwrap_or_default();
        let mut prefix = format!("{glyph:INDENT$}");
        let mut rows = Vec::new();
        for text in wrap(&line.text, width.saturating_sub(INDENT).max(1)) {
            rows.push(Line::from(vec![Span::styled(prefix, style), Span::styled(text, style)]));
            prefix = " ".repeat(INDENT);
        }
        rows
    }
}

/// A text in rows of at most `width` cells, wrapped between words where possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut used = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_between_words_and_long_words_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh ", "ij"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap("  deep\tin", 40), ["  deep    in"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn wrapped_rows_are_not_wider_than_the_pane() {
        let theme = TuiTheme { styler: Styler::plain(80) };
        let line = StyledLine::new(Glyph::Next, None, "a 日本語 of many words and averyveryverylongone");
        for width in 3..30 {
            let rows = theme.wrapped(&line, width);
            assert!(rows.iter().all(|row| row.width() <= width.max(4)), "{width}: {rows:?}");
        }
    }
}
