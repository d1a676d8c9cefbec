//! Arguments of `runner eval`, which runs `runner-eval`.

use std::ffi::OsString;

use clap::Args;

/// Evaluate agents on many cases
///
/// Runs real loops on declarative cases and summarises the results, on one machine or a cluster. It is a process of its own,
/// `runner-eval`, which this program contains; `runner eval -- --help` lists its commands.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval list
  runner eval run --tag scripted --jobs 4
  runner eval run --agent codex --agent claude --trials 5")]
pub(crate) struct EvalArgs {
    /// Command and options of the evaluation
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}
