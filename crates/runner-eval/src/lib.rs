//! Evaluation: real loops over declarative cases, and what their results say.
//!
//! The runner under test is started like any user starts it; nothing here decides about runs. What a trial leaves is
//! [`result`], a folder of them is read by [`results`].

pub mod args;
pub mod case;
mod commands;
mod execution;
mod files;
mod plan;
mod report;
pub mod result;
mod stats;

pub use execution::worker;

use std::process::ExitCode;

use clap::Parser;
use runner_term::{Ui, print_clap_error};

use args::EvalCli;

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match EvalCli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return print_clap_error(&told),
    };
    let out = Ui::new(&cli.global.manner);
    match commands::run(&cli, &out) {
        Ok(reply) => out.print(reply.as_ref()),
        Err(report) => out.print_error(&report),
    }
}
