//! Arguments of `runner runs`, `runner switch`, `runner stop` and `runner clean`.

use clap::Args;

/// List the runs of this repository
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner runs
  runner runs --json | jq '.runs[].run_id'")]
pub(crate) struct RunsArgs {}

/// Check out the branch of another run
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner switch add-oauth-login")]
pub(crate) struct SwitchArgs {
    /// Run to switch to
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

/// Stop the loop in this work tree, from any terminal
///
/// The loop stops after its current iteration. With --now it ends the session and commits the work so far.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner stop
  runner stop --now
  runner -C ../work-oauth stop")]
pub(crate) struct StopArgs {
    /// End the current session
    #[arg(long)]
    pub(crate) now: bool,
}

/// Remove the logs, references and branch of a run
///
/// Asks first. Refuses a run whose passed work is on no other branch.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner clean add-oauth-login
  runner clean failed-try --force --yes")]
pub(crate) struct CleanArgs {
    /// Run to remove, by its id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Remove it even if its work is on no other branch
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}
