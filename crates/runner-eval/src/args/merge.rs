//! Arguments of `runner eval merge`.

use std::path::PathBuf;

use clap::Args;

use crate::plan::run_name::EvalRunName;

/// Collect the results of all partitions, and list what is missing
///
/// Uses only the recorded results, not what a cluster reports about its jobs. Exit 1: trials are missing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval merge --run nightly
  runner eval merge --json | jq .missing
  runner eval merge --run nightly --from share-1 --from share-2")]
pub(crate) struct MergeArgs {
    /// Run name [default: the newest run]
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<EvalRunName>,
    /// Results folder of another machine to import results from; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Vec<PathBuf>,
}
