//! Arguments of `runner eval compare`.

use clap::Args;

/// Compare two results case by case
///
/// BASE and NEW are runs or folders of results, optionally with @AGENT. Shows the mean difference of the pass rates with its
/// confidence interval, wins, ties and losses by case, and an exact test. With several NEW, the p-values are corrected for
/// their number (Holm).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval compare monday tuesday
  runner eval compare nightly@codex nightly@claude --json
  runner eval compare nightly@codex nightly@codex+max_attempts_default=1")]
pub(crate) struct CompareArgs {
    /// Reference results: a run or a folder
    #[arg(value_name = "BASE")]
    pub(crate) base: String,
    /// Results that may differ from BASE
    #[arg(value_name = "NEW", required = true)]
    pub(crate) new: Vec<String>,
    /// Make statements about all cases like these, not only about these cases
    #[arg(long)]
    pub(crate) population: bool,
}
