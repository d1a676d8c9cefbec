//! What people can type.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Evaluate agents: real loops over declarative cases, with honest statistics
///
/// Cases are in eval/cases, results go to eval/results/<case>/<id>, and each trial works in a repository of its own
/// under eval/workspaces.
#[derive(Debug, Parser)]
#[command(name = "runner-eval", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// Work in this folder instead of the current one
    #[arg(short = 'C', global = true, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub(crate) directory: PathBuf,
    /// Where the cases are [default: eval/cases]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// Where the results are [default: eval/results]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Answer with JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

impl Global {
    /// Where the results are.
    pub(crate) fn results(&self) -> PathBuf {
        self.results.clone().unwrap_or_else(|| self.directory.join("eval/results"))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Results(ResultsArgs),
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
