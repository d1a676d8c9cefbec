//! What people can type to go back.

use clap::Args;
use runner_core::model::id::RunId;

/// Begin a new run from an iteration of any run
///
/// Makes the branch runner/<NEW> on top of that iteration's commit and goes there. What passed up to there stays passed,
/// what was spent stays spent, and the numbers of iterations go on. Branches that are there stay as they are.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner fork 56                   go on from iteration 56 of the run here
  runner fork @-1 --id second-try  from the last but one, under a name of your own
  runner fork port-to-rust/56      from an iteration of another run
  runner fork auth/login           from the last iteration on a node")]
pub(crate) struct ForkArgs {
    /// An iteration (57, #57, @, @-1, RUN/57), or a node: the last iteration on it
    #[arg(value_name = "ITER|NODE")]
    pub(crate) which: String,
    /// The new run's id; without it, the old one's with the iteration's number
    #[arg(long, value_name = "NEW", value_parser = run_id)]
    pub(crate) id: Option<RunId>,
    /// Another run than the one here
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

fn run_id(text: &str) -> Result<RunId, String> {
    RunId::new(text).map_err(|fault| format!("it {fault}"))
}

/// Find the iteration that broke a node, the guard, or a check of your own
///
/// Runs the check on iterations of the run, each in a temporary repository, and halves the range until one is left. For
/// a node that begins where it passed, and the check is the guard as it was pinned there. No agent is started, and
/// nothing here is changed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner blame auth/login                 which iteration broke what this node had made
  runner blame                            which iteration broke the guard
  runner blame -- cargo test -p parser    which iteration broke a command
  runner blame --from 12 -- ./check.sh    the same, where it was green after iteration 12")]
pub(crate) struct BlameArgs {
    /// A node that passed, by its path, its id or the beginning of it
    #[arg(value_name = "NODE")]
    pub(crate) node: Option<String>,
    /// Begin at this iteration, on which the check was green
    #[arg(long, value_name = "ITER", conflicts_with = "node")]
    pub(crate) from: Option<String>,
    /// Another run than the one here
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// The check, in the place of the guard: green where it ends with 0
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
