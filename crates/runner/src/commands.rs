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
mod explain;
mod fork;
mod init;
mod land;
mod log;
mod mcp;
mod node;
mod node_check;
mod node_check_run;
mod note;
mod pause;
mod plan;
mod plan_approve;
mod plan_edit;
mod plan_lint;
mod plan_make;
mod questions;
mod red_question;
mod replay;
mod report;
mod run;
mod run_loop;
mod runs;
mod select;
mod show;
mod show_running;
mod sibling_program;
mod start;
mod status;
mod step;
mod tree;
mod ui;
mod validate;
mod verify;

use std::path::PathBuf;

use runner_host::ops::config_file::read_config;
use runner_host::view::run_folder::{run_folder, shown_run_folder};
use runner_term::{CommandError, CommandOutput, GlobalArgs, Ui};

use crate::args::{ChecksArgs, NodeCheckCommand, NodeCommand, RunnerCli, RunnerCommand};

/// The folder that a command works in. A command about a run finds it in a linked work tree.
fn folder_of(cli: &RunnerCli) -> PathBuf {
    let dir = cli.global.project_dir.as_path();
    match &cli.command {
        RunnerCommand::Start(_)
        | RunnerCommand::Fork(_)
        | RunnerCommand::Runs(_)
        | RunnerCommand::Switch(_)
        | RunnerCommand::Clean(_)
        | RunnerCommand::Init(_)
        | RunnerCommand::Explain(_)
        | RunnerCommand::Demo(_)
        | RunnerCommand::Completions(_)
        | RunnerCommand::Man(_)
        | RunnerCommand::Mcp(_)
        | RunnerCommand::Eval(_)
        | RunnerCommand::Conformance(_) => dir.to_owned(),
        RunnerCommand::Run(args) if !args.goal.is_empty() => dir.to_owned(),
        RunnerCommand::Land(args) if args.run.is_some() => dir.to_owned(),
        RunnerCommand::Config(_) | RunnerCommand::Doctor(_)
            if read_config(dir).is_ok_and(|file| file.text.is_some()) =>
        {
            dir.to_owned()
        }
        RunnerCommand::Report(args) => run_folder(dir, args.run.as_deref()),
        RunnerCommand::Log(args) => run_folder(dir, args.run.as_deref()),
        RunnerCommand::Show(args) => run_folder(dir, args.run.as_deref()),
        RunnerCommand::Diff(args) => run_folder(dir, args.run.as_deref()),
        RunnerCommand::Watch(args) if args.run.as_deref().is_none() => shown_run_folder(dir),
        RunnerCommand::Watch(args) => run_folder(dir, args.run.as_deref()),
        RunnerCommand::Export(args) => run_folder(dir, args.run.as_deref()),
        RunnerCommand::Blame(args) => run_folder(dir, args.run.as_deref()),
        RunnerCommand::Verify(args) => run_folder(dir, args.target.as_deref().or(args.run.as_deref())),
        RunnerCommand::Attest(args) => run_folder(dir, args.target.as_deref().or(args.run.as_deref())),
        RunnerCommand::Replay(args) => run_folder(dir, args.target.as_deref().or(args.run.as_deref())),
        RunnerCommand::Tree(_)
        | RunnerCommand::Select(_)
        | RunnerCommand::Checks(_)
        | RunnerCommand::Questions(_)
        | RunnerCommand::Ui(_) => shown_run_folder(dir),
        // Where several runs could be meant, it shows the newest, and names its folder in the commands to type.
        RunnerCommand::Status(_)
        | RunnerCommand::Run(_)
        | RunnerCommand::Step(_)
        | RunnerCommand::Loop(_)
        | RunnerCommand::Stop(_)
        | RunnerCommand::Pause(_)
        | RunnerCommand::Resume(_)
        | RunnerCommand::Node(_)
        | RunnerCommand::Plan(_)
        | RunnerCommand::Answer(_)
        | RunnerCommand::Note(_)
        | RunnerCommand::Land(_)
        | RunnerCommand::Validate(_)
        | RunnerCommand::Config(_)
        | RunnerCommand::Doctor(_) => run_folder(dir, None),
    }
}

pub(crate) fn run(cli: &RunnerCli, ui: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    let folder = folder_of(cli);
    let dir = folder.as_path();
    let in_folder = || GlobalArgs { project_dir: folder.clone(), ..cli.global.clone() };
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
        RunnerCommand::Watch(args) => return Err(ui::watch(&in_folder(), args)),
        RunnerCommand::Ui(args) => return Err(ui::serve(&in_folder(), args)),
        RunnerCommand::Export(args) => return Err(ui::export(&in_folder(), args)),
        RunnerCommand::Pause(args) => Box::new(pause::pause(dir, args)?),
        RunnerCommand::Resume(_) => Box::new(pause::resume(dir)?),
        RunnerCommand::Node(args) => match &args.command {
            NodeCommand::Edit(command) => Box::new(node::run(dir, command)?),
            NodeCommand::Check(args) => match &args.command {
                NodeCheckCommand::Add(args) => Box::new(node_check::add(dir, args)?),
                NodeCheckCommand::Remove(args) => Box::new(node_check::remove(dir, args)?),
                NodeCheckCommand::Run(args) => Box::new(node_check_run::run(dir, args, ui)?),
            },
        },
        RunnerCommand::Plan(args) => plan::run(dir, args, ui)?,
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
        RunnerCommand::Explain(args) => Box::new(explain::run(args)?),
        RunnerCommand::Demo(args) => Box::new(demo::run(args, ui)?),
        RunnerCommand::Completions(args) => Box::new(docs::completions(args)),
        RunnerCommand::Man(args) => Box::new(docs::man(args)?),
        RunnerCommand::Mcp(args) => Box::new(mcp::run(dir, args)?),
        RunnerCommand::Eval(args) => return Err(eval::run(&cli.global, args)),
        RunnerCommand::Conformance(args) => Box::new(conformance::run(dir, args, ui)?),
    })
}
