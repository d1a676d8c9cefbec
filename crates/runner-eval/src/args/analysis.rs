//! What people can type about results: reports, comparisons, the gate.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Say what results mean: rates with their intervals, chances with k trials, cost and time of a success
///
/// RESULTS is a run, or a folder of results, each with or without @AGENT. What says nothing about an agent (the
/// provider's and the evaluation's own failures, skipped and interrupted trials) is left out, never counted as 0.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval report                            the newest run as a table
  runner eval report table nightly --k 3 --json
  runner eval report html nightly --out nightly.html
  runner eval report junit nightly@codex --out junit.xml")]
pub(crate) struct ReportArgs {
    /// The form
    #[arg(value_name = "FORM", default_value = "table")]
    pub(crate) form: ReportFormat,
    /// Which results [default: the newest run]
    #[arg(value_name = "RESULTS")]
    pub(crate) what: Option<String>,
    /// For pass@k and pass^k [default: as often as every case was tried]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) k: Option<u32>,
    /// Write it to this file (atif: to files in this folder) instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Rates and intervals, by agent and by case
    Table,
    /// One page with everything in it: rates, a grid of cases and trials, the ends of the logs
    Html,
    /// For CI: a suite for each agent, a test for each trial, with nextest's marks for what is flaky
    Junit,
    /// Every attempt, one JSON object a line
    Jsonl,
    /// Every attempt, for spreadsheets
    Csv,
    /// A trajectory for each trial, one a line; with --out a folder with a file for each
    Atif,
    /// A log of Inspect in its JSON form, of one agent
    Inspect,
}

/// Compare two results case by case
///
/// A and B are runs or folders of results, each with or without @AGENT. Says how much higher B's rate is, where the true
/// difference probably is, in how many cases B is better and worse, and how likely chance alone would do that.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval compare monday tuesday
  runner eval compare nightly@codex nightly@claude --json")]
pub(crate) struct CompareArgs {
    /// The results to compare with
    #[arg(value_name = "A")]
    pub(crate) base: String,
    /// The new ones
    #[arg(value_name = "B")]
    pub(crate) new: String,
}

/// Say whether new results are worse than old ones, by exit code
///
/// pass: with 95 %, the rate did not fall by more than the margin. regression: it fell, and chance alone would show that in
/// at most 5 % of comparisons. inconclusive: too few cases or trials to say either. incomplete: cases of BASE have no
/// score in NEW, or were changed, or planned trials have no result.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval gate main branch
  runner eval gate main branch --margin 0.1 --min-n 30 --json
  runner eval gate main --aa                 how often this suite would raise a false alarm, and what it can see

Exit codes:
  0 pass   7 regression   5 inconclusive   6 incomplete   1 an error: no verdict   2 wrong usage or no such results")]
pub(crate) struct GateArgs {
    /// The results to hold to
    #[arg(value_name = "BASE")]
    pub(crate) base: String,
    /// The new ones
    #[arg(value_name = "NEW", required_unless_present = "aa")]
    pub(crate) new: Option<String>,
    /// How much the rate may fall, from 0 to 1
    #[arg(long, value_name = "X", default_value_t = 0.05)]
    pub(crate) margin: f64,
    /// How many cases must have a score on both sides
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) min_n: usize,
    /// Try the gate itself, on results that are made up from those of BASE
    #[arg(long, conflicts_with = "new")]
    pub(crate) aa: bool,
}
