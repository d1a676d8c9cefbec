//! The `runner` program: parses the command line, calls the host, and prints the result.
//!
//! Decides nothing about runs. Each command is a file in `commands` that turns arguments into a
//! [`runner_term::CommandOutput`].

pub mod args;
mod commands;
mod complete;
pub mod included_programs;
mod live_display;
mod render;
mod target_arg;

use std::ffi::OsString;
use std::process::ExitCode;

use runner_term::{Ui, completion, print_clap_error};

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    if let Some(words) = completion::requested_words(&typed) {
        return complete::complete(&words);
    }
    let cli = match args::parse(&typed) {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error),
    };
    let ui = Ui::new(&cli.global);
    match commands::run(&cli, &ui) {
        Ok(output) => ui.print(output.as_ref()),
        Err(error) => ui.print_error(&error),
    }
}
