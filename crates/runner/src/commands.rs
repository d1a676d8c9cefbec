//! The commands, one a file.

mod completions;
mod doctor;
mod init;
mod man;
mod select;
mod start;
mod status;
mod tree;
mod validate;

use crate::cli::{Cli, Command};
use crate::error::Report;
use crate::reply::Reply;

/// Carries out what was typed.
pub(crate) fn run(cli: &Cli) -> Result<Box<dyn Reply>, Report> {
    let dir = cli.global.directory.as_path();
    Ok(match &cli.command {
        Command::Init(args) => Box::new(init::run(dir, args)?),
        Command::Start(args) => Box::new(start::run(dir, args)?),
        Command::Validate(_) => Box::new(validate::run(dir)?),
        Command::Select(args) => Box::new(select::run(dir, args)?),
        Command::Status(_) => Box::new(status::run(dir)?),
        Command::Tree(args) => Box::new(tree::run(dir, args)?),
        Command::Doctor(_) => Box::new(doctor::run(dir)),
        Command::Completions(args) => Box::new(completions::run(args)),
        Command::Man(args) => Box::new(man::run(args)?),
    })
}
