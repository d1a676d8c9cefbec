//! Arguments of `runner eval gate`.

use clap::Args;

/// Check that new results are not worse than the base, for CI
///
/// pass: with 95 % confidence, the pass rate did not fall by more than the margin. within_margin: the same, but it did fall
/// (p <= 5 %). regression: with 95 % confidence, it fell by more than the margin. worse: it fell, but whether by more than
/// the margin is open. inconclusive: too few cases or trials for any of these. incomplete: planned trials have no result, too
/// many have no score, or cases differ. The verdict is about these cases, or with --population about all cases like these.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval gate main branch
  runner eval gate main branch --margin 0.1 --min-cases 30 --json
  runner eval gate main --aa      # false-alarm rate and power of this suite

Exit codes:
  0 pass, within_margin   7 regression   5 worse, inconclusive
  6 incomplete
  1 error, no verdict   2 usage error or no such results")]
pub(crate) struct GateArgs {
    /// Reference results: a run or a folder
    #[arg(value_name = "BASE")]
    pub(crate) base: String,
    /// Results that may be worse than BASE
    #[arg(value_name = "NEW", required_unless_present = "aa")]
    pub(crate) new: Option<String>,
    /// Accepted drop of the pass rate, from 0 to 1
    #[arg(long, value_name = "X", default_value_t = 0.05)]
    pub(crate) margin: f64,
    /// Cases that must have a score on both sides
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) min_cases: u32,
    /// Accepted share of trials without a score on each side, from 0 to 1
    #[arg(long, value_name = "X", default_value_t = 0.05)]
    pub(crate) max_lost: f64,
    /// Decide about all cases like these, not only about these cases
    #[arg(long)]
    pub(crate) population: bool,
    /// Simulate the gate with the results of BASE (A/A test): false-alarm rate and power
    #[arg(long, conflicts_with = "new")]
    pub(crate) aa: bool,
}
