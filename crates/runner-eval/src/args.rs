//! What people can type.

mod analysis;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use runner_term::GlobalArgs;

use crate::agent::{AGENT_HELP, EvalAgent};
use crate::plan::Partition;
pub(crate) use analysis::{CompareArgs, GateArgs, ReportArgs, ReportFormat};

/// Evaluate agents: real loops over declarative cases, with honest statistics
///
/// Cases are in eval/cases, results go to eval/results/<case>/<id>, and each trial works in a repository of its own
/// under eval/workspaces.
#[derive(Debug, Parser)]
#[command(
    name = "runner-eval",
    bin_name = "runner eval",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = "Examples:
  runner eval list                        the cases
  runner eval run --tag scripted          every scripted case once
  runner eval run --agent codex --agent claude:opus --trials 5 --jobs 4
  runner eval lint                        whether the cases themselves are sound

Exit codes:
  0 success   1 something failed, or a case did not end as its file says   2 wrong usage or invalid input
  4 the budget was spent   5, 6 the gate cannot tell   7 it says that the new results are worse
  129, 130, 143 interrupted: the same command goes on")]
pub(crate) struct EvalCli {
    #[command(flatten)]
    pub(crate) global: EvalGlobalArgs,
    #[command(subcommand)]
    pub(crate) command: EvalCommand,
}

/// Options that every command takes.
#[derive(Args, Debug)]
pub(crate) struct EvalGlobalArgs {
    #[command(flatten)]
    pub(crate) manner: GlobalArgs,
    /// Where the cases are [default: eval/cases]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// Where the results are [default: eval/results]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Where the workspaces are [default: eval/workspaces]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspaces: Option<PathBuf>,
}

impl EvalGlobalArgs {
    /// Where the cases are.
    pub(crate) fn cases(&self) -> PathBuf {
        self.cases.clone().unwrap_or_else(|| self.manner.directory.join("eval/cases"))
    }

    /// Where the results are.
    pub(crate) fn results(&self) -> PathBuf {
        self.results.clone().unwrap_or_else(|| self.manner.directory.join("eval/results"))
    }

    /// Where the workspaces are.
    pub(crate) fn workspaces(&self) -> PathBuf {
        self.workspaces.clone().unwrap_or_else(|| self.manner.directory.join("eval/workspaces"))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    List(ListArgs),
    Run(RunArgs),
    Lint(LintArgs),
    Clean(CleanArgs),
    Plan(EvalPlanArgs),
    Merge(MergeArgs),
    Submit(SubmitArgs),
    Regrade(RegradeArgs),
    Results(ResultsArgs),
    Report(ReportArgs),
    Compare(CompareArgs),
    Gate(GateArgs),
    Completions(EvalCompletionsArgs),
    Man(EvalManArgs),
}

/// Print a shell's completion script
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval completions bash > ~/.local/share/bash-completion/completions/runner-eval
  runner eval completions fish > ~/.config/fish/completions/runner-eval.fish")]
pub(crate) struct EvalCompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one page per command into a folder
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval man | man -l -
  runner eval man --dir ~/.local/share/man/man1")]
pub(crate) struct EvalManArgs {
    /// Write the pages here
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// The reference of every command, as Markdown, from what is defined here.
pub fn reference() -> String {
    runner_term::cli_docs::reference(EvalCli::command(), "runner eval", "Command line of the evaluation")
}

/// Which cases are meant.
#[derive(Args, Clone, Debug)]
pub(crate) struct CaseArgs {
    /// These cases; all, if none is named
    #[arg(value_name = "CASE")]
    pub(crate) ids: Vec<String>,
    /// Only cases with this tag; more than one: with all of them
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only cases whose id is like this: `*` stands for anything, `?` for one character
    #[arg(long, value_name = "PATTERN")]
    pub(crate) filter: Option<String>,
    /// Only so many of them, chosen by --seed
    #[arg(long, value_name = "N")]
    pub(crate) sample: Option<usize>,
    /// Which ones --sample chooses; the same seed always chooses the same
    #[arg(long, value_name = "S", default_value_t = 0, requires = "sample")]
    pub(crate) seed: u64,
}

/// What is measured: cases, agents, how often, with which runner.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScopeArgs {
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
    #[arg(long, value_name = "AGENT[:MODEL]", help = AGENT_HELP.as_str())]
    pub(crate) agent: Vec<EvalAgent>,
    /// How often each agent tries each case
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) trials: u32,
    /// The runner under test [default: the one beside this program, built first inside this repository]
    #[arg(long, value_name = "PATH")]
    pub(crate) runner: Option<PathBuf>,
}

/// List the cases
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval list
  runner eval list --tag scripted --json | jq -r '.cases[].id'")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
}

