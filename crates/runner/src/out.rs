//! The one door to the terminal: everything that is printed goes through here.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::{Color, Global};
use crate::error::Report;

use crate::reply::{Exit, Reply};

/// How wide a terminal is taken to be where it does not say.
const USUAL_WIDTH: usize = 80;

/// How answers are told.
pub(crate) struct Out {
    form: Form,
    error_form: Form,
    pen: Pen,
    error_pen: Pen,
    may_page: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Drawn,
    Plain,
    Json,
    Silent,
}

impl Out {
    pub(crate) fn new(global: &Global) -> Self {
        let on_terminal = io::stdout().is_terminal();
        let form = match (global.quiet, global.json, on_terminal) {
            (true, _, _) => Form::Silent,
            (false, true, _) => Form::Json,
            (false, false, true) => Form::Drawn,
            (false, false, false) => Form::Plain,
        };
        Self {
            form,
            error_form: if global.json { Form::Json } else { Form::Drawn },
            pen: Pen::new(global, on_terminal),
            error_pen: Pen::new(global, io::stderr().is_terminal()),
            may_page: !global.no_pager,
        }
    }

    /// Tells an answer on standard output, and gives its exit code.
    pub(crate) fn tell(&self, reply: &dyn Reply) -> ExitCode {
        match self.form {
            Form::Drawn => {
                let text = reply.drawn(&self.pen);
                let is_shown = reply.is_long() && self.may_page && runner_host::pager::show(&text);
                if !is_shown {
                    print(&text);
                }
            }
            Form::Json if reply.ends_lines() => print(&format!("{}\n", reply.json())),
            Form::Json => print(&format!("{:#}\n", reply.json())),
            Form::Plain => {
                let mut text = String::new();
                for line in reply.plain() {
                    text.push_str(line.as_str());
                    text.push('\n');
                }
                print(&text);
            }
            Form::Silent => {}
        }
        code(reply.exit())
    }

    /// Whether a person watches.
    pub(crate) fn is_terminal(&self) -> bool {
        self.form == Form::Drawn
    }

    /// Whether what is told to a person is told in colour.
    pub(crate) fn is_coloured(&self) -> bool {
        self.form == Form::Drawn && self.pen.is_coloured()
    }

    /// What would be drawn.
    pub(crate) fn drawn(&self, reply: &dyn Reply) -> String {
        reply.drawn(&self.pen)
    }

    /// The pen for the terminal as wide as it is now.
    pub(crate) fn fresh_pen(&self) -> Pen {
        Pen { width: runner_host::terminal::columns().unwrap_or(USUAL_WIDTH), ..self.pen.clone() }
    }

    /// Writes bytes that were drawn for this terminal.
    pub(crate) fn raw(&self, bytes: &str) {
        print(bytes);
    }

    /// Tells something that just happened, while a command runs.
    pub(crate) fn tell_now(&self, happening: &dyn Reply) {
        match self.form {
            Form::Drawn => print(&happening.drawn(&self.pen)),
            Form::Json => print(&format!("{}\n", happening.json())),
            Form::Plain => happening.plain().iter().for_each(|line| print(&format!("{}\n", line.as_str()))),
            Form::Silent => {}
        }
    }

    /// Tells one of many parts of an answer, unless the answer will be one document that holds them all.
    pub(crate) fn tell_if_many(&self, part: &dyn Reply) {
        if self.form != Form::Json {
            self.tell_now(part);
        }
    }

    /// Shows a person what is under way, in a line that goes when the answer to it is there.
    pub(crate) fn under_way(&self, what: &str) -> UnderWay<'_> {
        if self.is_terminal() {
            let pen = self.fresh_pen();
            let line = format!("{} {what}", pen.glyph(Glyph::Next));
            self.raw(&pen.ink(Ink::Faint, &pen.fit(&line, pen.width.saturating_sub(1))));
        }
        UnderWay(self)
    }

    /// Tells an error on standard error, and gives its exit code.
    pub(crate) fn tell_error(&self, report: &Report) -> ExitCode {
        if self.error_form == Form::Json {
            print_error(&format!("{:#}\n", report.json()));
        } else {
            print_error(&report.drawn(&self.error_pen));
        }
        code(report.exit())
    }
}

/// A line that says what is under way.
pub(crate) struct UnderWay<'o>(&'o Out);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.0.is_terminal() {
            self.0.raw("\r\x1b[K");
        }
    }
}

