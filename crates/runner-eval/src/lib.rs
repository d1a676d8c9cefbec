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

use std::ffi::OsString;
use std::process::ExitCode;

use runner_term::{GlobalArgs, Ui, completion, print_clap_error};

pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    if let Some(words) = completion::requested_words(&typed) {
        let found =
            completion::candidates(args::command(), &words, &|name| commands::completed(name, &words));
        Ui::new(&GlobalArgs::default()).raw(&completion::lines(&found));
        return ExitCode::SUCCESS;
    }
    let cli = match args::parse(typed) {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error),
    };
    let ui = Ui::new(&cli.global.shared);
    match commands::run(&cli, &ui) {
        Ok(output) => ui.print(output.as_ref()),
        Err(error) => ui.print_error(&error),
    }
}
