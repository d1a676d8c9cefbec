//! Arguments of `runner step`.

use clap::Args;

/// Run one iteration: one agent session, checked and committed
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner step
  runner step --json")]
pub(crate) struct StepArgs {}
