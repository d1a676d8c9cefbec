//! Arguments of `runner tree`.

use clap::Args;

/// Show the task tree
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner tree
  runner tree --open --depth 2   # only open tasks, two levels deep
  runner tree -v                 # with the goal of each task")]
pub(crate) struct TreeArgs {
    /// Show at most N levels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) depth: Option<u16>,
    /// Only open tasks (not passed yet)
    #[arg(long)]
    pub(crate) open: bool,
}
