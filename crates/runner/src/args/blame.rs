//! Arguments of `runner blame`.

use clap::Args;

use super::RunArg;

/// Find the iteration that broke a task, the guard or a command
///
/// Bisects the run: runs the guard on iterations of the run, each checked out into a temporary clone. For a task, the
/// search starts where it passed and uses the guard as it was then. Starts no agent and changes nothing here.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner blame auth/login                # which iteration broke this task
  runner blame                           # which iteration broke the guard
  runner blame -- cargo test -p parser   # which iteration broke a command
  runner blame --from 12 -- ./check.sh   # the same, if it succeeded after #12")]
pub(crate) struct BlameArgs {
    /// Task that passed (path, id or unique prefix)
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Iteration after which the command succeeded
    #[arg(long, value_name = "ITER", conflicts_with = "node")]
    pub(crate) from: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Command to use instead of the guard (exit 0 = good)
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
