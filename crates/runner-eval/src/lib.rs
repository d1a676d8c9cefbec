//! `runner-eval`: runs real loops over declarative cases and computes statistics of the results.
//!
//! Data flows through the folders in this order: [`case`] (what to try) → `plan` (which trials) → `execution` (workers that
//! start `runner` as a user would) → [`result`] (signed documents on disk) → `stats` → `report`. `args` and `commands` are the
//! command line around them.

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

use runner_term::{Ui, print_clap_error};

pub fn main() -> ExitCode {
    let cli = match args::parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error),
    };
    let ui = Ui::new(&cli.global.shared);
    match commands::run(&cli, &ui) {
        Ok(output) => ui.print(output.as_ref()),
        Err(error) => ui.print_error(&error),
    }
}
