//! Terminal styling: colours, glyphs and text widths.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use runner_core::labels::{Label, Symbol, Tone};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::global_args::GlobalArgs;

/// The width of a terminal that reports none.
const DEFAULT_WIDTH: usize = 80;

/// Whether the locale allows characters beyond ASCII.
fn is_unicode_locale() -> bool {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = variable("LC_ALL").or_else(|| variable("LC_CTYPE")).or_else(|| variable("LANG"));
    let locale = locale.unwrap_or_default().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// What a text means, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRole {
    Good,
    Bad,
    Warn,
    Active,
    Strong,
    Faint,
}

/// The glyphs, each with an ASCII replacement. All but the branches and the arrow are one cell wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyph {
    Passed,
    Failed,
    Next,
    Retried,
    Halted,
    Open,
    Split,
    Branch,
    LastBranch,
    Trunk,
    Full,
    Empty,
    Cut,
    Arrow,
    Rule,
}

impl From<Symbol> for Glyph {
    fn from(symbol: Symbol) -> Self {
        match symbol {
            Symbol::Check => Self::Passed,
            Symbol::Cross => Self::Failed,
            Symbol::Pointer => Self::Next,
            Symbol::Retry => Self::Retried,
            Symbol::Halt => Self::Halted,
            Symbol::Dot => Self::Open,
            Symbol::Split => Self::Split,
        }
    }
}

impl From<Tone> for TextRole {
    fn from(tone: Tone) -> Self {
        match tone {
            Tone::Pass => Self::Good,
            Tone::Run => Self::Active,
            Tone::Retry => Self::Warn,
            Tone::Fail => Self::Bad,
            Tone::Open => Self::Faint,
        }
    }
}

/// Styles text for one terminal.
#[derive(Clone, Debug)]
pub struct Styler {
    colour: bool,
    unicode: bool,
    /// The terminal's width in cells.
    pub width: usize,
    pub verbose: bool,
}

impl Styler {
    pub(crate) fn new(global: &GlobalArgs, on_terminal: bool) -> Self {
        Self {
            colour: global.color.is_used(on_terminal),
            unicode: is_unicode_locale(),
            width: crate::terminal::columns().unwrap_or(DEFAULT_WIDTH),
            verbose: global.verbose,
        }
    }

    pub fn for_stdout(global: &GlobalArgs) -> Self {
        Self::new(global, std::io::stdout().is_terminal())
    }

    /// For errors. Lines break only where a person reads them.
    pub(crate) fn for_stderr(global: &GlobalArgs) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let styler = Self::new(global, on_terminal);
        Self { width: if on_terminal { styler.width } else { usize::MAX }, ..styler }
    }

    /// The same with the terminal's current width, which changes when the user resizes it.
    pub(crate) fn with_current_width(&self) -> Self {
        Self { width: crate::terminal::columns().unwrap_or(DEFAULT_WIDTH), ..self.clone() }
    }

    pub fn is_coloured(&self) -> bool {
        self.colour
    }

    /// Without colour, for a given width.
    pub fn plain(width: usize) -> Self {
        Self { colour: false, unicode: true, width, verbose: false }
    }

    pub fn paint(&self, role: TextRole, text: &str) -> String {
        let style = match role {
            TextRole::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            TextRole::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())).bold(),
            TextRole::Warn => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            TextRole::Active => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            TextRole::Strong => Style::new().bold(),
            TextRole::Faint => Style::new().dimmed(),
        };
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// The glyph, or its ASCII replacement.
    pub fn glyph(&self, glyph: Glyph) -> &'static str {
        let of_symbol = |symbol: Symbol| (symbol.glyph(), symbol.ascii());
        let (unicode, ascii) = match glyph {
            Glyph::Passed => of_symbol(Symbol::Check),
            Glyph::Failed => of_symbol(Symbol::Cross),
            Glyph::Next => of_symbol(Symbol::Pointer),
            Glyph::Retried => of_symbol(Symbol::Retry),
            Glyph::Halted => of_symbol(Symbol::Halt),
            Glyph::Open => of_symbol(Symbol::Dot),
            Glyph::Split => of_symbol(Symbol::Split),
            Glyph::Branch => ("├─ ", "|- "),
            Glyph::LastBranch => ("└─ ", "`- "),
            Glyph::Trunk => ("│  ", "|  "),
            Glyph::Full => ("█", "#"),
            Glyph::Empty => ("░", "-"),
            Glyph::Cut => ("…", "~"),
            Glyph::Arrow => ("→", "->"),
            Glyph::Rule => ("─", "-"),
        };
        if self.unicode { unicode } else { ascii }
    }

    /// The symbol of a label in the label's colour.
    pub fn label_glyph(&self, label: Label) -> String {
        self.paint(label.tone.into(), self.glyph(label.symbol.into()))
    }

    /// Shortens a text to at most `cells` cells; an ellipsis marks the cut.
    pub fn fit(&self, text: &str, cells: usize) -> String {
        if text.width() <= cells {
            return text.to_owned();
        }
        let cut = self.glyph(Glyph::Cut);
        let mut free = cells.saturating_sub(cut.width());
        let mut kept = String::new();
        for c in text.chars() {
            let width = c.width().unwrap_or(0);
            if width > free {
                break;
            }
            free -= width;
            kept.push(c);
        }
        if cells == 0 { String::new() } else { kept.trim_end().to_owned() + cut }
    }

    /// Breaks a text between words so that it fits the terminal behind `indent` cells. Each line but the first starts
    /// with that many spaces.
    pub fn wrap(&self, text: &str, indent: usize) -> String {
        self.wrap_parts(text.split(' '), indent)
    }

    /// The same without breaking commands, which would not be copyable then: text in quotes, and what follows a colon up to
    /// the end.
    pub fn wrap_commands(&self, text: &str, indent: usize) -> String {
        self.wrap_parts(unbroken_parts(text).into_iter(), indent)
    }

    fn wrap_parts<'t>(&self, parts: impl Iterator<Item = &'t str>, indent: usize) -> String {
        let mut wrapped = String::new();
        let mut used = indent;
        for word in parts {
            if wrapped.is_empty() {
                used += word.width();
            } else if used + 1 + word.width() > self.width {
                wrapped.push('\n');
                wrapped.push_str(&" ".repeat(indent));
                used = indent + word.width();
            } else {
                wrapped.push(' ');
                used += 1 + word.width();
            }
            wrapped.push_str(word);
        }
        wrapped
    }
}

