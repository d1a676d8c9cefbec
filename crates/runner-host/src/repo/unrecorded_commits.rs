//! Commits on a run's branch that this machine's runner did not make, although a session of it was running: an agent outside a
//! sandbox can make commits like the runner's, remove the journal, and kill the runner.
//!
//! The runner writes meta.json of an iteration before it publishes the commit. A session that began here, without a meta.json,
//! cannot have a commit. An agent that writes that file too is not found: see docs/guide/proof.md.

use std::fs;

use runner_core::commit_message::CommitKind;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;

use crate::error::Error;
use crate::git::Git;

/// A commit that cannot be the runner's.
pub(super) struct UnrecordedCommit {
    pub(super) run: RunId,
    pub(super) iter: IterationNumber,
    /// The tip of the branch, which has the commit.
    pub(super) tip: CommitId,
    /// The commit that the session began from.
    pub(super) base: CommitId,
}

/// Looks for the oldest commit of an iteration that began on this machine and did not end. To be asked only after the runner
/// died.
pub(super) fn find(git: &Git) -> Result<Option<UnrecordedCommit>, Error> {
    let head = git.head()?;
    let run = head.branch().and_then(|branch| RunId::of_branch(branch.as_str()));
    let Some((run, tip)) = run.zip(head.commit().cloned()) else { return Ok(None) };
    let unfinished = unfinished_iterations(git, &run);
    let Some(oldest) = unfinished.iter().min() else { return Ok(None) };
    let mut batch = git.batch()?;
    let mut found = None;
    for entry in git.log(&tip, None, &[])? {
        let object = batch.commit(&entry?.id)?.unwrap_or_default();
        let kind = CommitKind::parse(&object.message);
        let is_of_run = kind.run_id() == Some(&run);
        if let (Some(iter), true, Some(parent)) = (kind.iter(), is_of_run, object.parents.first()) {
            if iter < *oldest {
                break;
            }
            if unfinished.contains(&iter) {
                found =
                    Some(UnrecordedCommit { run: run.clone(), iter, tip: tip.clone(), base: parent.clone() });
            }
        }
        if matches!(kind, CommitKind::Start { .. }) && is_of_run {
            break;
        }
    }
    Ok(found)
}

/// The iterations with a folder that has a prompt and no result.
fn unfinished_iterations(git: &Git, run: &RunId) -> Vec<IterationNumber> {
    let first = git.paths().iteration(run.as_str(), &IterationNumber::FIRST.to_string());
    let Some(entries) = first.parent().and_then(|folder| fs::read_dir(folder).ok()) else {
        return Vec::new();
    };
    let unfinished = entries.flatten().filter(|entry| {
        let dir = entry.path();
        dir.join("prompt.md").exists() && !dir.join("meta.json").exists()
    });
    unfinished.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