/// Run cases with agents, and record how each trial ends
///
/// The same command goes on where an interrupted one stopped: what has a result is not done again. Provider failures and
/// failures of the evaluation itself are tried again, and every attempt is kept. Exits with 1 if a case did not end as its
/// file says.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval run fixes-a-bug
  runner eval run --tag scripted --trials 3 --jobs 4
  runner eval run --agent codex:gpt-5.5 --agent claude --trials 5 --budget-usd 20
  runner eval run --continue                 finish the newest run that is not finished
  runner eval run --run nightly --partition slice:2/8")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) way: ExecutionArgs,
    /// The run's name; one that is there already is gone on with
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// Begin a new run even if one with the same scope is not finished
    #[arg(long, conflicts_with = "run")]
    pub(crate) new: bool,
    /// Finish the run that --run names, or the newest that is not finished, with the cases, agents and trials of its plan
    #[arg(long = "continue", conflicts_with_all = ["new", "ids", "tag", "filter", "sample", "agent"])]
    pub(crate) continued: bool,
    /// Only a share of the units: slice:M/N or hash:M/N [default: what Slurm, Kubernetes or GitLab says]
    #[arg(long, value_name = "HOW:M/N")]
    pub(crate) partition: Option<Partition>,
}

/// How it is done.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExecutionArgs {
    /// How many trials run at the same time
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) jobs: u32,
    /// How often a trial is tried again that the provider or the evaluation itself spoiled
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) retries: u32,
    /// How many seconds are waited before that; twice as long before each further one
    #[arg(long, value_name = "SECS", default_value_t = 5.0)]
    pub(crate) retry_wait: f64,
    /// Begin no more trials once the run has cost so many dollars
    #[arg(long, value_name = "X")]
    pub(crate) budget_usd: Option<f64>,
}

/// Try the cases themselves: the solution must succeed, doing nothing must not, a cheat must not
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval lint
  runner eval lint fixes-a-bug --json")]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
    /// The runner to try them with [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) runner: Option<PathBuf>,
    /// How many run at the same time
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) jobs: u32,
}

/// Remove workspaces, and with --all what is on record too
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval clean                      all workspaces; results stay, but can no longer be graded again
  runner eval clean --run nightly --all  everything of one run")]
pub(crate) struct CleanArgs {
    /// Only those of this run
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// The results too
    #[arg(long)]
    pub(crate) all: bool,
}

/// Write down the units of a run (case, agent, trial), to be worked through in shares
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval plan --run nightly --agent codex --trials 5
  runner eval run --continue --run nightly --partition slice:1/8    one of eight shares, on any machine")]
pub(crate) struct EvalPlanArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// The run's name [default: this moment]
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
}

/// Put a run together from what all its shares left, and say what is missing
///
/// Judges by the results alone, never by what an engine says of its jobs. Exits with 1 while something is missing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval merge --run nightly
  runner eval merge --json | jq .missing")]
pub(crate) struct MergeArgs {
    /// The run [default: the newest]
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
}

/// Submit a run to a cluster: Slurm or Kubernetes
#[derive(Args, Debug)]
pub(crate) struct SubmitArgs {
    #[command(subcommand)]
    pub(crate) engine: ClusterEngine,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterEngine {
    Slurm(SlurmArgs),
    K8s(K8sArgs),
}

/// What is submitted.
#[derive(Args, Debug)]
pub(crate) struct SubmitScope {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// The run's name [default: this moment]; of one that is there, what is missing is done
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// How many shares
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) shards: u32,
    /// How many trials run at the same time in each share
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) jobs: u32,
    /// Write and show the jobs, and submit nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// An array job, and one that merges when it has ended
///
/// Needs folders that all nodes see at the same path. Submitting again after a loss does only what is missing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval submit slurm --run nightly --agent codex --trials 5 --shards 8 --time 02:00:00
  runner eval submit slurm --run nightly --agent codex --trials 5 --dry-run")]
pub(crate) struct SlurmArgs {
    #[command(flatten)]
    pub(crate) of: SubmitScope,
    /// How many shares run at the same time at most
    #[arg(long, value_name = "N")]
    pub(crate) throttle: Option<u32>,
    /// The time limit of a share, as Slurm writes it
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// The partition of the cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
}

/// An Indexed Job
///
/// The image must hold this very `runner-eval` and `runner`; the claim must hold the folder with eval/ in it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval submit k8s --run nightly --agent codex --image registry/eval:1 --claim eval --dry-run")]
pub(crate) struct K8sArgs {
    #[command(flatten)]
    pub(crate) of: SubmitScope,
    /// The image
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,
    /// The claim to the volume that all pods share
    #[arg(long, value_name = "NAME", default_value = "eval")]
    pub(crate) claim: String,
    /// Where the volume is mounted
    #[arg(long, value_name = "PATH", default_value = "/eval")]
    pub(crate) mount: String,
    /// How many shares run at the same time at most
    #[arg(long, value_name = "N")]
    pub(crate) throttle: Option<u32>,
}

/// Run the checks as they are now on recorded workspaces, and show what flips
///
/// Changes no result. Needs the workspaces: `runner eval clean` removes them.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval regrade                        the newest run
  runner eval regrade roman-numerals --run nightly --json")]
pub(crate) struct RegradeArgs {
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
    /// The run [default: the newest]
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// The runner for checks that ask it [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) runner: Option<PathBuf>,
}

/// List recorded results, every attempt
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval results
  runner eval results --run nightly --json | jq '.results[] | select(.outcome != \"success\")'")]
pub(crate) struct ResultsArgs {
    /// Only those of this run
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
}
