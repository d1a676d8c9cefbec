//! Terminal styling: colours, glyphs and text widths.

use std::borrow::Cow;
use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use runner_core::labels::{Label, Symbol, Tone};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::global_args::GlobalArgs;

/// The width of a terminal that reports none.
const DEFAULT_WIDTH: usize = 80;

/// The characters beyond ASCII in the runner's own words, with what an ASCII terminal shows. Glyphs have their own
/// replacements.
const ASCII_WORDS: [(char, &str); 3] = [('…', "..."), ('→', "->"), ('–', "-")];

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

    /// The text as this terminal can show it: the runner's own words in ASCII if the locale allows nothing else.
    pub fn displayable<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.unicode || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            match ASCII_WORDS.iter().find(|(word, _)| *word == c) {
                Some((_, ascii)) => shown.push_str(ascii),
                None => shown.push(c),
            }
        }
        Cow::Owned(shown)
    }

    /// Shortens a text to at most `cells` cells; an ellipsis marks the cut.
    pub fn fit(&self, text: &str, cells: usize) -> String {
        let text = self.displayable(text);
        if text.width() <= cells {
            return text.into_owned();
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
        self.wrap_behind(text, indent, indent)
    }

    /// The same for a text behind `used` cells of the first line.
    pub fn wrap_behind(&self, text: &str, used: usize, indent: usize) -> String {
        self.wrap_parts(self.displayable(text).split(' '), used, indent)
    }

    /// Wraps without breaking commands, which would not be copyable then: text in quotes, and what follows a colon up to
    /// a comma or the end.
    pub fn wrap_commands(&self, text: &str, indent: usize) -> String {
        self.wrap_parts(unbroken_parts(&self.displayable(text)).into_iter(), indent, indent)
    }

    /// The same for a text whose first words have a role of their own.
    pub fn wrap_headed(&self, role: TextRole, head: &str, rest: &str, indent: usize) -> String {
        let wrapped = self.wrap_commands(&format!("{head} {rest}"), indent);
        let painted = wrapped.strip_prefix(head).map(|rest| format!("{}{rest}", self.paint(role, head)));
        // Without the role if a line breaks within the first words.
        painted.unwrap_or(wrapped)
    }

    fn wrap_parts<'t>(&self, parts: impl Iterator<Item = &'t str>, mut used: usize, indent: usize) -> String {
        let mut wrapped = String::new();
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
const TYPED: [&str; 9] = ["runner", "git", "cd", "npm", "chmod", "sudo", "codex", "cargo", "apt-get"];

/// The words of a text, with commands as one part each.
fn unbroken_parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut quote: Option<char> = None;
    let mut is_command = false;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let is_opening = matches!(c, '\'' | '`') && matches!(before, ' ' | '(');
        match quote {
            Some(open) if c == open => quote = None,
            None if is_opening => quote = Some(c),
            None if c == ' ' && (!is_command || before == ',') => {
                parts.extend(text.get(start..at));
                start = at + 1;
                let rest = text.get(start..).unwrap_or_default();
                let program = rest.split(' ').next().unwrap_or_default();
                is_command = before == ':' && TYPED.contains(&program);
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
        assert_eq!(styler.wrap_behind("one two three", 8, 2), "one\n  two three");
    }

    #[test]
    fn first_words_of_a_wrapped_text_are_painted_alone() {
        let styler = Styler { colour: true, ..Styler::plain(16) };
        let text = styler.wrap_headed(TextRole::Good, "all good:", "one two three", 2);
        assert_eq!(text, "\u{1b}[32mall good:\u{1b}[0m one\n  two three");
        let broken = styler.wrap_headed(TextRole::Good, "words that need two lines:", "one", 2);
        assert_eq!(broken, "words that\n  need two\n  lines: one");
    }

    #[test]
    fn own_words_are_ascii_without_a_unicode_locale() {
        let unicode = Styler::plain(80);
        let ascii = Styler { unicode: false, width: 24, ..unicode.clone() };
        let text = "runner answer 1 \"…\"";
        assert_eq!(unicode.displayable(text), text);
        assert_eq!(ascii.displayable(text), "runner answer 1 \"...\"");
        assert_eq!(ascii.fit("a → b", 80), "a -> b");
        assert_eq!(ascii.fit("a … b", 5), "a ..~");
        assert_eq!(ascii.wrap("one … two", 0), "one ... two");
        assert_eq!(ascii.wrap_commands("type: runner note \"…\"", 0), "type: runner note \"...\"");
        assert_eq!(ascii.displayable("naïve 日本"), "naïve 日本");
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
        assert_eq!(
            styler.wrap_commands("go back: git switch the-other-branch, or take another: runner runs", 0),
            "go back:\ngit switch the-other-branch,\nor take another:\nrunner runs"
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
