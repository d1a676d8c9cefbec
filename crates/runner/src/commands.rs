//! The commands, one per file. Each turns its arguments into a [`CommandOutput`] or a [`CommandError`].

mod blame;
mod conformance;
mod demo;
mod diff;
mod docs;
mod doctor;
mod eval;
mod fork;
mod init;
mod log;
mod node;
mod note;
mod pause;
mod plan;
mod questions;
mod replay;
mod run_loop;
mod select;
mod show;
mod sibling_program;
mod start;
mod status;
mod step;
mod tree;
mod ui;
mod validate;
mod verify;

use runner_term::{CommandError, CommandOutput, Ui};

use crate::args::{RunnerCli, RunnerCommand};

pub(crate) fn run(cli: &RunnerCli, ui: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    let dir = cli.global.project_dir.as_path();
    Ok(match &cli.command {
        RunnerCommand::Start(args) => Box::new(start::run(dir, args)?),
        RunnerCommand::Step(_) => Box::new(step::run(dir, ui)?),
        RunnerCommand::Loop(args) => Box::new(run_loop::run(dir, args, ui)?),
        RunnerCommand::Status(_) => Box::new(status::run(dir)?),
        RunnerCommand::Tree(args) => Box::new(tree::run(dir, args)?),
        RunnerCommand::Log(args) => log::run(dir, args, ui)?,
        RunnerCommand::Show(args) => show::run(dir, args)?,
        RunnerCommand::Diff(args) => Box::new(diff::run(dir, args, ui)?),
        RunnerCommand::Select(args) => Box::new(select::run(dir, args)?),
        RunnerCommand::Watch(args) => return Err(ui::watch(&cli.global, args)),
        RunnerCommand::Ui(args) => return Err(ui::serve(&cli.global, args)),
        RunnerCommand::Export(args) => return Err(ui::export(&cli.global, args)),
        RunnerCommand::Pause(args) => Box::new(pause::pause(dir, args)?),
        RunnerCommand::Resume(_) => Box::new(pause::resume(dir)?),
        RunnerCommand::Node(args) => Box::new(node::run(dir, args)?),
        RunnerCommand::Plan(args) => plan::run(dir, args)?,
        RunnerCommand::Questions(args) => Box::new(questions::questions(dir, args)?),
        RunnerCommand::Answer(args) => Box::new(questions::answer(dir, args)?),
        RunnerCommand::Note(args) => Box::new(note::run(dir, args)?),
        RunnerCommand::Fork(args) => Box::new(fork::run(dir, args)?),
        RunnerCommand::Verify(args) => Box::new(verify::run(dir, args, ui)?),
        RunnerCommand::Replay(args) => Box::new(replay::run(dir, args)?),
        RunnerCommand::Blame(args) => Box::new(blame::run(dir, args, ui)?),
        RunnerCommand::Validate(_) => Box::new(validate::run(dir)?),
        RunnerCommand::Init(args) => Box::new(init::run(dir, args)?),
        RunnerCommand::Doctor(_) => Box::new(doctor::run(dir)),
        RunnerCommand::Demo(args) => Box::new(demo::run(args, ui)?),
        RunnerCommand::Completions(args) => Box::new(docs::completions(args)),
        RunnerCommand::Man(args) => Box::new(docs::man(args)?),
        RunnerCommand::Eval(args) => return Err(eval::run(&cli.global, args)),
        RunnerCommand::Conformance(args) => Box::new(conformance::run(dir, args, ui)?),
    })
}
