//! How words look: colours, glyphs, widths.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use runner_core::labels::{Label, Symbol, Tone};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::global_args::GlobalArgs;

/// How wide a terminal is taken to be where it does not say.
const USUAL_WIDTH: usize = 80;

/// Whether the terminal's language can show more than ASCII.
fn speaks_unicode() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// What a word is about, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRole {
    Good,
    Bad,
    Warn,
    Active,
    Strong,
    Faint,
}

/// The glyphs, each one cell wide in every terminal, with what stands for them where only ASCII can be shown.
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

/// Draws text for one terminal.
#[derive(Clone, Debug)]
pub struct Styler {
    colour: bool,
    unicode: bool,
    /// How many cells a line has.
    pub width: usize,
    /// Whether to say more.
    pub verbose: bool,
}

impl Styler {
    /// A pen for standard output or standard error.
    pub(crate) fn new(manner: &GlobalArgs, on_terminal: bool) -> Self {
        Self {
            colour: manner.color.is_used(on_terminal),
            unicode: speaks_unicode(),
            width: crate::terminal::columns().unwrap_or(USUAL_WIDTH),
            verbose: manner.verbose,
        }
    }

    /// A pen for the terminal that standard output is.
    pub fn for_stdout(manner: &GlobalArgs) -> Self {
        Self::new(manner, std::io::stdout().is_terminal())
    }

    /// The same for the terminal as wide as it is now.
    pub(crate) fn measured(&self) -> Self {
        Self { width: crate::terminal::columns().unwrap_or(USUAL_WIDTH), ..self.clone() }
    }

    /// Whether it draws in colour.
    pub fn is_coloured(&self) -> bool {
        self.colour
    }

    /// A pen without colour, of a given width.
    pub fn plain(width: usize) -> Self {
        Self { colour: false, unicode: true, width, verbose: false }
    }

    /// The text in its ink.
    pub fn paint(&self, ink: TextRole, text: &str) -> String {
        let style = match ink {
            TextRole::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            TextRole::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())).bold(),
            TextRole::Warn => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            TextRole::Active => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            TextRole::Strong => Style::new().bold(),
            TextRole::Faint => Style::new().dimmed(),
        };
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A glyph, as far as the terminal has it.
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

    /// At most `cells` cells of a text, with a mark where it was cut.
    pub fn fit(&self, text: &str, cells: usize) -> String {
        if text.width() <= cells {
            return text.to_owned();
        }
        let cut = self.glyph(Glyph::Cut);
        let mut room = cells.saturating_sub(cut.width());
        let mut kept = String::new();
        for c in text.chars() {
            let width = c.width().unwrap_or(0);
            if width > room {
                break;
            }
            room -= width;
            kept.push(c);
        }
        if cells == 0 { String::new() } else { kept.trim_end().to_owned() + cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_cells_not_by_characters() {
        let pen = Styler::plain(80);
        assert_eq!(pen.fit("short", 5), "short");
        assert_eq!(pen.fit("longer", 5), "long…");
        assert_eq!(pen.fit("日本語", 6), "日本語");
        assert_eq!(pen.fit("日本語", 5), "日本…");
        assert_eq!(pen.fit("日本語", 4), "日…");
        assert_eq!(pen.fit("a b c", 3), "a…");
        assert_eq!(pen.fit("abc", 0), "");
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        let plain = Styler::plain(80);
        assert_eq!(plain.paint(TextRole::Bad, "x"), "x");
        let coloured = Styler { colour: true, ..plain };
        assert_eq!(coloured.paint(TextRole::Good, "x"), "\u{1b}[32mx\u{1b}[0m");
        assert_eq!(coloured.paint(TextRole::Good, ""), "");
    }

    #[test]
    fn every_glyph_has_one_width_in_both_alphabets() {
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
