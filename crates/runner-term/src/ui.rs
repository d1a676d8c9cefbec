//! The one door to the terminal: everything that is printed goes through here.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use crate::error::CommandError;
use crate::global_args::{ColorChoice, GlobalArgs};
use crate::output::{CommandExit, CommandOutput};
use crate::style::{Glyph, Styler, TextRole};

/// How answers are told.
#[derive(Debug)]
pub struct Ui {
    form: OutputFormat,
    error_form: OutputFormat,
    pen: Styler,
    error_pen: Styler,
    may_page: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputFormat {
    Drawn,
    Plain,
    Json,
    Silent,
}

impl Ui {
    pub fn new(manner: &GlobalArgs) -> Self {
        let on_terminal = io::stdout().is_terminal();
        let form = match (manner.quiet, manner.json, on_terminal) {
            (true, _, _) => OutputFormat::Silent,
            (false, true, _) => OutputFormat::Json,
            (false, false, true) => OutputFormat::Drawn,
            (false, false, false) => OutputFormat::Plain,
        };
        Self {
            form,
            error_form: if manner.json { OutputFormat::Json } else { OutputFormat::Drawn },
            pen: Styler::new(manner, on_terminal),
            error_pen: Styler::new(manner, io::stderr().is_terminal()),
            may_page: !manner.no_pager,
        }
    }

    /// Tells an answer on standard output, and gives its exit code.
    pub fn print(&self, reply: &dyn CommandOutput) -> ExitCode {
        match self.form {
            OutputFormat::Drawn => {
                let text = reply.human(&self.pen);
                let is_shown = reply.is_long() && self.may_page && crate::pager::show(&text);
                if !is_shown {
                    write_stdout(&text);
                }
            }
            OutputFormat::Json if reply.ends_lines() => write_stdout(&format!("{}\n", reply.json())),
            OutputFormat::Json => write_stdout(&format!("{:#}\n", reply.json())),
            OutputFormat::Plain => {
                let mut text = String::new();
                for line in reply.key_values() {
                    text.push_str(line.as_str());
                    text.push('\n');
                }
                write_stdout(&text);
            }
            OutputFormat::Silent => {}
        }
        code(reply.exit())
    }

    /// Whether a person watches.
    pub fn is_terminal(&self) -> bool {
        self.form == OutputFormat::Drawn
    }

    /// Whether what is told to a person is told in colour.
    pub fn is_coloured(&self) -> bool {
        self.form == OutputFormat::Drawn && self.pen.is_coloured()
    }

    /// What would be drawn.
    pub fn render(&self, reply: &dyn CommandOutput) -> String {
        reply.human(&self.pen)
    }

    /// The pen for the terminal as wide as it is now.
    pub fn styler(&self) -> Styler {
        self.pen.measured()
    }

    /// Writes bytes that were drawn for this terminal.
    pub fn raw(&self, bytes: &str) {
        write_stdout(bytes);
    }

    /// Tells something that just happened, while a command runs.
    pub fn print_now(&self, happening: &dyn CommandOutput) {
        match self.form {
            OutputFormat::Drawn => write_stdout(&happening.human(&self.pen)),
            OutputFormat::Json => write_stdout(&format!("{}\n", happening.json())),
            OutputFormat::Plain => {
                happening.key_values().iter().for_each(|line| write_stdout(&format!("{}\n", line.as_str())))
            }
            OutputFormat::Silent => {}
        }
    }

    /// Tells one of many parts of an answer, unless the answer will be one document that holds them all.
    pub fn print_unless_json(&self, part: &dyn CommandOutput) {
        if self.form != OutputFormat::Json {
            self.print_now(part);
        }
    }

    /// Shows a person what is under way, in a line that goes when the answer to it is there.
    pub fn status_line(&self, what: &str) -> StatusLine<'_> {
        if self.is_terminal() {
            let pen = self.styler();
            let line = format!("{} {what}", pen.glyph(Glyph::Next));
            self.raw(&pen.paint(TextRole::Faint, &pen.fit(&line, pen.width.saturating_sub(1))));
        }
        StatusLine(self)
    }

    /// Tells an error on standard error, and gives its exit code.
    pub fn print_error(&self, report: &CommandError) -> ExitCode {
        if self.error_form == OutputFormat::Json {
            write_stderr(&format!("{:#}\n", report.json()));
        } else {
            write_stderr(&report.render(&self.error_pen));
        }
        code(report.exit())
    }
}

/// A line that says what is under way.
#[derive(Debug)]
pub struct StatusLine<'o>(&'o Ui);

impl Drop for StatusLine<'_> {
    fn drop(&mut self) {
        if self.0.is_terminal() {
            self.0.raw("\r\x1b[K");
        }
    }
}

/// Tells what clap has to say: help and versions are answers, anything else is a wrong usage.
pub fn print_clap_error(told: &clap::Error) -> ExitCode {
    let colour = |on_terminal| ColorChoice::Auto.is_used(on_terminal);
    if told.use_stderr() {
        let text = told.render();
        write_stderr(&if colour(io::stderr().is_terminal()) {
            text.ansi().to_string()
        } else {
            text.to_string()
        });
        return code(CommandExit::REFUSED);
    }
    let text = told.render();
    write_stdout(&if colour(io::stdout().is_terminal()) {
        text.ansi().to_string()
    } else {
        text.to_string()
    });
    code(CommandExit::SUCCESS)
}

/// A reader that went away is not an error: what is left to say is simply not said.
fn write_stdout(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn code(exit: CommandExit) -> ExitCode {
    ExitCode::from(exit.0)
}
