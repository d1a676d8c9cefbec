//! Outages: sessions that the provider ends before the agent did anything.
//!
//! The first one is committed, with the wait that follows it. Later ones in the same outage add nothing to the record and
//! are not committed: the branch stays as it is, and the recorded wait is enough to continue after a restart. None of them
//! counts for `max_iterations`.

use super::attempt::FileChanges;
use super::backoff::Wait;
use super::escalation::{UsageLimit, pending_wait};
use super::outcome::{NextAction, Outcome, OutcomeClass};
use super::plan::Job;
use super::settle::{Settling, Transition};
use super::snapshot::Snapshot;

/// Whether the provider, and not the session, decided this outcome, and a wait is the answer.
fn is_of_provider(outcome: Outcome) -> bool {
    matches!(outcome.class(), OutcomeClass::Transient | OutcomeClass::UsageLimit)
}

/// The wait after a session that changed no file and only repeats what the last commit records. A usage limit after other
/// failures is news, because its wait is longer; the other way round it is not.
pub(super) fn continued(snapshot: &Snapshot, job: &Job, transition: &Transition) -> Option<Wait> {
    let before = &snapshot.state;
    let after = &transition.state;
    let NextAction::Wait(wait) = &transition.next else { return None };
    // A session whose review failed did something: its work is committed.
    if after.review.last.is_some() {
        return None;
    }
    let recorded = pending_wait(before, &snapshot.config, &job.agent.executor)?;
    let is_known = match transition.outcome.class() {
        OutcomeClass::Transient => true,
        OutcomeClass::UsageLimit => recorded.outcome.class() == OutcomeClass::UsageLimit,
        OutcomeClass::Answered
        | OutcomeClass::TimeLimit
        | OutcomeClass::Budget
        | OutcomeClass::Interrupted
        | OutcomeClass::TooLarge
        | OutcomeClass::Failure
        | OutcomeClass::NeedsUser => false,
    };
    let agents = |limits: &[UsageLimit]| limits.iter().map(|limit| limit.agent.clone()).collect::<Vec<_>>();
    let is_same = before.last_node.as_ref() == job.target.node()
        && agents(&before.usage_limits) == agents(&after.usage_limits)
        && before.spent == after.spent;
    (is_known && is_same && transition.changes == FileChanges::default()).then(|| wait.clone())
}

impl Settling<'_> {
    /// Whether the iteration is an outage alone: it changed no file and used nothing. A session that did is an iteration like
    /// others, so that no agent can make a run endless.
    pub(super) fn is_outage(&self) -> bool {
        let spent = &self.snapshot.state.spent;
        let after = self.spent_after();
        is_of_provider(self.decision.outcome)
            && self.failed_review().is_none()
            && self.claim.changes == FileChanges::default()
            && (spent.tokens, spent.microdollars) == (after.tokens, after.microdollars)
    }
}
