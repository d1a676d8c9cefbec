//! Arguments of `runner eval regrade`.

use std::path::PathBuf;

use clap::Args;

use super::CaseArgs;
use crate::plan::run_name::EvalRunName;

/// Run the current checks on recorded workspaces
///
/// Shows which outcomes and checks differ from the recorded ones. With --record, each changed judgement becomes a further
/// attempt at its trial, which counts from then on; the earlier one is kept. Needs the workspaces, which `runner eval
/// clean` removes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval regrade                   # the newest run
  runner eval regrade roman-numerals --run nightly --json
  runner eval regrade --run nightly --record   # let the new judgement count")]
pub(crate) struct RegradeArgs {
    #[command(flatten)]
    pub(crate) cases: CaseArgs,
    /// Run name [default: the newest run]
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<EvalRunName>,
    /// Runner for verify_passes [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) runner: Option<PathBuf>,
    /// Record changed judgements as further attempts, which count
    #[arg(long)]
    pub(crate) record: bool,
}
