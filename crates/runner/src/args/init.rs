//! Arguments of `runner init`.

use clap::Args;

/// Create .runner/ in this repository
///
/// Existing files are kept. Afterwards, write your goal into .runner/GOAL.md and run `runner start`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner init
  runner init --force   # overwrite existing files, keeping .bak copies")]
pub(crate) struct InitArgs {
    /// Overwrite existing files (keeps .bak copies)
    #[arg(long)]
    pub(crate) force: bool,
}
