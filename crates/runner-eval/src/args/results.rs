//! Arguments of `runner eval results`.

use clap::Args;

use crate::plan::run_name::EvalRunName;

/// List the recorded results
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval results
  runner eval results --run nightly --json |
    jq '.results[] | select(.outcome != \"success\")'")]
pub(crate) struct ResultsArgs {
    /// Only results of this run
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<EvalRunName>,
}
