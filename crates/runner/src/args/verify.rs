//! Arguments of `runner verify`.

use clap::Args;
use runner_core::model::id::IterationNumber;

use super::RunArg;

/// Prove from git alone that every rule held at every commit
///
/// Derives each iteration again from the commit before it: number, task, prompt, tree, state, commit message and
/// protected files. Works in any clone; the run's logs are not needed. Exit 0: verified; 1: a rule was violated; 2: no
/// such run; 5: what could be checked holds, but not everything could be checked.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner verify                 # the run on the current branch
  runner verify port-to-rust    # another run, local or from a remote
  runner verify HEAD~20..HEAD   # part of a run
  runner verify --rerun         # also repeat checks and guard of each pass
  runner verify --rerun all --jobs 4
  runner verify --json | jq .first_divergence")]
pub(crate) struct VerifyArgs {
    /// Run, commit or range of commits [default: the run on the current branch]
    #[arg(value_name = "RUN|RANGE", conflicts_with = "run")]
    pub(crate) target: Option<String>,
    /// Re-run checks and guard of the commits that passed, each in a fresh room [default: all]
    #[arg(long, value_name = "ITER|all", num_args = 0..=1, default_missing_value = "all",
          value_parser = pass_selection)]
    pub(crate) rerun: Option<PassSelection>,
    /// How many passes to re-run at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), requires = "rerun")]
    pub(crate) jobs: u16,
    #[command(flatten)]
    pub(crate) run: RunArg,
}

/// The passing commits on which the guard runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassSelection {
    All,
    One(IterationNumber),
}

fn pass_selection(text: &str) -> Result<PassSelection, String> {
    if text == "all" {
        return Ok(PassSelection::All);
    }
    let digits = text.strip_prefix('#').unwrap_or(text);
    let iter: Result<IterationNumber, _> = digits.parse();
    iter.map(PassSelection::One).map_err(|error| format!("`{text}` {error}; use a number or `all`"))
}
