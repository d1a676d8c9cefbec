//! Arguments of `runner demo`.

use std::path::PathBuf;

use clap::Args;

/// Watch a whole run in a scratch repository: no agent, no key
///
/// A scripted agent plans, works, makes a mistake and tries to cheat. Everything else is real: git, the guard, the
/// task tree.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner demo
  runner demo --dir ~/runner-demo   # in a new folder")]
pub(crate) struct DemoArgs {
    /// Folder to create [default: one under the temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
