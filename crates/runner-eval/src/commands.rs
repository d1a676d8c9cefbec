//! One module per command: arguments in, a [`CommandOutput`] out. [`scope`] resolves the options that several share.

mod clean;
mod compare;
mod gate;
mod import;
mod lint;
mod list;
mod merge;
mod new_case;
mod plan;
mod regrade;
mod report;
mod results;
mod run;
mod scope;
mod submit;

use runner_term::cli_docs::{completions, man};
use runner_term::completion::{Candidate, folder_in};
use runner_term::{CommandError, CommandExit, CommandOutput, Ui};

use crate::args::{self, DEFAULT_CASES, DEFAULT_RESULTS, EvalCli, EvalCommand};

/// Interrupted by a signal that was not recorded.
const INTERRUPTED: CommandExit = CommandExit(130);

/// The words for a value: cases, and evaluations with results, in the folders that are used by default.
pub(crate) fn completed(name: &str, words: &[String]) -> Vec<Candidate> {
    let folder = match name {
        "CASE" => DEFAULT_CASES,
        "BASE" | "NEW" => DEFAULT_RESULTS,
        _ => return Vec::new(),
    };
    let entries = std::fs::read_dir(folder_in(words).join(folder)).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names.into_iter().map(|name| Candidate::new(name, "")).collect()
}

pub(crate) fn run(cli: &EvalCli, ui: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    let global = &cli.global;
    Ok(match &cli.command {
        EvalCommand::List(args) => Box::new(list::run(global, args)?),
        EvalCommand::Run(args) => Box::new(run::run(global, args, ui)?),
        EvalCommand::Results(args) => Box::new(results::run(global, args)?),
        EvalCommand::Report(args) => report::run(global, args)?,
        EvalCommand::Compare(args) => compare::run(global, args)?,
        EvalCommand::Gate(args) => gate::run(global, args)?,
        EvalCommand::Lint(args) => Box::new(lint::run(global, args, ui)?),
        EvalCommand::New(args) => Box::new(new_case::run(global, args)?),
        EvalCommand::Import(args) => Box::new(import::run(global, args)?),
        EvalCommand::Regrade(args) => Box::new(regrade::run(global, args)?),
        EvalCommand::Plan(args) => Box::new(plan::run(global, args)?),
        EvalCommand::Merge(args) => Box::new(merge::run(global, args)?),
        EvalCommand::Submit(args) => Box::new(submit::run(global, args)?),
        EvalCommand::Clean(args) => Box::new(clean::run(global, args)?),
        EvalCommand::Completions(shell_args) => {
            Box::new(completions(args::command(), &["runner-eval"], shell_args.shell))
        }
        EvalCommand::Man(man_args) => Box::new(man(args::command(), man_args.dir.as_deref())?),
    })
}
