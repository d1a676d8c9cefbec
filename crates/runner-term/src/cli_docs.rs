//! What is made from a command line's definition: its reference, completion scripts, manual pages.

use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::output::{CommandExit, CommandOutput, KeyValueLine};
use crate::style::Styler;

/// A text that is the same for everyone who asks.
#[derive(Clone, Debug)]
pub struct GeneratedText {
    name: &'static str,
    text: String,
}

impl GeneratedText {
    fn new(name: &'static str, bytes: &[u8]) -> Self {
        Self { name, text: String::from_utf8_lossy(bytes).into_owned() }
    }
}

impl CommandOutput for GeneratedText {
    fn json(&self) -> Value {
        json!({ "schema": format!("runner.{}/1", self.name), "text": self.text })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.text.lines().map(KeyValueLine::verbatim).collect()
    }

    fn human(&self, _: &Styler) -> String {
        self.text.clone()
    }
}

/// The script that lets a shell complete what is typed.
pub fn completions(mut command: Command, shell: Shell) -> GeneratedText {
    let mut bytes = Vec::new();
    let program = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, program, &mut bytes);
    GeneratedText::new("completions", &bytes)
}

/// The manual page, or nothing but one page per command in a folder.
pub fn man(command: Command, dir: Option<&Path>) -> Result<GeneratedText, CommandError> {
    let Some(dir) = dir else {
        let mut page = Vec::new();
        let failed = |error: io::Error| CommandError::new("man", CommandExit::FAILURE, error.to_string());
        Man::new(command).render(&mut page).map_err(failed)?;
        return Ok(GeneratedText::new("man", &page));
    };
    clap_mangen::generate_to(command, dir).map_err(|error| {
        let what = format!("could not write the manual pages to `{}`", dir.display());
        CommandError::new("man", CommandExit::FAILURE, what)
            .cause(error.to_string())
            .hint("name a folder that exists and that you may write to")
    })?;
    Ok(GeneratedText::new("man", b""))
}

/// The reference of every command, as Markdown; `name` is what people type.
pub fn reference(mut command: Command, name: &str, heading: &str) -> String {
    command.build();
    let mut page = format!("# {heading}\n\nMade from the program itself: `just generate` writes it anew.\n");
    push_help(&mut page, name, &command);
    push_below(&mut page, name, &command);
    page
}

/// The commands below a command, each behind the one it belongs to.
fn push_below(page: &mut String, title: &str, command: &Command) {
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let title = format!("{title} {}", sub.get_name());
        push_help(page, &title, sub);
        push_below(page, &title, sub);
    }
}

fn push_help(page: &mut String, title: &str, command: &Command) {
    let help = command.clone().term_width(100).render_long_help().to_string();
    let lines = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    page.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", lines.trim_end()));
}