/// Programs that hints name.
const TYPED: [&str; 8] = ["runner", "git", "cd", "npm", "chmod", "sudo", "codex", "cargo"];

/// The words of a text, with commands as one part each.
fn unbroken_parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut quote: Option<char> = None;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let is_opening = matches!(c, '\'' | '`') && matches!(before, ' ' | '(');
        match quote {
            Some(open) if c == open => quote = None,
            None if is_opening => quote = Some(c),
            None if c == ' ' => {
                parts.extend(text.get(start..at));
                start = at + 1;
                let rest = text.get(start..).unwrap_or_default();
                let program = rest.split(' ').next().unwrap_or_default();
                if before == ':' && TYPED.contains(&program) {
                    break;
                }
            }
            Some(_) | None => {}
        }
        before = c;
    }
    parts.extend(text.get(start..));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shortened_by_cells_not_by_characters() {
        let styler = Styler::plain(80);
        assert_eq!(styler.fit("short", 5), "short");
        assert_eq!(styler.fit("longer", 5), "long…");
        assert_eq!(styler.fit("日本語", 6), "日本語");
        assert_eq!(styler.fit("日本語", 5), "日本…");
        assert_eq!(styler.fit("日本語", 4), "日…");
        assert_eq!(styler.fit("a b c", 3), "a…");
        assert_eq!(styler.fit("abc", 0), "");
    }

    #[test]
    fn text_is_wrapped_between_words_with_an_indent() {
        let styler = Styler::plain(12);
        assert_eq!(styler.wrap("one two three", 4), "one two\n    three");
        assert_eq!(styler.wrap("longer-than-that x", 4), "longer-than-that\n    x");
        assert_eq!(styler.wrap("", 4), "");
    }

    #[test]
    fn commands_are_not_broken() {
        let styler = Styler::plain(24);
        assert_eq!(
            styler.wrap_commands("stash them with 'git stash -u', then go on", 6),
            "stash them with\n      'git stash -u',\n      then go on"
        );
        assert_eq!(
            styler.wrap_commands("to go on: runner switch a-very-long-name", 6),
            "to go on:\n      runner switch a-very-long-name"
        );
        assert_eq!(styler.wrap_commands("it's a: word", 0), "it's a: word");
    }

    #[test]
    fn plain_styler_writes_no_escape_sequences() {
        let plain = Styler::plain(80);
        assert_eq!(plain.paint(TextRole::Bad, "x"), "x");
        let coloured = Styler { colour: true, ..plain };
        assert_eq!(coloured.paint(TextRole::Good, "x"), "\u{1b}[32mx\u{1b}[0m");
        assert_eq!(coloured.paint(TextRole::Good, ""), "");
    }

    #[test]
    fn glyph_has_the_same_width_in_unicode_and_ascii() {
        let unicode = Styler::plain(80);
        let ascii = Styler { unicode: false, ..unicode.clone() };
        for glyph in [
            Glyph::Passed,
            Glyph::Failed,
            Glyph::Next,
            Glyph::Retried,
            Glyph::Halted,
            Glyph::Open,
            Glyph::Split,
            Glyph::Full,
            Glyph::Cut,
        ] {
            assert_eq!((unicode.glyph(glyph).width(), ascii.glyph(glyph).width()), (1, 1), "{glyph:?}");
        }
        for glyph in [Glyph::Branch, Glyph::LastBranch, Glyph::Trunk] {
            assert_eq!((unicode.glyph(glyph).width(), ascii.glyph(glyph).width()), (3, 3), "{glyph:?}");
        }
    }
}
