//! The commands, one a file.

mod blame;
mod conformance;
mod demo;
mod doctor;
mod eval;
mod fork;
mod init;
mod log;
mod node;
mod pause;
mod plan;
mod questions;
mod replay;
mod run_loop;
mod select;
mod show;
mod start;
mod status;
mod tree;
mod ui;
mod validate;
pub(crate) mod verify;

use clap::CommandFactory;
use runner_term::cli_docs::{completions, man};
use runner_term::{CommandError, CommandOutput, Ui};

use crate::args::{RunnerCli, RunnerCommand};

/// Carries out what was typed.
pub(crate) fn run(cli: &RunnerCli, out: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    let dir = cli.global.directory.as_path();
    Ok(match &cli.command {
        RunnerCommand::Init(args) => Box::new(init::run(dir, args)?),
        RunnerCommand::Start(args) => Box::new(start::run(dir, args)?),
        RunnerCommand::Step(_) => Box::new(run_loop::step(dir, out)?),
        RunnerCommand::Loop(args) => Box::new(run_loop::run_loop(dir, args, out)?),
        RunnerCommand::Validate(_) => Box::new(validate::run(dir)?),
        RunnerCommand::Select(args) => Box::new(select::run(dir, args)?),
        RunnerCommand::Status(_) => Box::new(status::run(dir)?),
        RunnerCommand::Tree(args) => Box::new(tree::run(dir, args)?),
        RunnerCommand::Log(args) => log::run(dir, args, out)?,
        RunnerCommand::Show(args) => show::run(dir, args)?,
        RunnerCommand::Diff(args) => Box::new(show::diff(dir, args, out)?),
        RunnerCommand::Node(args) => Box::new(node::run(dir, args)?),
        RunnerCommand::Questions(args) => Box::new(questions::questions(dir, args)?),
        RunnerCommand::Answer(args) => Box::new(questions::answer(dir, args)?),
        RunnerCommand::Note(args) => Box::new(questions::note(dir, args)?),
        RunnerCommand::Pause(args) => Box::new(pause::pause(dir, args)?),
        RunnerCommand::Resume(_) => Box::new(pause::resume(dir)?),
        RunnerCommand::Replay(args) => Box::new(replay::run(dir, args)?),
        RunnerCommand::Fork(args) => Box::new(fork::run(dir, args)?),
        RunnerCommand::Blame(args) => Box::new(blame::run(dir, args, out)?),
        RunnerCommand::Plan(args) => plan::run(dir, args)?,
        RunnerCommand::Verify(args) => Box::new(verify::run(dir, args, out)?),
        RunnerCommand::Doctor(_) => Box::new(doctor::run(dir)),
        RunnerCommand::Conformance(args) => Box::new(conformance::run(dir, args, out)?),
        RunnerCommand::Demo(args) => Box::new(demo::run(args, out)?),
        RunnerCommand::Ui(args) => return Err(ui::run(dir, cli.global.json, args)),
        RunnerCommand::Export(args) => return Err(ui::also(&cli.global, "export", &args.rest)),
        RunnerCommand::Watch(args) => {
            return Err(ui::also(
                &cli.global,
                "watch",
                &[cli.global.color.words(), args.rest.clone()].concat(),
            ));
        }
        RunnerCommand::Eval(args) => return Err(eval::run(&cli.global, args)),
        RunnerCommand::Completions(args) => Box::new(completions(RunnerCli::command(), args.shell)),
        RunnerCommand::Man(args) => Box::new(man(RunnerCli::command(), args.dir.as_deref())?),
    })
}
