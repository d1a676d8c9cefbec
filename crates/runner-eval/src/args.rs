//! The command line: one file per command under `args/`, the options that several share, and the grouping on the help page.
//!
//! The doc comments here are the help texts.

mod clean;
mod compare;
mod docs;
mod gate;
mod lint;
mod list;
mod merge;
mod new;
mod plan;
mod regrade;
mod report;
mod results;
mod run;
mod submit;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use runner_term::GlobalArgs;
use runner_term::cli_docs;
use runner_term::help_pages::{CommandGroup, CommandRow, with_compact_help, with_typed_commands};

use crate::case::suite::{CaseFilter, CaseSample};
use crate::plan::agent::{EvalAgent, agent_names};
use crate::plan::arm::ArmSpec;

pub(crate) use clean::CleanArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use docs::{EvalCompletionsArgs, EvalManArgs};
pub(crate) use gate::GateArgs;
pub(crate) use lint::LintArgs;
pub(crate) use list::ListArgs;
pub(crate) use merge::MergeArgs;
pub(crate) use new::{ImportArgs, NewCaseArgs, TaskFormat};
pub(crate) use plan::EvalPlanArgs;
pub(crate) use regrade::RegradeArgs;
pub(crate) use report::{ReportArgs, ReportFormat};
pub(crate) use results::ResultsArgs;
pub(crate) use run::{ExecutionArgs, IsolationMode, RunArgs};
pub(crate) use submit::{
    ActionsArgs, ClusterEngine, K8sArgs, PodSecurity, SlurmArgs, SubmitArgs, SubmitScope,
};

/// Where cases are, relative to the project.
pub(crate) const DEFAULT_CASES: &str = "eval/cases";
/// Where results are, relative to the project.
pub(crate) const DEFAULT_RESULTS: &str = "eval/results";

/// Evaluate agents on cases, with statistics
///
/// Runs real loops over the cases in eval/cases. Results go to eval/results/<case>/<id>; each trial has its own repository under
/// eval/workspaces.
#[derive(Debug, Parser)]
#[command(name = "runner-eval", bin_name = "runner eval", version, max_term_width = 100)]
#[command(after_help = "Examples:
  runner eval list                      # list the cases
  runner eval run --tag scripted        # run every scripted case once
  runner eval run --agent codex --agent claude:opus --trials 5 --jobs 4
  runner eval report                    # summarise the newest run
  runner eval lint                      # test the cases themselves

Exit codes:
  0 success   1 something failed, or a case did not end as its file expects
  2 usage error or invalid input   4 budget used up
  5 gate: inconclusive   6 gate: incomplete   7 gate: regression
  129, 130, 143 interrupted; the same command continues the run")]
struct EvalProgram {
    #[command(flatten)]
    global: EvalGlobalArgs,
}

/// What was typed.
#[derive(Debug)]
pub(crate) struct EvalCli {
    pub(crate) global: EvalGlobalArgs,
    pub(crate) command: EvalCommand,
}

/// Options of every command.
#[derive(Args, Debug)]
pub(crate) struct EvalGlobalArgs {
    #[command(flatten)]
    pub(crate) shared: GlobalArgs,
    /// Folder of the cases [default: eval/cases]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// Folder of the results [default: eval/results]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Folder of the workspaces [default: eval/workspaces]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspaces: Option<PathBuf>,
}

impl EvalGlobalArgs {
    pub(crate) fn cases(&self) -> PathBuf {
        self.cases.clone().unwrap_or_else(|| self.shared.project_dir.join(DEFAULT_CASES))
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.results.clone().unwrap_or_else(|| self.shared.project_dir.join(DEFAULT_RESULTS))
    }

