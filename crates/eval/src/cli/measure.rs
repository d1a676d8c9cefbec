//! What people can type about results: reports, comparisons, the gate.

use clap::{Args, ValueEnum};

/// Say what results mean: rates with their intervals, chances with k trials, cost and time of a success
///
/// RESULTS is a run, or a folder of results, each with or without @AGENT. What says nothing about an agent (the
/// provider's and the evaluation's own failures, skipped and interrupted trials) is left out, never counted as 0.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval report                            the newest run as a table
  runner eval report table nightly --k 3 --json
  runner eval report table nightly@codex")]
pub(crate) struct ReportArgs {
    /// The form
    #[arg(value_name = "FORM", default_value = "table")]
    pub(crate) form: Form,
    /// Which results [default: the newest run]
    #[arg(value_name = "RESULTS")]
    pub(crate) what: Option<String>,
    /// For pass@k and pass^k [default: as often as every case was tried]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) k: Option<u32>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Rates and intervals, by agent and by case
    Table,
}
