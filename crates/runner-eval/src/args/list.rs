//! Arguments of `runner eval list`.

use clap::Args;

use super::CaseArgs;

/// List the cases and their tags
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval list
  runner eval list --filter 'runs-out-*'
  runner eval list --tag scripted --json | jq -r '.cases[].id'")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
}
