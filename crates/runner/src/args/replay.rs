//! Arguments of `runner replay`.

use std::path::PathBuf;

use clap::Args;

use super::RunArg;

/// Replay a recorded run and check that it gives identical results
///
/// Feeds the recorded result of each session and each guard run through this version of the runner and compares
/// prompts, trees, states and commit messages. Exit 1: there is a difference.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner replay                  # the run on the current branch
  runner replay --out run.json   # also write the recording to one file
  runner replay run.json         # from that file, without the repository")]
pub(crate) struct ReplayArgs {
    /// Run whose logs are here, or a recording [default: the run on the current branch]
    #[arg(value_name = "RUN|FILE", conflicts_with = "run")]
    pub(crate) target: Option<String>,
    /// Write the recording to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArg,
}
