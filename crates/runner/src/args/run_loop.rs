//! Arguments of `runner loop`.

use clap::Args;

/// Run until the goal is reached or something stops it
///
/// Ctrl-C stops gracefully and commits the work so far; press it again to quit at once. On a terminal, q stops after
/// the current iteration and t prints a snapshot of the progress.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner loop
  runner loop --max-iterations 10
  runner loop --json | jq -c 'select(.event == \"committed\")'")]
pub(crate) struct LoopArgs {
    /// Stop after N iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
}