/// Tells what clap has to say: help and versions are answers, anything else is a wrong usage.
pub(crate) fn tell_clap(told: &clap::Error) -> ExitCode {
    let colour = |on_terminal| colours(Color::Auto, on_terminal);
    if told.use_stderr() {
        let text = told.render();
        print_error(&if colour(io::stderr().is_terminal()) {
            text.ansi().to_string()
        } else {
            text.to_string()
        });
        return code(Exit::REFUSED);
    }
    let text = told.render();
    print(&if colour(io::stdout().is_terminal()) { text.ansi().to_string() } else { text.to_string() });
    code(Exit::SUCCESS)
}

/// A reader that went away is not an error: what is left to say is simply not said.
fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn print_error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn code(exit: Exit) -> ExitCode {
    ExitCode::from(exit.0)
}

fn colours(color: Color, on_terminal: bool) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto if is_set("NO_COLOR") => false,
        Color::Auto if is_set("CLICOLOR_FORCE") => true,
        Color::Auto => on_terminal && !is_dumb,
    }
}

/// Whether the terminal's language can show more than ASCII.
fn speaks_unicode() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// What a word is about, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Good,
    Bad,
    Warn,
    Active,
    Strong,
    Faint,
}

/// The glyphs, each one cell wide in every terminal, with what stands for them where only ASCII can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Glyph {
    Passed,
    Failed,
    Next,
    Retried,
    Open,
    Branch,
    LastBranch,
    Trunk,
    Full,
    Empty,
    Cut,
    Arrow,
    Rule,
}

/// Draws text for one terminal.
#[derive(Clone, Debug)]
pub(crate) struct Pen {
    colour: bool,
    unicode: bool,
    /// How many cells a line has.
    pub(crate) width: usize,
    /// Whether to say more.
    pub(crate) verbose: bool,
}

impl Pen {
    fn new(global: &Global, on_terminal: bool) -> Self {
        Self {
            colour: colours(global.color, on_terminal),
            unicode: speaks_unicode(),
            width: runner_host::terminal::columns().unwrap_or(USUAL_WIDTH),
            verbose: global.verbose,
        }
    }

    /// Whether it draws in colour.
    pub(crate) fn is_coloured(&self) -> bool {
        self.colour
    }

    /// A pen for tests.
    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Self {
        Self { colour: false, unicode: true, width, verbose: false }
    }

    /// The text in its ink.
    pub(crate) fn ink(&self, ink: Ink, text: &str) -> String {
        let style = match ink {
            Ink::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Ink::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())).bold(),
            Ink::Warn => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Ink::Active => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            Ink::Strong => Style::new().bold(),
            Ink::Faint => Style::new().dimmed(),
        };
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A glyph, as far as the terminal has it.
    pub(crate) fn glyph(&self, glyph: Glyph) -> &'static str {
        let (unicode, ascii) = match glyph {
            Glyph::Passed => ("✓", "x"),
            Glyph::Failed => ("✗", "!"),
            Glyph::Next => ("▸", ">"),
            Glyph::Retried => ("↻", "~"),
            Glyph::Open => ("◦", "."),
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

    /// At most `cells` cells of a text, with a mark where it was cut.
    pub(crate) fn fit(&self, text: &str, cells: usize) -> String {
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
        let pen = Pen::plain(80);
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
        let plain = Pen::plain(80);
        assert_eq!(plain.ink(Ink::Bad, "x"), "x");
        let coloured = Pen { colour: true, ..plain };
        assert_eq!(coloured.ink(Ink::Good, "x"), "\u{1b}[32mx\u{1b}[0m");
        assert_eq!(coloured.ink(Ink::Good, ""), "");
    }

    #[test]
    fn every_glyph_has_one_width_in_both_alphabets() {
        let unicode = Pen::plain(80);
        let ascii = Pen { unicode: false, ..unicode.clone() };
        for glyph in
            [Glyph::Passed, Glyph::Failed, Glyph::Next, Glyph::Retried, Glyph::Open, Glyph::Full, Glyph::Cut]
        {
            assert_eq!((unicode.glyph(glyph).width(), ascii.glyph(glyph).width()), (1, 1), "{glyph:?}");
        }
        for glyph in [Glyph::Branch, Glyph::LastBranch, Glyph::Trunk] {
            assert_eq!((unicode.glyph(glyph).width(), ascii.glyph(glyph).width()), (3, 3), "{glyph:?}");
        }
    }
}
