//! Arguments of `runner eval`, which runs `runner-eval`.

use std::ffi::OsString;

use clap::Args;

/// Evaluate agents on many cases
///
/// Runs real loops on declarative cases and summarises the results, on one machine or a cluster. `runner-eval` is
/// found beside `runner` or on PATH; arguments after `eval` are passed to it, and `runner-eval --help` lists them.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval list
  runner eval run --tag scripted --jobs 4
  runner eval run --agent codex --agent claude --trials 5")]
pub(crate) struct EvalArgs {
    /// Command and options of runner-eval
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}
