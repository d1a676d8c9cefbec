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
use runner_term::cli_docs::{completions, man};
use runner_term::{CommandError, CommandExit, CommandOutput, Ui};

use crate::args::{CaseArgs, EvalCli, EvalCommand};
use crate::case::suite::CaseFilter;

/// Somebody stopped it.
const INTERRUPTED: CommandExit = CommandExit(130);

/// Carries out what was typed.
pub(crate) fn run(cli: &EvalCli, out: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    let global = &cli.global;
    Ok(match &cli.command {
        EvalCommand::List(args) => Box::new(list::run(global, args)?),
        EvalCommand::Run(args) => Box::new(run::run(global, args, out)?),
        EvalCommand::Lint(args) => Box::new(lint::run(global, args, out)?),
        EvalCommand::Clean(args) => Box::new(clean::run(global, args)?),
        EvalCommand::Plan(args) => Box::new(plan::run(global, args)?),
        EvalCommand::Merge(args) => Box::new(merge::run(global, args)?),
        EvalCommand::Submit(args) => Box::new(submit::run(global, args)?),
        EvalCommand::Regrade(args) => Box::new(regrade::run(global, args)?),
        EvalCommand::Results(args) => Box::new(results::run(global, args)?),
        EvalCommand::Report(args) => report::run(global, args)?,
        EvalCommand::Compare(args) => Box::new(compare::run(global, args)?),
        EvalCommand::Gate(args) => gate::run(global, args)?,
        EvalCommand::Completions(args) => Box::new(completions(EvalCli::command(), args.shell)),
        EvalCommand::Man(args) => Box::new(man(EvalCli::command(), args.dir.as_deref())?),
    })
}

/// The cases that were typed.
fn choice(args: &CaseArgs) -> CaseFilter {
    CaseFilter {
        ids: args.ids.clone(),
        tags: args.tag.clone(),
        filter: args.filter.clone(),
        sample: args.sample.map(|count| (count, args.seed)),
    }
}
