//! Arguments of `runner eval run`.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::ScopeArgs;
use crate::plan::partition::Partition;
use crate::plan::run_name::EvalRunName;

/// Run cases with agents and record how each trial ends
///
/// The same command continues an interrupted run: trials that have a result are not repeated. Trials lost to provider or
/// infrastructure errors are retried, and every attempt is kept. Agent `case` is the one that each case names itself;
/// `oracle` plays the solution of a case, `cheat` its cheat, `exit0` writes programs that only exit with 0, and `nop` does
/// nothing. Exit 1: a case did not end as its file expects, or no trial is scored.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval run adds-a-file
  runner eval run --tag scripted --trials 3 --jobs 4
  runner eval run --agent codex:gpt-6.1-sol --agent claude --trials 5
  runner eval run --agent codex --trials 5 --budget-usd 20
  runner eval run --agent codex --arm base --arm max_attempts_default=1
  runner eval run --continue            # finish the newest unfinished run
  runner eval run --run nightly --partition slice:2/8")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
    /// Run name; an existing run is continued [default: the current time]
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<EvalRunName>,
    /// Start a new run even if one with the same scope is unfinished
    #[arg(long, conflicts_with = "run")]
    pub(crate) new: bool,
    /// Finish the run named by --run, or the newest unfinished one, as planned
    #[arg(long = "continue", conflicts_with_all = ["new", "ids", "tag", "filter", "sample", "agent", "arm", "grid"])]
    pub(crate) is_continued: bool,
    /// Run one partition of the trials: slice:M/N or hash:M/N [default: set by Slurm, Kubernetes or GitLab]
    #[arg(long, value_name = "METHOD:M/N")]
    pub(crate) partition: Option<Partition>,
    /// After the own partition, run open trials of other partitions that no machine works on
    #[arg(long)]
    pub(crate) steal: bool,
}

/// How trials are executed.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExecutionArgs {
    /// Trials to run at the same time
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) jobs: u32,
    /// Retries for trials lost to provider or infrastructure errors
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) retries: u32,
    /// Seconds before the first retry; doubled before each further one
    #[arg(long, value_name = "SECS", default_value_t = 5.0)]
    pub(crate) retry_wait: f64,
    /// Start no more trials once the whole run has cost this many dollars, on all machines
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<f64>,
    /// Start no more trials once the whole run has used this many tokens, on all machines
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Whether trials and checks run in a sandbox that hides cases, results and other trials
    #[arg(long, value_name = "MODE", default_value = "auto")]
    pub(crate) isolation: IsolationMode,
    /// Shell command that fails while the agents' provider is down; confirms what agents report about it
    #[arg(long, value_name = "COMMAND")]
    pub(crate) provider_check: Option<String>,
}

/// Whether trials run in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IsolationMode {
    /// If bubblewrap works on this machine
    Auto,
    /// Fail without bubblewrap
    Required,
    /// Never: agents can read cases and results
    Off,
}

impl IsolationMode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::Off => "off",
        }
    }
}
