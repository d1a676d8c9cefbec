//! The commands, one a file.

mod results;

use crate::cli::{Cli, Command};
use crate::error::Report;
use crate::out::{Out, Reply};

/// Carries out what was typed.
pub(crate) fn run(cli: &Cli, _out: &Out) -> Result<Box<dyn Reply>, Report> {
    let global = &cli.global;
    Ok(match &cli.command {
        Command::Results(args) => Box::new(results::run(global, args)?),
    })
}
