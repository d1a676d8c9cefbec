//! Arguments of `runner select`.

use clap::Args;

/// Print the next task
///
/// Exit 3: that task has no attempts left (the run is stuck).
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner select
  runner select --explain   # why it is this one, level by level")]
pub(crate) struct SelectArgs {
    /// Explain why this task is next
    #[arg(long)]
    pub(crate) explain: bool,
}
