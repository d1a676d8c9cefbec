//! Arguments of `runner eval lint`.

use std::path::PathBuf;

use clap::Args;

use super::CaseArgs;

/// Test the cases: solutions must succeed, doing nothing must not
///
/// Neither may the case's own cheats, nor an agent that writes the files of the solution as programs that only exit with
/// 0. Each is tried several times, because a flaky guard or check makes every later measurement noise.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval lint
  runner eval lint roman-numerals --trials 10 --json")]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
    /// Runner to use [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) runner: Option<PathBuf>,
    /// Trials to run at the same time
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) jobs: u32,
    /// Trials of each case with each of these agents
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) trials: u32,
}
