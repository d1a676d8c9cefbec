//! The commands, one a file.

mod clean;
mod compare;
mod gate;
mod lint;
mod list;
mod merge;
mod plan;
mod regrade;
mod report;
mod results;
mod run;
mod submit;

use clap::CommandFactory;
use runner_cli::paper::{completions, man};
use runner_cli::{Exit, Out, Reply, Report};

use crate::cli::{CaseArgs, Cli, Command};
use crate::suite::Choice;

/// Somebody stopped it.
const INTERRUPTED: Exit = Exit(130);

/// Carries out what was typed.
pub(crate) fn run(cli: &Cli, out: &Out) -> Result<Box<dyn Reply>, Report> {
    let global = &cli.global;
    Ok(match &cli.command {
        Command::List(args) => Box::new(list::run(global, args)?),
        Command::Run(args) => Box::new(run::run(global, args, out)?),
        Command::Lint(args) => Box::new(lint::run(global, args, out)?),
        Command::Clean(args) => Box::new(clean::run(global, args)?),
        Command::Plan(args) => Box::new(plan::run(global, args)?),
        Command::Merge(args) => Box::new(merge::run(global, args)?),
        Command::Submit(args) => Box::new(submit::run(global, args)?),
        Command::Regrade(args) => Box::new(regrade::run(global, args)?),
        Command::Results(args) => Box::new(results::run(global, args)?),
        Command::Report(args) => report::run(global, args)?,
        Command::Compare(args) => Box::new(compare::run(global, args)?),
        Command::Gate(args) => gate::run(global, args)?,
        Command::Completions(args) => Box::new(completions(Cli::command(), args.shell)),
        Command::Man(args) => Box::new(man(Cli::command(), args.dir.as_deref())?),
    })
}

/// The cases that were typed.
fn choice(args: &CaseArgs) -> Choice {
    Choice {
        ids: args.ids.clone(),
        tags: args.tag.clone(),
        filter: args.filter.clone(),
        sample: args.sample.map(|count| (count, args.seed)),
    }
}
