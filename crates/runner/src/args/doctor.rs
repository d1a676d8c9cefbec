//! Arguments of `runner doctor`.

use clap::Args;

/// Check git, guard and agent, and explain how to fix problems
///
/// Exit 1: a run would fail.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner doctor
  runner doctor --json")]
pub(crate) struct DoctorArgs {}
