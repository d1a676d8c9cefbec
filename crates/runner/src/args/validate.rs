//! Arguments of `runner validate`.

use clap::Args;

/// Check the files under .runner/ and list every problem
///
/// Changes nothing. Exit 2: there is a problem.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner validate
  runner validate --json | jq '.problems[].message'")]
pub(crate) struct ValidateArgs {}
