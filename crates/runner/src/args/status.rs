//! Arguments of `runner status`.

use clap::Args;

/// Show the run's status
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner status
  runner -C ../other status --json")]
pub(crate) struct StatusArgs {}
