//! The branch that a run started from: the one that its first commit names, or else one that contains the commit before it.

use runner_core::commit_message::{MessageParts, Trailer};
use runner_core::model::id::RunId;
use runner_core::model::object_id::{BranchName, CommitId};

use crate::error::Error;
use crate::git::{Git, lossy};

/// Names that win when several branches contain the commit.
const USUAL: [&str; 4] = ["main", "master", "develop", "trunk"];

/// The branch that was checked out at the start of a run, if it still exists here, or the one that most likely was.
pub(crate) fn base_branch_of(git: &Git, run: &RunId, tip: &CommitId) -> Result<Option<String>, Error> {
    let Some(first) = git.first_start(run, tip)? else { return Ok(None) };
    let message = lossy(&git.call(&["log", "-1", "--format=%B", first.as_str()]).run()?);
    if let Some(recorded) = MessageParts::parse(&message).value(Trailer::Base)
        && git.branch_tip(&BranchName::new(recorded))?.is_some()
    {
        return Ok(Some(recorded.to_owned()));
    }
    match git.resolve(&format!("{first}^"))? {
        Some(start) => likely_base(git, &start),
        None => Ok(None),
    }
}

/// The local branch that most likely is the base of a run that started on this commit; none if only runs contain it.
pub(crate) fn likely_base(git: &Git, start: &CommitId) -> Result<Option<String>, Error> {
    let contains = format!("--contains={start}");
    let args = ["for-each-ref", "--format=%(refname:lstrip=2)", &contains, "refs/heads/"];
    let output = lossy(&git.call(&args).run()?);
    let is_users = |name: &&str| RunId::of_branch(name).is_none() && !name.starts_with("land/");
    let branches: Vec<&str> = output.lines().filter(is_users).collect();
    let usual = USUAL.into_iter().find(|name| branches.contains(name));
    Ok(usual.or(branches.first().copied()).map(str::to_owned))
}
