//! `done` from a session that changed no file: accepted on the word of two independent sessions, or by the policy.

use super::attempt::ChangeScope;
use super::checks::{CheckEvidence, CheckResult, GreenRun};
use super::interpret::Claim;
use super::plan::Job;
use super::snapshot::Snapshot;
use crate::config::UnchangedPolicy;
use crate::model::checks::RedKind;
use crate::model::id::NodeId;
use crate::model::progress::UnconfirmedClaim;
use crate::model::tree::{Node, Tree};

/// Whether an accepted `done` with a successful guard is enough for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DoneProof {
    /// The session changed files, or a check proves the task, or the policy accepts the answer as it is.
    Accepted,
    /// A second session agrees with the first: nothing had to change.
    Confirmed,
    /// One session's word: another one must confirm it.
    Unconfirmed,
    /// The policy counts it as a failed attempt.
    Refused,
}

/// What an accepted `done` on a leaf is worth. `after` is the agent's plan.
pub(super) fn done_proof(
    snapshot: &Snapshot,
    job: &Job,
    claim: &Claim,
    checks: &CheckEvidence,
    after: &Tree,
) -> DoneProof {
    if claim.kept_work == ChangeScope::Execute
        || proven_checks(job, checks) > 0
        || checks.proven_heldout(job) > 0
    {
        return DoneProof::Accepted;
    }
    match snapshot.config.accept.unchanged {
        UnchangedPolicy::Pass => DoneProof::Accepted,
        UnchangedPolicy::Retry => DoneProof::Refused,
        UnchangedPolicy::Confirm if is_confirmation(snapshot, job, after) => DoneProof::Confirmed,
        UnchangedPolicy::Confirm => DoneProof::Unconfirmed,
    }
}

/// How many checks of the task went from red to green.
pub(super) fn proven_checks(job: &Job, evidence: &CheckEvidence) -> u32 {
    let recorded = job.task.checks.as_ref().and_then(|checks| checks.red.as_ref());
    let Some(proof) = evidence.red.as_ref().or(recorded) else { return 0 };
    let GreenRun::Ended { results, .. } = &evidence.green else { return 0 };
    let is_proven = |result: &&CheckResult| {
        result.exit.is_green() && proof.red_of(&result.name).is_some_and(RedKind::is_proof)
    };
    u32::try_from(results.iter().filter(is_proven).count()).unwrap_or(u32::MAX)
}

/// Whether the session confirms the claim of an earlier one, about the task that both were given.
fn is_confirmation(snapshot: &Snapshot, job: &Job, after: &Tree) -> bool {
    let Some(node) = job.target.node() else { return false };
    let claim = pending_claim(snapshot, node);
    claim.zip(node_of(after, node)).is_some_and(|(claim, task)| claim.is_about(task))
}

/// The claim about this task that the next session must confirm. Commits of the user's since then make it void, and so does
/// another goal.
pub(crate) fn pending_claim<'s>(snapshot: &'s Snapshot, node: &NodeId) -> Option<&'s UnconfirmedClaim> {
    let claim = snapshot.state.progress.unconfirmed.as_ref().filter(|_| snapshot.user_commits == 0)?;
    claim.is_about(node_of(&snapshot.tree, node)?).then_some(claim)
}

pub(super) fn node_of<'t>(tree: &'t Tree, id: &NodeId) -> Option<&'t Node> {
    tree.path_to(id).and_then(|path| path.last().copied())
}
