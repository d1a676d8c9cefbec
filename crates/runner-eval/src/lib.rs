//! Evaluation: real loops over declarative cases, and what their results say.
//!
//! The runner under test is started like any user starts it; nothing here decides about runs. What a trial leaves is
//! [`result`], a folder of them is read by [`results`].

mod agent;
pub mod args;
pub mod case;
mod commands;
mod comparison;
mod files;
mod grade;
mod junit;
mod plan;
mod pool;
mod process;
mod progress;
mod report;
pub mod result;
pub mod results;
mod run_folder;
mod runner_under_test;
mod selection;
mod signature;
mod stats;
mod suite;
mod trial;
mod verdict;
pub mod worker;
mod workspace;

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
