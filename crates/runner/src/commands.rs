//! The commands, one per file. Each turns its arguments into a [`CommandOutput`] or a [`CommandError`].

mod attest;
mod blame;
mod checks;
mod config;
mod conformance;
mod demo;
mod detach;
mod diff;
mod docs;
mod doctor;
mod eval;
mod fork;
mod init;
mod land;
mod log;
mod node;
mod node_check;
mod note;
mod pause;
mod plan;
mod questions;
mod red_question;
mod replay;
mod report;
mod run;
mod run_loop;
mod runs;
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

use crate::args::{ChecksArgs, NodeCommand, RunnerCli, RunnerCommand};

pub(crate) fn run(cli: &RunnerCli, ui: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    let dir = cli.global.project_dir.as_path();
    Ok(match &cli.command {
        RunnerCommand::Run(args) => run::run(dir, args, ui)?,
        RunnerCommand::Start(args) => Box::new(start::run(dir, args)?),
        RunnerCommand::Step(_) => Box::new(step::run(dir, ui)?),
        RunnerCommand::Loop(args) => run_loop::run(dir, &args.options, ui)?,
        RunnerCommand::Stop(args) => Box::new(runs::stop(dir, args)?),
        RunnerCommand::Status(_) => Box::new(status::run(dir)?),
        RunnerCommand::Report(args) => Box::new(report::run(dir, args)?),
        RunnerCommand::Tree(args) => Box::new(tree::run(dir, args)?),
        RunnerCommand::Log(args) => log::run(dir, args, ui)?,
        RunnerCommand::Show(args) => show::run(dir, args)?,
        RunnerCommand::Diff(args) => Box::new(diff::run(dir, args, ui)?),
        RunnerCommand::Select(args) => Box::new(select::run(dir, args)?),
        RunnerCommand::Checks(ChecksArgs {}) => Box::new(checks::run(dir)?),
        RunnerCommand::Watch(args) => return Err(ui::watch(&cli.global, args)),
        RunnerCommand::Ui(args) => return Err(ui::serve(&cli.global, args)),
        RunnerCommand::Export(args) => return Err(ui::export(&cli.global, args)),
        RunnerCommand::Pause(args) => Box::new(pause::pause(dir, args)?),
        RunnerCommand::Resume(_) => Box::new(pause::resume(dir)?),
        RunnerCommand::Node(args) => match &args.command {
            NodeCommand::Edit(command) => Box::new(node::run(dir, command)?),
            NodeCommand::Check(args) => Box::new(node_check::run(dir, &args.command)?),
        },
        RunnerCommand::Plan(args) => plan::run(dir, args)?,
        RunnerCommand::Questions(args) => Box::new(questions::questions(dir, args)?),
        RunnerCommand::Answer(args) => Box::new(questions::answer(dir, args)?),
        RunnerCommand::Note(args) => Box::new(note::run(dir, args)?),
        RunnerCommand::Fork(args) => Box::new(fork::run(dir, args)?),
        RunnerCommand::Land(args) => Box::new(land::run(dir, args, ui)?),
        RunnerCommand::Runs(_) => Box::new(runs::runs(dir)?),
        RunnerCommand::Switch(args) => Box::new(runs::switch(dir, args)?),
        RunnerCommand::Clean(args) => Box::new(runs::clean(dir, args, ui)?),
        RunnerCommand::Attest(args) => Box::new(attest::run(dir, args)?),
        RunnerCommand::Verify(args) => Box::new(verify::run(dir, args, ui)?),
        RunnerCommand::Replay(args) => Box::new(replay::run(dir, args)?),
        RunnerCommand::Blame(args) => Box::new(blame::run(dir, args, ui)?),
        RunnerCommand::Validate(_) => Box::new(validate::run(dir)?),
        RunnerCommand::Init(args) => Box::new(init::run(dir, args)?),
        RunnerCommand::Config(args) => config::run(dir, args)?,
        RunnerCommand::Doctor(_) => Box::new(doctor::run(dir)),
        RunnerCommand::Demo(args) => Box::new(demo::run(args, ui)?),
        RunnerCommand::Completions(args) => Box::new(docs::completions(args)),
        RunnerCommand::Man(args) => Box::new(docs::man(args)?),
        RunnerCommand::Eval(args) => return Err(eval::run(&cli.global, args)),
        RunnerCommand::Conformance(args) => Box::new(conformance::run(dir, args, ui)?),
    })
}
