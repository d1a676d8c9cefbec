//! The one door to the terminal: everything that is printed goes through here.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::Global;
use crate::error::Report;

/// How wide a terminal is taken to be where it does not say.
const USUAL_WIDTH: usize = 80;

/// An exit code, the same in every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl Exit {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const FAILURE: Self = Self(1);
    pub(crate) const REFUSED: Self = Self(2);
    pub(crate) const LIMIT: Self = Self(4);
    /// The gate: too little to tell.
    pub(crate) const INCONCLUSIVE: Self = Self(5);
    /// The gate: something is missing.
    pub(crate) const INCOMPLETE: Self = Self(6);
    pub(crate) const INTERRUPTED: Self = Self(130);
}

/// An answer, in the three forms in which it can be told.
pub(crate) trait Reply {
    /// For programs: one document.
    fn json(&self) -> Value;

    /// For scripts: stable lines of `key=value`.
    fn plain(&self) -> Vec<Line>;

    /// For people at a terminal.
    fn drawn(&self, pen: &Pen) -> String;

    /// The exit code.
    fn exit(&self) -> Exit {
        Exit::SUCCESS
    }

    /// Whether it is the last of many answers, each of which is one line of JSON.
    fn ends_lines(&self) -> bool {
        false
    }
}

/// One line of `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line(String);

impl Line {
    /// Begins a line.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a pair; a value that is more than one plain word is quoted.
    #[expect(clippy::needless_pass_by_value, reason = "values and references read the same at the call")]
    pub(crate) fn with(mut self, key: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\' | '=');
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(key);
        self.0.push('=');
        if !value.is_empty() && value.chars().all(is_plain) {
            self.0.push_str(&value);
        } else {
            self.0.push_str(&Value::from(value).to_string());
        }
        self
    }

    /// Lines that are not made of pairs.
    pub(crate) fn verbatim(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The line as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Drawn,
    Plain,
    Json,
    Silent,
}

/// How answers are told.
pub(crate) struct Out {
    form: Form,
    is_json: bool,
    pen: Pen,
    error_pen: Pen,
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
        let pen = Pen::new(on_terminal);
        Self { form, is_json: global.json, pen, error_pen: Pen::new(io::stderr().is_terminal()) }
    }

    /// Tells an answer on standard output, and gives its exit code.
    pub(crate) fn tell(&self, reply: &dyn Reply) -> ExitCode {
        match self.form {
            Form::Drawn => print(&reply.drawn(&self.pen)),
            Form::Json if reply.ends_lines() => print(&format!("{}\n", reply.json())),
            Form::Json => print(&format!("{:#}\n", reply.json())),
            Form::Plain => print(&lines(reply)),
            Form::Silent => {}
        }
        ExitCode::from(reply.exit().0)
    }

    /// Tells something that just happened, while a command runs, to whoever is no person.
    pub(crate) fn tell_now(&self, line: &Line, value: &Value) {
        match self.form {
            Form::Json => print(&format!("{value}\n")),
            Form::Plain => print(&format!("{}\n", line.as_str())),
            Form::Drawn | Form::Silent => {}
        }
    }

    /// Whether a person watches.
    pub(crate) fn is_terminal(&self) -> bool {
        self.form == Form::Drawn
    }

    /// The pen for the terminal as wide as it is now.
    pub(crate) fn pen(&self) -> Pen {
        Pen { width: runner_host::terminal::columns().unwrap_or(USUAL_WIDTH), ..self.pen.clone() }
    }

    /// Writes bytes that were drawn for this terminal.
    pub(crate) fn raw(&self, text: &str) {
        print(text);
    }

    pub(crate) fn tell_error(&self, report: &Report) -> ExitCode {
        let text =
            if self.is_json { format!("{:#}\n", report.json()) } else { report.drawn(&self.error_pen) };
        let _ = io::stderr().lock().write_all(text.as_bytes());
        ExitCode::from(report.exit().0)
    }
}

fn lines(reply: &dyn Reply) -> String {
    reply.plain().iter().fold(String::new(), |text, line| text + line.as_str() + "\n")
}

/// Tells what clap has to say: help and versions are answers, anything else is a wrong usage.
pub(crate) fn tell_clap(told: &clap::Error) -> ExitCode {
    let _ = told.print();
    ExitCode::from(if told.use_stderr() { Exit::REFUSED.0 } else { Exit::SUCCESS.0 })
}

/// A reader that went away is not an error: what is left to say is simply not said.
fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
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

/// Draws text for one terminal.
#[derive(Clone, Debug)]
pub(crate) struct Pen {
    colour: bool,
    /// How many cells a line has.
    pub(crate) width: usize,
}

impl Pen {
    fn new(on_terminal: bool) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            colour: !is_set("NO_COLOR") && (is_set("CLICOLOR_FORCE") || on_terminal && !is_dumb),
            width: runner_host::terminal::columns().unwrap_or(USUAL_WIDTH),
        }
    }

    /// A pen for tests.
    #[cfg(test)]
    pub(crate) fn plain(width: usize) -> Self {
        Self { colour: false, width }
    }

    /// The same with less room.
    pub(crate) fn narrower(&self, by: usize) -> Self {
        Self { width: self.width.saturating_sub(by), ..self.clone() }
    }

    /// The text in its ink.
    pub(crate) fn ink(&self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Good => "32",
            Ink::Bad => "1;31",
            Ink::Warn => "33",
            Ink::Active => "36",
            Ink::Strong => "1",
            Ink::Faint => "2",
        };
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// As much of a text as one line has room for.
    pub(crate) fn fit(&self, text: &str) -> String {
        if text.width() <= self.width {
            return text.to_owned();
        }
        let mut room = self.width.saturating_sub(1);
        let mut kept = String::new();
        for c in text.chars() {
            let width = c.width().unwrap_or(0);
            if width > room {
                break;
            }
            room -= width;
            kept.push(c);
        }
        kept + "…"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_quoted_only_where_it_must_be() {
        let line = Line::new().with("a", 1).with("b", "two words").with("c", "");
        assert_eq!(line.as_str(), r#"a=1 b="two words" c="""#);
    }

    #[test]
    fn a_line_is_cut_by_cells() {
        assert_eq!(Pen::plain(5).fit("short"), "short");
        assert_eq!(Pen::plain(5).fit("日本語"), "日本…");
    }
}
