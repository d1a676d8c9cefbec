//! Arguments of `runner show`.

use clap::Args;

use super::RunArg;

/// Show one iteration or task in full
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner show              # the last iteration: outcome, guard, summary, files
  runner show 57           # iteration 57
  runner show auth/login   # a task: goal, attempts, iterations, last failure")]
pub(crate) struct ShowArgs {
    /// Iteration (57, #57, @, @-1) or task (path, id or unique prefix) [default: @]
    #[arg(value_name = "ITER|NODE")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArg,
}
