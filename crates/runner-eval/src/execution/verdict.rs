//! Classifies a trial: outcome, cause and reason, from how the loop ended, what the runner reported and what the checks
//! found. Pure.

use runner_core::step::{Outcome as IterationOutcome, OutcomeClass};

use crate::result::{CheckResult, FailureCause, TrialOutcome};

/// How `runner loop` ended, seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoopEnd {
    Exited(i32),
    /// It reached the wall time limit of the case.
    TimedOut,
    /// The user stopped the evaluation.
    Stopped,
    /// By a signal that the evaluation did not send, or together with its supervisor.
    Killed(String),
    DidNotStart(String),
}

impl LoopEnd {
    pub(crate) fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(*code),
            Self::TimedOut | Self::Stopped | Self::Killed(_) | Self::DidNotStart(_) => None,
        }
    }
}

/// What the runner reported about the end of the loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunnerReport {
    /// The outcome of the last iteration.
    pub(crate) last_outcome: Option<IterationOutcome>,
    /// Why the loop stopped.
    pub(crate) why: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrialVerdict {
    pub(crate) outcome: TrialOutcome,
    pub(crate) cause: Option<FailureCause>,
    pub(crate) why: Option<String>,
}

impl TrialVerdict {
    fn new(outcome: TrialOutcome, cause: FailureCause, why: impl Into<String>) -> Self {
        Self { outcome, cause: Some(cause), why: Some(why.into()) }
    }

    /// A trial that did not start because required programs are missing.
    pub(crate) fn skipped(missing: &[&str]) -> Self {
        let why = format!("missing on this machine: {}", missing.join(", "));
        Self::new(TrialOutcome::Skipped, FailureCause::MissingTool, why)
    }

    fn error(cause: FailureCause, why: impl Into<String>) -> Self {
        Self::new(TrialOutcome::Error, cause, why)
    }
}

/// Classifies a trial whose loop ended this way.
pub(crate) fn classify(end: &LoopEnd, report: &RunnerReport, checks: &[CheckResult]) -> TrialVerdict {
    let reason = |default: &str| report.why.clone().unwrap_or_else(|| default.to_owned());
    match end {
        LoopEnd::Exited(0) => classify_completed(checks),
        LoopEnd::Exited(3) => {
            let is_guard = report.last_outcome == Some(IterationOutcome::GuardFailed);
            let cause = if is_guard { FailureCause::Guard } else { FailureCause::Agent };
            TrialVerdict::new(TrialOutcome::Stuck, cause, reason("the run was stuck"))
        }
        LoopEnd::Exited(4) => TrialVerdict::error(FailureCause::Limit, reason("a limit was reached")),
        LoopEnd::Exited(1) => {
            let cause = report.last_outcome.map_or(FailureCause::Harness, cause_of_failure);
            TrialVerdict::error(cause, reason("the runner failed"))
        }
        // The evaluation did not send this signal, so the agent or a process of it did. The trial counts.
        LoopEnd::Exited(code @ (129 | 130 | 143)) => TrialVerdict::error(
            FailureCause::Agent,
            format!("the runner exited with {code}: it was stopped, but not by the evaluation"),
        ),
        LoopEnd::Exited(code) => TrialVerdict::error(
            FailureCause::Harness,
            format!("the runner exited with {code}: {}", reason("no reason given")),
        ),
        LoopEnd::TimedOut => {
            let is_waiting = report.last_outcome.is_some_and(|outcome| {
                matches!(outcome.class(), OutcomeClass::Transient | OutcomeClass::UsageLimit)
            });
            let cause = if is_waiting { FailureCause::Provider } else { FailureCause::Limit };
            TrialVerdict::error(cause, "the wall time limit of the case was reached")
        }
        LoopEnd::Stopped => TrialVerdict::error(FailureCause::Interrupted, "the evaluation was stopped"),
        LoopEnd::Killed(exit) => {
            TrialVerdict::error(FailureCause::Agent, format!("the runner {exit}, but not by the evaluation"))
        }
        LoopEnd::DidNotStart(why) => TrialVerdict::error(FailureCause::Harness, why.clone()),
    }
}

fn classify_completed(checks: &[CheckResult]) -> TrialVerdict {
    let failed: Vec<&str> =
        checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect();
    if failed.is_empty() {
        return TrialVerdict { outcome: TrialOutcome::Success, cause: None, why: None };
    }
    let why = format!("failed checks: {}", failed.join(", "));
    TrialVerdict::new(TrialOutcome::Fail, FailureCause::Agent, why)
}

