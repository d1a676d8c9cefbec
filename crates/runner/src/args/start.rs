//! Arguments of `runner start`.

use std::path::PathBuf;

use clap::Args;

/// Start or resume a run
///
/// Checks out or creates the branch runner/<id>, writes the id into GOAL.md and commits your changes under .runner/.
/// Running it again changes nothing. A goal without an id starts a new run.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner start
  runner start --goal \"Make the parser twice as fast\"
  runner start --goal-file docs/plan.md
  runner start --keep-plan   # carry the open tasks over into a new run
  runner start --worktree    # keep your own checkout free")]
pub(crate) struct StartArgs {
    /// Goal text (only if GOAL.md is still empty)
    #[arg(long, value_name = "TEXT", conflicts_with = "goal_file")]
    pub(crate) goal: Option<String>,
    /// File with the goal text
    #[arg(long, value_name = "FILE")]
    pub(crate) goal_file: Option<PathBuf>,
    /// Carry the open tasks over into the new run
    #[arg(long)]
    pub(crate) keep_plan: bool,
    /// Work in a linked work tree [default folder: beside the repository]
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    pub(crate) worktree: Option<Option<PathBuf>>,
}
