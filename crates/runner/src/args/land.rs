//! Arguments of `runner land`.

use clap::Args;

/// Turn a run into commits for your branch
///
/// Verifies the run, makes one commit per passed task without .runner/, rebases them onto the branch that the run
/// started from, runs the guard on the result, and creates a branch. If anything fails, nothing changes. The run's own
/// branch stays as it is, as proof.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner land                  # creates the branch land/<run>
  runner land --squash         # one commit for the whole run
  runner land --onto develop --branch oauth
  runner land --into main      # moves main, if it is not checked out
  runner land --pr             # also print a title and text for a pull request
  runner land --open           # push it, open the request with gh or glab
  runner land --with-config    # later runs start from this configuration")]
pub(crate) struct LandArgs {
    /// Run to land [default: the one on the current branch]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Make one commit for the whole run
    #[arg(long)]
    pub(crate) squash: bool,
    /// Branch to land on [default: the one that the run started from]
    #[arg(long, value_name = "BRANCH", conflicts_with = "into")]
    pub(crate) onto: Option<String>,
    /// Move this branch forward instead of creating one
    #[arg(long, value_name = "BRANCH", conflicts_with = "branch")]
    pub(crate) into: Option<String>,
    /// Name of the new branch [default: land/<run>]
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// Print a title and text for a pull request
    #[arg(long)]
    pub(crate) pr: bool,
    /// Push the branch and open a pull request with gh or glab
    #[arg(long, conflicts_with = "into")]
    pub(crate) open: bool,
    /// Add a commit with the run's config.toml
    #[arg(long)]
    pub(crate) with_config: bool,
}