/// The cause of a failure that stopped the loop.
fn cause_of_failure(last: IterationOutcome) -> FailureCause {
    match last {
        IterationOutcome::AgentNotStarted | IterationOutcome::GuardNotStarted => FailureCause::MissingTool,
        IterationOutcome::ProviderRefused
        | IterationOutcome::NotLoggedIn
        | IterationOutcome::RateLimited
        | IterationOutcome::Overloaded
        | IterationOutcome::Disconnected
        | IterationOutcome::UsageLimit => FailureCause::Provider,
        IterationOutcome::AgentCrashed
        | IterationOutcome::NoAnswer
        | IterationOutcome::ContextFull
        | IterationOutcome::Passed
        | IterationOutcome::GuardFailed
        | IterationOutcome::Retry
        | IterationOutcome::Decomposed
        | IterationOutcome::RuleViolation
        | IterationOutcome::InvalidTree
        | IterationOutcome::Repaired
        | IterationOutcome::RepairFailed
        | IterationOutcome::RepairAbandoned
        | IterationOutcome::Replanned
        | IterationOutcome::ReplanRefused
        | IterationOutcome::TimedOut
        | IterationOutcome::IdleTimeout
        | IterationOutcome::GuardTimedOut
        | IterationOutcome::Interrupted => FailureCause::Agent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(passed: bool) -> CheckResult {
        CheckResult {
            name: "c".to_owned(),
            kind: "git_clean".to_owned(),
            hidden: false,
            passed,
            why: None,
            seconds: 0.0,
            output: None,
        }
    }

    fn verdict(
        end: &LoopEnd,
        last_outcome: Option<IterationOutcome>,
        passed: bool,
    ) -> (TrialOutcome, Option<FailureCause>) {
        let verdict = classify(end, &RunnerReport { last_outcome, why: None }, &[check(passed)]);
        assert_eq!(verdict.cause.is_none(), verdict.why.is_none());
        (verdict.outcome, verdict.cause)
    }

    #[test]
    fn outcomes_follow_the_table_of_exit_codes_and_checks() {
        for passed in [true, false] {
            let outcome = |end| verdict(&end, None, passed).0;
            assert_eq!(
                outcome(LoopEnd::Exited(0)),
                if passed { TrialOutcome::Success } else { TrialOutcome::Fail }
            );
            assert_eq!(outcome(LoopEnd::Exited(3)), TrialOutcome::Stuck);
            for end in [
                LoopEnd::Exited(1),
                LoopEnd::Exited(2),
                LoopEnd::Exited(4),
                LoopEnd::Exited(130),
                LoopEnd::TimedOut,
                LoopEnd::Stopped,
                LoopEnd::Killed("x".to_owned()),
                LoopEnd::DidNotStart("x".to_owned()),
            ] {
                assert_eq!(outcome(end), TrialOutcome::Error);
            }
        }
    }

    #[test]
    fn cause_follows_the_last_outcome() {
        let cause = |end, last_outcome| verdict(&end, last_outcome, false).1;
        assert_eq!(cause(LoopEnd::Exited(0), None), Some(FailureCause::Agent));
        assert_eq!(cause(LoopEnd::Exited(3), Some(IterationOutcome::GuardFailed)), Some(FailureCause::Guard));
        assert_eq!(cause(LoopEnd::Exited(3), Some(IterationOutcome::Retry)), Some(FailureCause::Agent));
        assert_eq!(cause(LoopEnd::Exited(4), None), Some(FailureCause::Limit));
        assert_eq!(
            cause(LoopEnd::Exited(1), Some(IterationOutcome::AgentNotStarted)),
            Some(FailureCause::MissingTool)
        );
        assert_eq!(
            cause(LoopEnd::Exited(1), Some(IterationOutcome::NotLoggedIn)),
            Some(FailureCause::Provider)
        );
        assert_eq!(cause(LoopEnd::Exited(1), Some(IterationOutcome::NoAnswer)), Some(FailureCause::Agent));
        assert_eq!(cause(LoopEnd::Exited(1), None), Some(FailureCause::Harness));
        assert_eq!(cause(LoopEnd::TimedOut, Some(IterationOutcome::Passed)), Some(FailureCause::Limit));
        assert_eq!(
            cause(LoopEnd::TimedOut, Some(IterationOutcome::Overloaded)),
            Some(FailureCause::Provider)
        );
        assert_eq!(cause(LoopEnd::Stopped, None), Some(FailureCause::Interrupted));
    }

    #[test]
    fn agent_that_kills_the_runner_is_scored() {
        for end in [LoopEnd::Exited(143), LoopEnd::Killed("was killed by signal 9".to_owned())] {
            let (_, cause) = verdict(&end, None, true);
            assert!(cause.is_some_and(FailureCause::is_scored));
        }
    }
}
