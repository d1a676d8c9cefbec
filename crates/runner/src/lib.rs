//! The command line: understands what people type, asks the host, and tells the answer.
//!
//! No decision about runs is made here. Each command is a file in `commands` that turns arguments into a
//! [`runner_term::Reply`].

pub mod args;
mod commands;
mod live_display;
mod render;
mod target_arg;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use runner_term::{Ui, print_clap_error};

use args::RunnerCli;

/// Runs the command that the program was started with.
pub fn main() -> ExitCode {
    run(std::env::args_os().collect())
}

fn run(args: Vec<OsString>) -> ExitCode {
    let cli = match RunnerCli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(told) => return print_clap_error(&told),
    };
    let out = Ui::new(&cli.global);
    match commands::run(&cli, &out) {
        Ok(reply) => out.print(reply.as_ref()),
        Err(report) => out.print_error(&report),
    }
}
