//! Arguments of `runner eval plan`.

use clap::Args;

use super::ScopeArgs;
use crate::plan::run_name::EvalRunName;

/// Write the plan of a run, to be executed in partitions
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval plan --run nightly --agent codex --trials 5
  # then one of eight partitions, on any machine that sees the folder:
  runner eval run --continue --run nightly --partition slice:1/8")]
pub(crate) struct EvalPlanArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Run name [default: the current time]
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<EvalRunName>,
}