    pub(crate) fn workspaces(&self) -> PathBuf {
        self.workspaces.clone().unwrap_or_else(|| self.shared.project_dir.join("eval/workspaces"))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    List(ListArgs),
    Run(RunArgs),
    Results(ResultsArgs),
    Report(ReportArgs),
    Compare(CompareArgs),
    Gate(GateArgs),
    Lint(LintArgs),
    New(NewCaseArgs),
    Import(ImportArgs),
    Regrade(RegradeArgs),
    Plan(EvalPlanArgs),
    Merge(MergeArgs),
    Submit(SubmitArgs),
    Clean(CleanArgs),
    Completions(EvalCompletionsArgs),
    Man(EvalManArgs),
}

const GROUPS: &[CommandGroup] = &[
    CommandGroup {
        heading: "Evaluate",
        commands: &[
            CommandRow::new::<ListArgs>("list", "List the cases and their tags"),
            CommandRow::new::<RunArgs>("run", "Run cases with agents and record how each trial ends"),
            CommandRow::new::<ResultsArgs>("results", "List the recorded results"),
        ],
    },
    CommandGroup {
        heading: "Analyse",
        commands: &[
            CommandRow::new::<ReportArgs>(
                "report",
                "Summarise results: pass rates with confidence intervals, pass@k",
            ),
            CommandRow::new::<CompareArgs>("compare", "Compare two results case by case"),
            CommandRow::new::<GateArgs>("gate", "Check that new results are not worse than the base, for CI"),
        ],
    },
    CommandGroup {
        heading: "Maintain cases",
        commands: &[
            CommandRow::new::<NewCaseArgs>("new", "Create a case from a commit of a repository"),
            CommandRow::new::<ImportArgs>("import", "Convert tasks of another framework into cases"),
            CommandRow::new::<LintArgs>(
                "lint",
                "Test the cases: solutions must succeed, doing nothing must not",
            ),
            CommandRow::new::<RegradeArgs>("regrade", "Run the current checks on recorded workspaces"),
        ],
    },
    CommandGroup {
        heading: "Use several machines",
        commands: &[
            CommandRow::new::<EvalPlanArgs>("plan", "Write the plan of a run, to be executed in partitions"),
            CommandRow::new::<MergeArgs>(
                "merge",
                "Collect the results of all partitions, and list what is missing",
            ),
            CommandRow::new::<SubmitArgs>(
                "submit",
                "Submit a run to a cluster: Slurm, Kubernetes, GitHub Actions",
            ),
        ],
    },
    CommandGroup {
        heading: "Set up",
        commands: &[
            CommandRow::new::<CleanArgs>("clean", "Remove workspaces; with --all, also results"),
            CommandRow::new::<EvalCompletionsArgs>("completions", "Print a completion script for a shell"),
            CommandRow::new::<EvalManArgs>("man", "Print the manual page, or write one page per command"),
        ],
    },
];

/// The program with its help pages.
pub fn command() -> Command {
    let program = EvalCommand::augment_subcommands(EvalProgram::command());
    with_compact_help(program.subcommand_required(true).arg_required_else_help(true), GROUPS)
}

/// Parses the arguments. The error is a help page, the version or a usage error.
pub(crate) fn parse(args: Vec<OsString>) -> Result<EvalCli, clap::Error> {
    let program = with_typed_commands(EvalProgram::command(), GROUPS, &args);
    let matches = program.try_get_matches_from(args)?;
    let EvalProgram { global } = EvalProgram::from_arg_matches(&matches)?;
    Ok(EvalCli { global, command: EvalCommand::from_arg_matches(&matches)? })
}

/// The reference of all commands, as Markdown.
pub fn reference() -> String {
    cli_docs::reference(command(), "runner eval", "Command line of the evaluation")
}

/// Which cases a command is about.
#[derive(Args, Clone, Debug)]
pub(crate) struct CaseArgs {
    /// Case ids [default: all cases]
    #[arg(value_name = "CASE")]
    pub(crate) ids: Vec<String>,
    /// Filter by tag; repeatable, cases must have all of them
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Filter by case id (glob)
    #[arg(long, value_name = "PATTERN")]
    pub(crate) filter: Option<String>,
    /// Choose N of the cases at random, the same ones for the same --seed
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<usize>,
    /// Seed of the random choice of --sample
    #[arg(long, value_name = "N", default_value_t = 0, requires = "sample")]
    pub(crate) seed: u64,
}

impl CaseArgs {
    pub(crate) fn to_filter(&self) -> CaseFilter {
        CaseFilter {
            ids: self.ids.clone(),
            tags: self.tag.clone(),
            pattern: self.filter.clone(),
            sample: self.sample.map(|count| CaseSample { count, seed: self.seed }),
        }
    }
}

/// What an evaluation run measures: cases, agents, number of trials, runner.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScopeArgs {
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
    #[arg(long, value_name = "KIND[:MODEL]", help = agent_help())]
    pub(crate) agent: Vec<EvalAgent>,
    /// Variant of the configuration to compare, such as max_attempts_default=1 or prompts=DIR; repeatable [default: base]
    #[arg(long, value_name = "[NAME:]KEY=VALUE")]
    pub(crate) arm: Vec<ArmSpec>,
    /// File with arms ([[arm]] tables) or a grid of values ([grid])
    #[arg(long, value_name = "FILE")]
    pub(crate) grid: Option<PathBuf>,
    /// Trials of each case with each agent
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) trials: u32,
    /// Runner under test [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) runner: Option<PathBuf>,
}

fn agent_help() -> String {
    format!("Agent to evaluate; repeatable [kinds: {}] [default: case]", agent_names().join(", "))
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
        let mut defined: Vec<_> = command().get_subcommands().map(described).collect();
        grouped.sort_unstable();
        defined.sort_unstable();
        assert_eq!(grouped, defined);
    }

    #[test]
    fn help_pages_fit_the_narrowest_terminal() {
        for command in all_commands(&command()) {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!("  completions  ".len() + about.len() <= COLUMNS, "{name}: {about}");
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.starts_with("Examples:\n  "), "{name}: {examples}");
            for line in examples.lines().filter(|line| !line.starts_with("Global options:")) {
                assert!(line.chars().count() <= COLUMNS, "{name}: a terminal wraps this line: {line}");
            }
        }
    }
}
