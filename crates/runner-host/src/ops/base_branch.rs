//! The branch that a run started from, which git does not record: the one that contains the commit before the run.

use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;

use crate::error::Error;
use crate::git::{Git, lossy};

/// Names that win when several branches contain the commit.
const USUAL: [&str; 4] = ["main", "master", "develop", "trunk"];

/// The local branch that most likely is the base of a run that started on this commit; none if only runs contain it.
pub(crate) fn base_branch(git: &Git, start: &CommitId) -> Result<Option<String>, Error> {
    let contains = format!("--contains={start}");
    let args = ["for-each-ref", "--format=%(refname:lstrip=2)", &contains, "refs/heads/"];
    let output = lossy(&git.call(&args).run()?);
    let is_users = |name: &&str| RunId::of_branch(name).is_none() && !name.starts_with("land/");
    let branches: Vec<&str> = output.lines().filter(is_users).collect();
    let usual = USUAL.into_iter().find(|name| branches.contains(name));
    Ok(usual.or(branches.first().copied()).map(str::to_owned))
}

/// The same for the branch of a run.
pub(crate) fn base_branch_of(git: &Git, run: &RunId, tip: &CommitId) -> Result<Option<String>, Error> {
    let Some(first) = git.first_start(run, tip)? else { return Ok(None) };
    match git.resolve(&format!("{first}^"))? {
        Some(start) => base_branch(git, &start),
        None => Ok(None),
    }
}
