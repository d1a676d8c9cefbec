//! Arguments of `runner demo`.

use std::path::PathBuf;

use clap::Args;

/// Watch a whole run in a scratch repository: no agent, no key
///
/// A scripted agent plans with checks, works, takes a shortcut and tries to cheat. Everything else is real: git, the plan,
/// the checks, the guard. At the end the run is verified from git, and every pass is repeated.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner demo
  runner demo --dir ~/runner-demo   # in a new folder")]
pub(crate) struct DemoArgs {
    /// Folder to create [default: one under the temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
