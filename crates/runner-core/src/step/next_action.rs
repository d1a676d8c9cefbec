//! What the loop does after an iteration: go on, wait or stop.

use super::attempt::{ProviderError, SessionExit};
use super::backoff::{Backoff, Wait};
use super::escalation::{LeafRef, choose_agent};
use super::outcome::{Interruption, NextAction, Outcome, OutcomeClass, StopReason};
use super::plan::{SessionTarget, leaf_of};
use super::settle::{FAILURES_MAX, Settling, TIMEOUTS_MAX};
use crate::config::{OnTimeout, OnUsageLimit};
use crate::model::tree::Tree;

impl Settling<'_> {
    /// What the loop does after the iteration.
    pub(super) fn next_action(&self, tree: &Tree) -> NextAction {
        match self.action_by_outcome() {
            NextAction::Go => self.stalled(tree).map_or(NextAction::Go, NextAction::Stop),
            action @ (NextAction::Wait(_) | NextAction::Stop(_) | NextAction::Unknown) => action,
        }
    }

    /// What the loop does after an iteration with this outcome, whatever came before.
    fn action_by_outcome(&self) -> NextAction {
        let outcome = self.decision.outcome;
        match outcome.class() {
            OutcomeClass::Answered => match (&self.job.target, outcome) {
                (SessionTarget::Replan(node), Outcome::ReplanRefused) => {
                    NextAction::Stop(StopReason::Stuck { node: node.clone() })
                }
                (_, _) => NextAction::Go,
            },
            // The next session is not planned: the budget is used up.
            OutcomeClass::Budget => NextAction::Go,
            OutcomeClass::TimeLimit => match self.snapshot.config.on_timeout {
                OnTimeout::Retry if self.timeouts_in_row() < TIMEOUTS_MAX => NextAction::Go,
                OnTimeout::Retry | OnTimeout::Stop => NextAction::Stop(StopReason::TimeLimit { outcome }),
            },
            OutcomeClass::Interrupted => match self.interruption() {
                Interruption::Crash => NextAction::Go,
                by @ (Interruption::Int | Interruption::Term | Interruption::Hup) => {
                    NextAction::Stop(StopReason::Interrupted { by })
                }
            },
            OutcomeClass::Transient => NextAction::Wait(self.wait()),
            OutcomeClass::UsageLimit => self.after_usage_limit(),
            OutcomeClass::NeedsUser => NextAction::Stop(StopReason::NeedsUser { outcome }),
            OutcomeClass::TooLarge if matches!(self.job.target, SessionTarget::Leaf(_)) => NextAction::Go,
            OutcomeClass::TooLarge | OutcomeClass::Failure => {
                match self.snapshot.state.failures_in_row.saturating_add(1) {
                    in_row if in_row >= FAILURES_MAX => {
                        NextAction::Stop(StopReason::Failures { outcome, in_row })
                    }
                    _ => NextAction::Go,
                }
            }
        }
    }

    fn interruption(&self) -> Interruption {
        match (&self.claim.exit, self.evidence.interruption()) {
            (SessionExit::Interrupted { by }, _) => *by,
            (_, Some(by)) => by,
            (_, None) => Interruption::Crash,
        }
    }

    /// Continues with the next agent of the ladder that has no limit, or waits for the agent whose limit ends first. There is no
    /// other reviewer: its limit is waited for.
    fn after_usage_limit(&self) -> NextAction {
        if self.failed_review().is_some() {
            return NextAction::Wait(self.wait());
        }
        let limits = self.usage_limits();
        let path = self.snapshot.tree.path_to(leaf_of(&self.job.target)).unwrap_or_default();
        let leaf = path.last().map(|leaf| LeafRef::of(leaf, &self.snapshot.state));
        let choice = choose_agent(&self.snapshot.config, &limits, leaf);
        match choice.limit {
            None if self.snapshot.config.on_usage_limit == OnUsageLimit::Next => NextAction::Go,
            None => NextAction::Wait(self.wait()),
            Some(limit) => {
                let backoff = Backoff {
                    agent: limit.agent,
                    outcome: Outcome::UsageLimit,
                    resets_unix_secs: limit.resets_unix_secs,
                    ..self.backoff()
                };
                NextAction::Wait(backoff.into_wait())
            }
        }
    }

    /// The wait for the agent that failed.
    fn wait(&self) -> Wait {
        let exit = self.failing_exit();
        let retry_after_secs = match exit {
            SessionExit::Provider { fault: ProviderError::RateLimited { retry_after_secs } } => {
                *retry_after_secs
            }
            SessionExit::Provider { .. }
            | SessionExit::Finished { .. }
            | SessionExit::Killed { .. }
            | SessionExit::TimedOut
            | SessionExit::Idle
            | SessionExit::OverBudget
            | SessionExit::Interrupted { .. }
            | SessionExit::NotStarted { .. } => None,
        };
        Backoff { retry_after_secs, resets_unix_secs: exit.resets_unix_secs(), ..self.backoff() }.into_wait()
    }

    fn failing_exit(&self) -> &SessionExit {
        self.failed_review().unwrap_or(&self.claim.exit)
    }

    /// A backoff for the agent that failed, about which nothing is known but the failure itself.
    fn backoff(&self) -> Backoff {
        Backoff {
            agent: self.failing_agent(),
            outcome: self.failing_exit().without_answer(),
            failures_in_row: self.snapshot.state.transients_in_row.saturating_add(1),
            retry_after_secs: None,
            resets_unix_secs: None,
            wait_max_secs: self.snapshot.config.usage_wait_max_secs,
        }
    }
}
