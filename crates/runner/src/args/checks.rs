//! Arguments of `runner checks`.

use clap::Args;

/// List the checks of all tasks
///
/// A check is a task's own acceptance command. The runner runs it before the first session on the task, when it must fail,
/// and again after the work, when it must succeed.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner checks
  runner checks --json")]
pub(crate) struct ChecksArgs {}
