//! Arguments of `runner eval clean`.

use clap::Args;

use crate::plan::run_name::EvalRunName;

/// Remove workspaces; with --all, also results
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval clean                     # all workspaces; regrade needs them
  runner eval clean --run nightly --all # everything of one run")]
pub(crate) struct CleanArgs {
    /// Only those of this run
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<EvalRunName>,
    /// Also remove the stored results
    #[arg(long)]
    pub(crate) all: bool,
}
