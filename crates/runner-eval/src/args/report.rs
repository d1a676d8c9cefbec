//! Arguments of `runner eval report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Summarise results: pass rates with confidence intervals, pass@k
///
/// RESULTS is a run or a folder of results, optionally with @AGENT. Trials that are not scored (provider and infrastructure
/// errors, skipped and interrupted trials) are counted separately, never as failures.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval report                    # the newest run as a table
  runner eval report table nightly --k 3 --json
  runner eval report html nightly --out nightly.html
  runner eval report harbor nightly --out jobs    # then: harbor view jobs
  runner eval report junit nightly@codex --out junit.xml")]
pub(crate) struct ReportArgs {
    /// Format of the report
    #[arg(value_name = "FORMAT", default_value = "table")]
    pub(crate) format: ReportFormat,
    /// Run or folder, optionally with @AGENT [default: the newest run]
    #[arg(value_name = "RESULTS")]
    pub(crate) selection: Option<String>,
    /// The k of pass@k and pass^k [default: the fewest trials of any case]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) k: Option<u32>,
    /// Write to FILE instead of standard output (atif, harbor: to files in this folder)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Pass rates and confidence intervals by agent and case
    Table,
    /// One self-contained page: pass rates, a grid of trials, checks, ends of logs, transcripts
    Html,
    /// For CI: a suite per agent, a test per trial, flaky trials marked as nextest does
    Junit,
    /// Every attempt, one JSON object per line
    Jsonl,
    /// Every attempt, for spreadsheets
    Csv,
    /// A trajectory (ATIF) per trial, one per line; with --out, a folder of files
    Atif,
    /// A JSON log of Inspect, for one agent
    Inspect,
    /// A job of Harbor in the folder --out, for `harbor view`
    Harbor,
    /// Patches as predictions of SWE-bench, one per line
    Predictions,
}
