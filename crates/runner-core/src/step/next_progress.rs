//! The progress of a run after an iteration, and whether the run has stalled.

use super::attempt::ChangeScope;
use super::checks::GreenRun;
use super::failure_signature::signature;
use super::next_state::{guard_output, is_open_leaf};
use super::outcome::{NextAction, Outcome, OutcomeClass, StopReason};
use super::plan::{SessionTarget, leaf_of};
use super::settle::Settling;
use super::unchanged::{node_of, proven_checks};
use crate::config::UnchangedPolicy;
use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::model::progress::{LeafFailure, Progress, UnconfirmedClaim};
use crate::model::tree::{Selection, Tree, next_selection};

impl Settling<'_> {
    pub(super) fn next_progress(&self, tree: &Tree, next: &NextAction) -> Progress {
        let before = &self.snapshot.state.progress;
        // The user sees that the loop stopped: the next command starts to count again.
        let is_stopped = matches!(next, NextAction::Stop(_));
        Progress {
            outages: before.outages.saturating_add(u32::from(self.is_outage())),
            timeouts_in_row: match self.decision.outcome.class() {
                OutcomeClass::TimeLimit if is_stopped => 0,
                OutcomeClass::TimeLimit => self.timeouts_in_row(),
                OutcomeClass::Transient | OutcomeClass::UsageLimit | OutcomeClass::Interrupted => {
                    before.timeouts_in_row
                }
                OutcomeClass::Answered
                | OutcomeClass::TooLarge
                | OutcomeClass::Failure
                | OutcomeClass::NeedsUser => 0,
            },
            iterations_without_pass: match self.iterations_without_pass() {
                Some(_) if is_stopped => 0,
                Some(iterations) => iterations,
                None => before.iterations_without_pass,
            },
            green_checks: proven_checks(self.job, &self.evidence.checks).max(self.green_checks_before()),
            unconfirmed: self.unconfirmed(tree),
            must_split: self.must_split(tree),
            leaf_failures: self.leaf_failures(tree),
        }
    }

    /// Time limits in a row on this task, this one included.
    pub(super) fn timeouts_in_row(&self) -> u32 {
        let state = &self.snapshot.state;
        let is_same_task = state.last_node.as_ref() == self.job.target.node();
        let before = if is_same_task { state.progress.timeouts_in_row } else { 0 };
        before.saturating_add(1)
    }

    /// Iterations in a row without a pass, this one included; `None` for one that says nothing about progress, because the
    /// provider or a signal ended it.
    fn iterations_without_pass(&self) -> Option<u32> {
        let before = self.snapshot.state.progress.iterations_without_pass;
        let outcome = self.decision.outcome;
        if matches!(self.job.target, SessionTarget::Plan(_)) {
            return None;
        }
        match outcome.class() {
            _ if outcome == Outcome::Passed || self.has_check_turned_green() => Some(0),
            OutcomeClass::Transient
            | OutcomeClass::UsageLimit
            | OutcomeClass::Interrupted
            | OutcomeClass::NeedsUser => None,
            OutcomeClass::Answered
            | OutcomeClass::TimeLimit
            | OutcomeClass::TooLarge
            | OutcomeClass::Failure => Some(before.saturating_add(1)),
        }
    }

    /// Whether more checks of the task are green than after any session before.
    fn has_check_turned_green(&self) -> bool {
        proven_checks(self.job, &self.evidence.checks) > self.green_checks_before()
    }

    fn green_checks_before(&self) -> u32 {
        let state = &self.snapshot.state;
        let is_same_task = state.last_node.as_ref() == self.job.target.node();
        if is_same_task { state.progress.green_checks } else { 0 }
    }

    /// The stop of a run in which no task passed for too long. A run that is stuck says that instead.
    pub(super) fn stalled(&self, tree: &Tree) -> Option<StopReason> {
        let config = &self.snapshot.config;
        let iterations = self.iterations_without_pass()?;
        let max = config.limits.stall_iterations.as_u32();
        let is_stuck = matches!(next_selection(tree, config.on_stuck), Selection::Stuck(_));
        (max > 0 && iterations >= max && !is_stuck).then_some(StopReason::Stalled { iterations })
    }

    /// The claim that the next session must confirm. It stays while nothing was answered and no file changed.
    fn unconfirmed(&self, tree: &Tree) -> Option<UnconfirmedClaim> {
        let outcome = self.decision.outcome;
        let is_confirmed_next = self.snapshot.config.accept.unchanged == UnchangedPolicy::Confirm;
        // Work without a verdict of its reviewer stays as it is: a second session that finds nothing to change is reviewed at once.
        let is_open_claim = outcome == Outcome::Unconfirmed || self.failed_review().is_some();
        if is_open_claim && is_confirmed_next {
            let task = node_of(tree, leaf_of(&self.job.target))?;
            return Some(UnconfirmedClaim::new(task, self.job.iteration));
        }
        let is_unchanged = outcome.class() != OutcomeClass::Answered
            && self.claim.work == ChangeScope::Decompose
            && self.snapshot.user_commits == 0;
        let claim = self.snapshot.state.progress.unconfirmed.as_ref().filter(|_| is_unchanged)?;
        is_open_leaf(tree, &claim.node).then(|| claim.clone())
    }

    fn must_split(&self, tree: &Tree) -> Option<NodeId> {
        let before = &self.snapshot.state.progress.must_split;
        let node = match (&self.job.target, self.decision.outcome) {
            (SessionTarget::Leaf(node), Outcome::ContextFull) => Some(node),
            (SessionTarget::Split(_), outcome) if outcome.class() == OutcomeClass::Answered => None,
            (_, _) => before.as_ref(),
        };
        node.filter(|node| is_open_leaf(tree, node)).cloned()
    }

    /// How open leaves failed. The same failure twice moves a leaf up, and starts to count again.
    fn leaf_failures(&self, tree: &Tree) -> Vec<LeafFailure> {
        let mut failures = self.snapshot.state.progress.leaf_failures.clone();
        if let (Some(signature), SessionTarget::Leaf(node)) = (self.failure_signature(), &self.job.target) {
            let at = failures.iter().position(|failure| failure.node == *node);
            let before = at.map(|at| failures.remove(at));
            let rungs = before.as_ref().map_or(0, |before| before.rungs);
            let is_repeated = before.is_some_and(|before| before.signature == Some(signature));
            failures.push(LeafFailure {
                node: node.clone(),
                signature: (!is_repeated).then_some(signature),
                rungs: rungs.saturating_add(u32::from(is_repeated)),
            });
        }
        failures.retain(|failure| is_open_leaf(tree, &failure.node));
        failures.sort_by(|one, other| one.node.cmp(&other.node));
        failures
    }

    /// The signature of what the guard or the checks printed, or of the violated rules; none without a ladder, which alone uses it.
    fn failure_signature(&self) -> Option<Sha256> {
        if self.snapshot.config.ladder.is_empty() {
            return None;
        }
        let outcome = self.decision.outcome;
        if outcome == Outcome::GuardFailed {
            return guard_output(&self.evidence.guard).map(|output| signature(&output));
        }
        if let (Outcome::ChecksFailed, GreenRun::Ended { output, .. }) =
            (outcome, &self.evidence.checks.green)
        {
            return Some(signature(output));
        }
        (outcome == Outcome::RuleViolation).then(|| signature(&self.claim.notes.texts.join("\n")))
    }
}
