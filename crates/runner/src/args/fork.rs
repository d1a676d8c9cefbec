//! Arguments of `runner fork`.

use clap::Args;
use runner_core::model::id::RunId;

use super::RunArg;

/// Start a new run from an earlier iteration, and switch to it
///
/// Creates the branch runner/<NEW> at that iteration's commit. Passed tasks, used attempts, costs and iteration
/// numbers carry over. Existing branches are not changed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner fork 56                    # from iteration 56 of the current run
  runner fork @-1 --id second-try   # from the second to last, with an id
  runner fork port-to-rust/56       # from an iteration of another run
  runner fork auth/login            # from the last iteration on a task")]
pub(crate) struct ForkArgs {
    /// Iteration (57, #57, @, @-1, RUN/57), or a task for the last iteration on it
    #[arg(value_name = "ITER|NODE")]
    pub(crate) target: String,
    /// Id of the new run [default: the old id and the iteration's number]
    #[arg(long, value_name = "NEW", value_parser = run_id)]
    pub(crate) id: Option<RunId>,
    #[command(flatten)]
    pub(crate) run: RunArg,
}

fn run_id(text: &str) -> Result<RunId, String> {
    RunId::new(text).map_err(|error| format!("the id {error}"))
}
