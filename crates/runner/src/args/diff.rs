//! Arguments of `runner diff`.

use clap::Args;

use super::RunArg;

/// Show the changes of an iteration
///
/// Without PATH, leaves out the runner's own files under .runner/.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner diff                 # the last iteration
  runner diff 57 -- src       # only below src
  runner diff 57 -- .runner   # changes to the plan and the memory files
  runner diff @-1 | delta")]
pub(crate) struct DiffArgs {
    /// Iteration (57, #57, @, @-1), or a task for the last iteration on it [default: @]
    #[arg(value_name = "ITER|NODE")]
    pub(crate) target: Option<String>,
    /// Show only changes to these paths
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    #[command(flatten)]
    pub(crate) run: RunArg,
}
