//! Arguments of `runner eval gate`.

use clap::Args;

/// Check that new results are not worse than the base, for CI
///
/// pass: with 95 % confidence, the pass rate did not fall by more than the margin. regression: it fell significantly (p <= 5 %).
/// inconclusive: too few cases or trials for either. incomplete: planned trials have no result, or cases of BASE have changed
/// or have no score in NEW.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval gate main branch
  runner eval gate main branch --margin 0.1 --min-cases 30 --json
  runner eval gate main --aa      # false-alarm rate and power of this suite

Exit codes:
  0 pass   7 regression   5 inconclusive   6 incomplete
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
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) min_cases: usize,
    /// Simulate the gate with the results of BASE (A/A test): false-alarm rate and power
    #[arg(long, conflicts_with = "new")]
    pub(crate) aa: bool,
}
