//! Arguments of `runner report`.

use clap::Args;

/// Report what a run did, task by task
///
/// Tasks with summaries and evidence, notes worth a look, open questions, what is stuck, cost and time, and what to do
/// next.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner report                       # on the terminal
  runner report --markdown > run.md   # for an issue or a pull request
  runner report --html > run.html
  runner report add-oauth-login       # another run")]
pub(crate) struct ReportArgs {
    /// Run to report on [default: the one on the current branch]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Write Markdown instead of text
    #[arg(long, conflicts_with = "html")]
    pub(crate) markdown: bool,
    /// Write one HTML page
    #[arg(long)]
    pub(crate) html: bool,
}
