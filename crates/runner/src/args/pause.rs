//! Arguments of `runner pause` and `runner resume`.

use clap::Args;

/// Pause the loop after the current iteration
///
/// The loop keeps running and waits for `runner resume`; until then you can edit the plan, and `runner start` commits
/// your changes. A loop started while the run is paused waits too. `runner step` ignores the pause.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner pause
  runner pause --wait && runner node allow login && runner resume")]
pub(crate) struct PauseArgs {
    /// Wait for the current iteration to end
    #[arg(long)]
    pub(crate) wait: bool,
}

/// Resume a paused run
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner resume")]
pub(crate) struct ResumeArgs {}
