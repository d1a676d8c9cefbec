//! The printer: every program prints through [`Ui`], which knows the output format, the styles and the pager.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use crate::error::CommandError;
use crate::global_args::GlobalArgs;
use crate::output::{CommandExit, CommandOutput};
use crate::style::{Glyph, Styler, TextRole};

/// Prints command output and errors.
#[derive(Debug)]
pub struct Ui {
    format: OutputFormat,
    error_format: OutputFormat,
    styler: Styler,
    error_styler: Styler,
    uses_pager: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputFormat {
    Human,
    KeyValues,
    Json,
    Silent,
}

impl Ui {
    pub fn new(global: &GlobalArgs) -> Self {
        let on_terminal = io::stdout().is_terminal();
        let format = match (global.quiet, global.json, on_terminal) {
            (true, _, _) => OutputFormat::Silent,
            (false, true, _) => OutputFormat::Json,
            (false, false, true) => OutputFormat::Human,
            (false, false, false) => OutputFormat::KeyValues,
        };
        Self {
            format,
            error_format: if global.json { OutputFormat::Json } else { OutputFormat::Human },
            styler: Styler::new(global, on_terminal),
            error_styler: Styler::for_stderr(global),
            uses_pager: !global.no_pager,
        }
    }

    /// Prints a command's output on standard output and returns its exit code.
    pub fn print(&self, output: &dyn CommandOutput) -> ExitCode {
        match self.format {
            OutputFormat::Human => {
                let text = self.render(output);
                let was_paged = output.is_long() && self.uses_pager && crate::pager::show(&text);
                if !was_paged {
                    write_stdout(&text);
                }
            }
            OutputFormat::Json if output.ends_json_lines() => write_stdout(&format!("{}\n", output.json())),
            OutputFormat::Json => write_stdout(&format!("{:#}\n", output.json())),
            OutputFormat::KeyValues => {
                let mut text = String::new();
                for line in output.key_values() {
                    text.push_str(line.as_str());
                    text.push('\n');
                }
                write_stdout(&text);
            }
            OutputFormat::Silent => {}
        }
        exit_code(output.exit())
    }

    /// Whether a person reads the output.
    pub fn is_terminal(&self) -> bool {
        self.format == OutputFormat::Human
    }

    /// Whether a person reads the output on a terminal that can erase lines.
    pub fn can_move_cursor(&self) -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        self.is_terminal() && !is_dumb
    }

    /// Whether the output is JSON.
    pub fn is_json(&self) -> bool {
        self.format == OutputFormat::Json
    }

    pub fn is_coloured(&self) -> bool {
        self.format == OutputFormat::Human && self.styler.is_coloured()
    }

    /// The text that a terminal would show.
    pub fn render(&self, output: &dyn CommandOutput) -> String {
        self.styler.displayable(&output.human(&self.styler)).into_owned()
    }

    /// The styler for standard output at the terminal's current width.
    pub fn styler(&self) -> Styler {
        self.styler.with_current_width()
    }

    /// Writes text with cursor movements to standard output, unchanged.
    pub fn raw(&self, bytes: &str) {
        write_stdout(bytes);
    }

    /// Prints an event while a command runs.
    pub fn print_now(&self, event: &dyn CommandOutput) {
        match self.format {
            OutputFormat::Human => write_stdout(&self.render(event)),
            OutputFormat::Json => write_stdout(&format!("{}\n", event.json())),
            OutputFormat::KeyValues => {
                for line in event.key_values() {
                    write_stdout(&format!("{}\n", line.as_str()));
                }
            }
            OutputFormat::Silent => {}
        }
    }

    /// Prints a part of the output early. The JSON format prints one document at the end, which holds all parts.
    pub fn print_unless_json(&self, part: &dyn CommandOutput) {
        if self.format != OutputFormat::Json {
            self.print_now(part);
        }
    }

    /// Shows what is in progress, on a line that is erased when the returned value is dropped.
    pub fn status_line(&self, what: &str) -> StatusLine<'_> {
        if self.can_move_cursor() {
            let styler = self.styler();
            let line = format!("{} {what}", styler.glyph(Glyph::Next));
            self.raw(&styler.paint(TextRole::Faint, &styler.fit(&line, styler.width.saturating_sub(1))));
        }
        StatusLine(self)
    }

    /// Whether somebody can answer a question on the terminal.
    pub fn can_ask(&self) -> bool {
        self.is_terminal() && io::stdin().is_terminal()
    }

    /// Asks a question on the terminal; Enter means yes. None without a terminal.
    pub fn confirm(&self, question: &str) -> Option<bool> {
        self.ask_yes_or_no(question, "[Y/n]", &["", "y", "yes"])
    }

    /// The same before something is lost; Enter means no.
    pub fn confirm_removal(&self, question: &str) -> Option<bool> {
        self.ask_yes_or_no(question, "[y/N]", &["y", "yes"])
    }

    fn ask_yes_or_no(&self, question: &str, choices: &str, yes: &[&str]) -> Option<bool> {
        if !self.can_ask() {
            return None;
        }
        write_stdout(&format!("{} ", self.styler().wrap(&format!("{question} {choices}"), 0)));
        let mut answer = String::new();
        let count = io::stdin().read_line(&mut answer).ok()?;
        if count == 0 {
            // Ctrl-D leaves the cursor behind the question.
            write_stdout("\n");
            return Some(false);
        }
        Some(yes.contains(&answer.trim().to_lowercase().as_str()))
    }

    /// Asks for a line of text on the terminal. None without a terminal, or at the end of the input.
    pub fn ask(&self, question: &str) -> Option<String> {
        if !self.can_ask() {
            return None;
        }
        write_stdout(&self.styler.displayable(question));
        let mut answer = String::new();
        let count = io::stdin().read_line(&mut answer).ok()?;
        if count == 0 {
            write_stdout("\n");
            return None;
        }
        Some(answer)
    }

    /// Prints an error on standard error and returns its exit code.
    pub fn print_error(&self, error: &CommandError) -> ExitCode {
        if self.error_format == OutputFormat::Json {
            write_stderr(&format!("{:#}\n", error.json()));
        } else {
            write_stderr(&self.error_styler.displayable(&error.render(&self.error_styler)));
            if io::stderr().is_terminal() {
                let more = format!("more: runner explain {}", error.code());
                write_stderr(&format!("{}\n", self.error_styler.paint(TextRole::Faint, &more)));
            }
        }
        exit_code(error.exit())
    }
}

/// A transient line that shows what is in progress.
#[derive(Debug)]
pub struct StatusLine<'o>(&'o Ui);

impl Drop for StatusLine<'_> {
    fn drop(&mut self) {
        if self.0.can_move_cursor() {
            self.0.raw("\r\x1b[K");
        }
    }
}

/// Prints a help page or version on standard output, or a usage error on standard error.
pub fn print_clap_error(error: &clap::Error) -> ExitCode {
    let text = |on_terminal: bool| {
        let text = error.render();
        let styler = Styler::new(&GlobalArgs::default(), on_terminal);
        let text = if styler.is_coloured() { text.ansi().to_string() } else { text.to_string() };
        styler.displayable(&text).into_owned()
    };
    if error.use_stderr() {
        write_stderr(&text(io::stderr().is_terminal()));
        return exit_code(CommandExit::REFUSED);
    }
    write_stdout(&text(io::stdout().is_terminal()));
    exit_code(CommandExit::SUCCESS)
}

/// Ignores EPIPE: the reader closed the pipe.
fn write_stdout(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn exit_code(exit: CommandExit) -> ExitCode {
    ExitCode::from(exit.0)
}
