//! The commands, one a file.

mod blame;
mod conformance;
mod demo;
mod doctor;
mod eval;
mod fork;
mod init;
mod log;
mod memory;
mod node;
mod pause;
mod plan;
mod replay;
mod run;
mod select;
mod show;
mod start;
mod status;
mod tree;
mod ui;
mod validate;
pub(crate) mod verify;

use clap::CommandFactory;
use runner_cli::paper::{completions, man};
use runner_cli::{Out, Reply, Report};

use crate::cli::{Cli, Command};

/// Carries out what was typed.
pub(crate) fn run(cli: &Cli, out: &Out) -> Result<Box<dyn Reply>, Report> {
    let dir = cli.global.directory.as_path();
    Ok(match &cli.command {
        Command::Init(args) => Box::new(init::run(dir, args)?),
        Command::Start(args) => Box::new(start::run(dir, args)?),
        Command::Step(_) => Box::new(run::step(dir, out)?),
        Command::Loop(args) => Box::new(run::run_loop(dir, args, out)?),
        Command::Validate(_) => Box::new(validate::run(dir)?),
        Command::Select(args) => Box::new(select::run(dir, args)?),
        Command::Status(_) => Box::new(status::run(dir)?),
        Command::Tree(args) => Box::new(tree::run(dir, args)?),
        Command::Log(args) => log::run(dir, args, out)?,
        Command::Show(args) => show::run(dir, args)?,
        Command::Diff(args) => Box::new(show::diff(dir, args, out)?),
        Command::Node(args) => Box::new(node::run(dir, args)?),
        Command::Questions(args) => Box::new(memory::questions(dir, args)?),
        Command::Answer(args) => Box::new(memory::answer(dir, args)?),
        Command::Note(args) => Box::new(memory::note(dir, args)?),
        Command::Pause(args) => Box::new(pause::pause(dir, args)?),
        Command::Resume(_) => Box::new(pause::resume(dir)?),
        Command::Replay(args) => Box::new(replay::run(dir, args)?),
        Command::Fork(args) => Box::new(fork::run(dir, args)?),
        Command::Blame(args) => Box::new(blame::run(dir, args, out)?),
        Command::Plan(args) => plan::run(dir, args)?,
        Command::Verify(args) => Box::new(verify::run(dir, args, out)?),
        Command::Doctor(_) => Box::new(doctor::run(dir)),
        Command::Conformance(args) => Box::new(conformance::run(dir, args, out)?),
        Command::Demo(args) => Box::new(demo::run(args, out)?),
        Command::Ui(args) => return Err(ui::run(dir, cli.global.json, args)),
        Command::Export(args) => return Err(ui::also(&cli.global, "export", &args.rest)),
        Command::Watch(args) => {
            return Err(ui::also(
                &cli.global,
                "watch",
                &[cli.global.color.words(), args.rest.clone()].concat(),
            ));
        }
        Command::Eval(args) => return Err(eval::run(&cli.global, args)),
        Command::Completions(args) => Box::new(completions(Cli::command(), args.shell)),
        Command::Man(args) => Box::new(man(Cli::command(), args.dir.as_deref())?),
    })
}
