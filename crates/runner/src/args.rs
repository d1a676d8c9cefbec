//! The command line: one file per command under `args/`, and their grouping on the help page.
//!
//! The doc comments here are the help texts.

mod attest;
mod blame;
mod checks;
mod command_groups;
mod config;
mod conformance;
mod demo;
mod diff;
mod docs;
mod doctor;
#[cfg(test)]
mod documented;
mod eval;
mod explain;
mod fork;
mod init;
mod land;
mod log;
mod mcp;
mod node;
mod note;
mod other_words;
mod pause;
mod plan;
mod questions;
mod replay;
mod report;
mod run;
mod run_arg;
mod run_loop;
mod runs;
mod select;
mod show;
mod start;
mod status;
mod step;
mod tree;
mod ui;
mod validate;
mod verify;

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use runner_term::GlobalArgs;
use runner_term::cli_docs;
use runner_term::help_pages::{with_compact_help, with_typed_commands};

use self::command_groups::GROUPS;
pub(crate) use attest::{AttestArgs, SignKind};
pub(crate) use blame::BlameArgs;
pub(crate) use checks::ChecksArgs;
pub(crate) use config::{ConfigArgs, ConfigCommand, ConfigSetArgs};
pub(crate) use conformance::{ConformanceAgent, ConformanceArgs};
pub(crate) use demo::DemoArgs;
pub(crate) use diff::DiffArgs;
pub(crate) use docs::{CompletionsArgs, ManArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use eval::EvalArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use fork::ForkArgs;
pub(crate) use init::InitArgs;
pub(crate) use land::LandArgs;
pub(crate) use log::{LogArgs, LogPart};
pub(crate) use mcp::McpArgs;
pub(crate) use node::{
    AddArgs, CheckAddArgs, CheckRemoveArgs, CheckRunArgs, EditArgs, MoveArgs, NodeArgs, NodeCheckCommand,
    NodeCommand, NodeEditCommand, PositionArgs, SplitArgs,
};
pub(crate) use note::NoteArgs;
pub(crate) use pause::{PauseArgs, ResumeArgs};
pub(crate) use plan::{
    PlanArgs, PlanCommand, PlanEditArgs, PlanExportArgs, PlanFormatArg, PlanImportArgs, PlanLintArgs,
};
pub(crate) use questions::{AnswerArgs, QuestionsArgs};
pub(crate) use replay::ReplayArgs;
pub(crate) use report::ReportArgs;
pub(crate) use run::RunGoalArgs;
pub(crate) use run_arg::RunArg;
pub(crate) use run_loop::{LoopArgs, LoopOptions, WallTime};
pub(crate) use runs::{CleanArgs, RunsArgs, StopArgs, SwitchArgs};
pub(crate) use select::SelectArgs;
pub(crate) use show::ShowArgs;
pub(crate) use start::StartArgs;
pub(crate) use status::StatusArgs;
pub(crate) use step::StepArgs;
pub(crate) use tree::TreeArgs;
pub(crate) use ui::{ExportArgs, UiArgs, WatchArgs};
pub(crate) use validate::ValidateArgs;
pub(crate) use verify::{PassSelection, VerifyArgs};

/// Run a coding agent unattended until a goal is reached, without trusting it
///
/// `runner run "GOAL"` sets everything up and works until the goal is reached. Every iteration is one commit on the run's branch, and a task
/// passes only if your test command (the guard) succeeds.
#[derive(Debug, Parser)]
#[command(name = "runner", version, max_term_width = 100)]
#[command(after_help = "Examples:
  runner run \"Add OAuth login\"   # detect the setup, confirm it, and work
  runner loop                    # continue until the goal is reached
  runner status                  # show the run's status and what to do next

Exit codes:
  0   success
  1   failure
  2   usage error or invalid input
  3   needs you: a task is stuck, or as 'runner status' shows
  4   a limit stopped the run
  5   verify and attest: not everything could be checked
  129, 130, 143   interrupted by a signal")]
struct RunnerProgram {
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug)]
pub(crate) struct RunnerCli {
    pub(crate) global: GlobalArgs,
    pub(crate) command: RunnerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunnerCommand {
    Run(RunGoalArgs),
    Start(StartArgs),
    Step(StepArgs),
    #[command(name = "loop")]
    Loop(LoopArgs),
    Stop(StopArgs),
    Status(StatusArgs),
    Report(ReportArgs),
    Tree(TreeArgs),
    Log(LogArgs),
    Show(ShowArgs),
    Diff(DiffArgs),
    Select(SelectArgs),
    Checks(ChecksArgs),
    Watch(WatchArgs),
    Ui(UiArgs),
    Export(ExportArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Node(NodeArgs),
    Plan(PlanArgs),
    Questions(QuestionsArgs),
    Answer(AnswerArgs),
    Note(NoteArgs),
    Fork(ForkArgs),
    Land(LandArgs),
    Runs(RunsArgs),
    Switch(SwitchArgs),
    Clean(CleanArgs),
    Verify(VerifyArgs),
    Attest(AttestArgs),
    Replay(ReplayArgs),
    Blame(BlameArgs),
    Init(InitArgs),
    Config(ConfigArgs),
    Doctor(DoctorArgs),
    Explain(ExplainArgs),
    Validate(ValidateArgs),
    Demo(DemoArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Mcp(McpArgs),
    Eval(EvalArgs),
    Conformance(ConformanceArgs),
}

/// The program with all commands, as clap shows it.
pub(crate) fn definition() -> Command {
    RunnerCommand::augment_subcommands(RunnerProgram::command())
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// The program with its help pages.
pub(crate) fn command() -> Command {
    with_compact_help(definition(), GROUPS)
}

/// Parses the arguments. The error is a help page, the version or a usage error.
pub(crate) fn parse(args: &[OsString]) -> Result<RunnerCli, clap::Error> {
    let program = with_typed_commands(RunnerProgram::command(), GROUPS, args);
    let matches =
        program.try_get_matches_from(args).map_err(|error| other_words::suggest_meant(error, args))?;
    let RunnerProgram { global } = RunnerProgram::from_arg_matches(&matches)?;
    Ok(RunnerCli { global, command: RunnerCommand::from_arg_matches(&matches)? })
}

/// The reference of all commands, as Markdown.
pub fn reference() -> String {
    cli_docs::reference(command(), "runner", "Command line")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The width of the narrowest terminal that the help pages are written for.
    const COLUMNS: usize = 80;

    fn all_commands(command: &Command) -> Vec<Command> {
        let below = command.get_subcommands().flat_map(all_commands);
        std::iter::once(command.clone()).chain(below).collect()
    }

    #[test]
    fn every_command_is_in_exactly_one_group_with_its_description() {
        let described = |command: &Command| {
            (command.get_name().to_owned(), command.get_about().map(ToString::to_string).unwrap_or_default())
        };
        let rows = GROUPS.iter().flat_map(|group| group.commands);
        let mut grouped: Vec<_> = rows.map(|row| (row.name.to_owned(), row.about.to_owned())).collect();
        let mut defined: Vec<_> = definition().get_subcommands().map(described).collect();
        grouped.sort_unstable();
        defined.sort_unstable();
        assert_eq!(grouped, defined);
    }

    /// What a program answers to these words.
    fn answer(program: Command, words: &[&str]) -> String {
        let typed = std::iter::once("runner").chain(words.iter().copied());
        let matches = program.try_get_matches_from(typed);
        matches.map_or_else(|error| error.render().ansi().to_string(), |matches| format!("{matches:?}"))
    }

    #[test]
    fn defining_only_the_typed_commands_changes_no_answer() {
        let own_page = |command: Command| [vec![command.get_name().to_owned(), "--help".to_owned()]];
        let pages: Vec<Vec<String>> = command().get_subcommands().cloned().flat_map(own_page).collect();
        let mut lines: Vec<Vec<&str>> =
            pages.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
        for line in [
            "",
            "-h",
            "--help",
            "--version",
            "help",
            "help log",
            "help node add",
            "help lgo",
            "help node ad",
            "lgo",
            "statuss --json",
            "--jsno status",
            "--grep status log",
            "--limit 3 log",
            "status --jsno",
            "log --gerp x",
            "-C status",
            "-C status log -n x",
            "note log",
            "node",
            "node ad root",
            "node add root --titel x",
            "config set a",
            "-q -v tree",
            "--color purple tree",
            "start --goal a --goal-file b",
            "eval run --help",
            "-- log",
        ] {
            lines.push(line.split_whitespace().collect());
        }
        for words in lines {
            let args: Vec<OsString> = std::iter::once(&"runner").chain(&words).map(Into::into).collect();
            let fast = with_typed_commands(RunnerProgram::command(), GROUPS, &args);
            assert_eq!(answer(fast, &words), answer(command(), &words), "{words:?}");
        }
    }

    #[test]
    fn rows_of_the_groups_fit_the_narrowest_terminal() {
        for subcommand in command().get_subcommands() {
            let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            assert!("  conformance  ".len() + about.len() <= COLUMNS, "{}: {about}", subcommand.get_name());
        }
    }

    #[test]
    fn every_command_has_examples_that_can_be_copied() {
        for command in all_commands(&command()) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            assert!(text.starts_with("Examples:\n  "), "{name}: {text}");
            for line in text.lines() {
                assert!(line.chars().count() <= COLUMNS, "{name}: a terminal wraps this line: {line}");
            }
        }
    }

    #[test]
    fn global_options_are_on_one_line_of_every_page_but_the_first() {
        for mut subcommand in all_commands(&command()).into_iter().skip(1) {
            let page = subcommand.render_long_help().to_string();
            let line = "Global options: -C, --json, -q, -v, --no-pager, --color; see 'runner --help'";
            let unwrapped = page.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(unwrapped.ends_with(line) && !page.contains("--quiet"), "{page}");
        }
    }
}
