//! Arguments of `runner explain`.

use clap::Args;

/// Explain an error code, a stop reason, an outcome or a rule
///
/// Error codes are in `code` of JSON errors and, on a terminal, below each error. Without a code, lists them all.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner explain dirty        # an error code
  runner explain stuck        # why a loop stopped
  runner explain guard_exit   # a rule of 'runner verify'
  runner explain              # all codes")]
pub(crate) struct ExplainArgs {
    /// Code to explain
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}
