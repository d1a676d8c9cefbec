//! Text generated from a program's `clap::Command`: the command reference, completion scripts and manual pages.

use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::output::{CommandExit, CommandOutput, KeyValueLine};
use crate::style::Styler;

/// The width at which the reference is rendered.
const REFERENCE_COLUMNS: usize = 100;

/// A completion script or a manual page.
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

/// Generates a shell's completion script for these programs, the first of which is the one of `command`. In the usual
/// shells the program itself completes its command lines; the others get a fixed list.
#[expect(clippy::wildcard_enum_match_arm, reason = "the list of shells may grow")]
pub fn completions(mut command: Command, programs: &[&str], shell: Shell) -> GeneratedText {
    let script = match shell {
        Shell::Bash => include_str!("../completions/bash"),
        Shell::Zsh => include_str!("../completions/zsh"),
        Shell::Fish => include_str!("../completions/fish"),
        _ => {
            let mut bytes = Vec::new();
            let program = command.get_name().to_owned();
            clap_complete::generate(shell, &mut command, program, &mut bytes);
            return GeneratedText::new("completions", &bytes);
        }
    };
    // In zsh, one file and one function serve all programs.
    let named: &[&str] = if shell == Shell::Zsh { programs.get(..1).unwrap_or_default() } else { programs };
    let script = script.replace("PROGRAMS", &programs.join(" "));
    let of_program =
        |program: &&str| script.replace("FUNCTION", &program.replace('-', "_")).replace("PROGRAM", program);
    let scripts: Vec<String> = named.iter().map(of_program).collect();
    GeneratedText::new("completions", scripts.join("\n").as_bytes())
}

/// Generates the program's manual page, or writes one page per command into a directory and returns no text.
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
            .hint("pass an existing, writable directory: --dir DIR")
    })?;
    Ok(GeneratedText::new("man", b""))
}

/// Generates the reference of a program's commands as Markdown; `name` is what people type to call it.
pub fn reference(mut command: Command, name: &str, heading: &str) -> String {
    command.build();
    let mut page = format!("# {heading}\n\nGenerated from the program: run `just generate` to update it.\n");
    push_help(&mut page, name, &command);
    push_subcommands(&mut page, name, &command);
    page
}

fn push_subcommands(page: &mut String, title: &str, command: &Command) {
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        let title = format!("{title} {}", subcommand.get_name());
        push_help(page, &title, subcommand);
        push_subcommands(page, &title, subcommand);
    }
}

fn push_help(page: &mut String, title: &str, command: &Command) {
    let help = command.clone().term_width(REFERENCE_COLUMNS).render_long_help().to_string();
    let lines = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    page.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", lines.trim_end()));
}
