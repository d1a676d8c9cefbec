//! Arguments of the commands that run `runner-ui`: `ui`, `watch` and `export`.

use std::ffi::OsString;

use clap::Args;

use super::RunArg;

/// Open the web UI
///
/// Serves a read-only page on this machine. Runs `runner-ui`, which is built into this program; `runner ui -- --help`
/// lists all options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner ui
  runner ui --open            # and open the browser
  runner ui --port 0 --json   # any free port, printed as JSON")]
pub(crate) struct UiArgs {
    /// Options of the server
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// Watch a run in this terminal
///
/// Shows the task tree and the agent's output live, read-only. Press ? for the keys. `runner watch -- --help` lists the options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner watch
  runner watch nightly               # another run
  ssh -t build runner -C app watch   # a run on another machine")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Run, and options
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// Write a whole run to one HTML or JSON file
///
/// The HTML page opens from disk, without a server. `runner export -- --help` lists the options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner export html --out ../run.html   # the current run as a page
  runner export json nightly | gzip > nightly.json.gz")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// `html` or `json`, then the run and options
    #[arg(value_name = "FORMAT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}
