//! How a trial ended and why, from what is known about it. Decides; touches nothing.

use runner_core::step::{Outcome as Ending, OutcomeClass};

use crate::result::{CheckResult, FailureCause, TrialOutcome};

/// How `runner loop` ended, as the evaluation saw it from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoopEnd {
    /// By itself, with this code.
    Exited(i32),
    /// The case's wall limit was over.
    OutOfTime,
    /// The evaluation was asked to stop.
    Stopped,
    /// By a signal that the evaluation did not send, or with its supervisor.
    Killed(String),
    /// It never began, for this reason.
    NeverBegan(String),
}

/// What the runner itself said about its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunnerReport {
    /// How the last iteration ended.
    pub(crate) last: Option<Ending>,
    /// Why the loop stopped, in its own words.
    pub(crate) why: Option<String>,
}

/// The verdict.
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

    /// A trial that was not made because something is not there.
    pub(crate) fn skipped(missing: &[&str]) -> Self {
        Self::new(
            TrialOutcome::Skipped,
            FailureCause::MissingTool,
            format!("not on this machine: {}", missing.join(", ")),
        )
    }

    /// A trial that the evaluation itself spoiled.
    pub(crate) fn harness(why: impl Into<String>) -> Self {
        Self::new(TrialOutcome::Error, FailureCause::Harness, why)
    }
}

/// The verdict on a loop that ended this way.
pub(crate) fn judge(end: &LoopEnd, told: &RunnerReport, checks: &[CheckResult]) -> TrialVerdict {
    let why = |otherwise: &str| told.why.clone().unwrap_or_else(|| otherwise.to_owned());
    match end {
        LoopEnd::Exited(0) => completed(checks),
        LoopEnd::Exited(3) => {
            let cause = if told.last == Some(Ending::GuardFailed) {
                FailureCause::Guard
            } else {
                FailureCause::Agent
            };
            TrialVerdict::new(TrialOutcome::Stuck, cause, why("the runner was stuck"))
        }
        LoopEnd::Exited(4) => {
            TrialVerdict::new(TrialOutcome::Error, FailureCause::Limit, why("a limit was reached"))
        }
        LoopEnd::Exited(1) => TrialVerdict::new(
            TrialOutcome::Error,
            told.last.map_or(FailureCause::Harness, cause_of_failure),
            why("the runner failed"),
        ),
        // Nobody here asked it to stop, so whatever did was started by it: no way out of being counted.
        LoopEnd::Exited(code @ (129 | 130 | 143)) => TrialVerdict::new(
            TrialOutcome::Error,
            FailureCause::Agent,
            format!("something other than the evaluation stopped the runner, which ended with {code}"),
        ),
        LoopEnd::Exited(code) => TrialVerdict::new(
            TrialOutcome::Error,
            FailureCause::Harness,
            format!("the runner ended with {code}: {}", why("no reason given")),
        ),
        LoopEnd::OutOfTime => {
            let waits =
                |last: Ending| matches!(last.class(), OutcomeClass::Transient | OutcomeClass::UsageLimit);
            let cause =
                if told.last.is_some_and(waits) { FailureCause::Provider } else { FailureCause::Limit };
            TrialVerdict::new(TrialOutcome::Error, cause, "the case's wall limit was reached")
        }
        LoopEnd::Stopped => {
            TrialVerdict::new(TrialOutcome::Error, FailureCause::Interrupted, "the evaluation was stopped")
        }
        LoopEnd::Killed(how) => TrialVerdict::new(
            TrialOutcome::Error,
            FailureCause::Agent,
            format!("the runner {how}, and the evaluation did not do that"),
        ),
        LoopEnd::NeverBegan(reason) => TrialVerdict::harness(reason.clone()),
    }
}

fn completed(checks: &[CheckResult]) -> TrialVerdict {
    let failed: Vec<&str> =
        checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect();
    if failed.is_empty() {
        return TrialVerdict { outcome: TrialOutcome::Success, cause: None, why: None };
    }
    TrialVerdict::new(
        TrialOutcome::Fail,
        FailureCause::Agent,
        format!("checks that do not pass: {}", failed.join(", ")),
    )
}

/// Whose doing a failure is that stopped the loop.
fn cause_of_failure(last: Ending) -> FailureCause {
    match last {
        Ending::AgentNotStarted | Ending::GuardNotStarted => FailureCause::MissingTool,
        Ending::ProviderRefused
        | Ending::NotLoggedIn
        | Ending::RateLimited
        | Ending::Overloaded
        | Ending::Disconnected
        | Ending::UsageLimit => FailureCause::Provider,
        Ending::AgentCrashed
        | Ending::NoAnswer
        | Ending::ContextFull
        | Ending::Passed
        | Ending::GuardFailed
        | Ending::Retry
        | Ending::Decomposed
        | Ending::RuleViolation
        | Ending::InvalidTree
        | Ending::Repaired
        | Ending::RepairFailed
        | Ending::RepairAbandoned
        | Ending::Replanned
        | Ending::ReplanRefused
        | Ending::TimedOut
        | Ending::IdleTimeout
        | Ending::GuardTimedOut
        | Ending::Interrupted => FailureCause::Agent,
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

    fn verdict(end: &LoopEnd, last: Option<Ending>, passed: bool) -> (TrialOutcome, Option<FailureCause>) {
        let verdict = judge(end, &RunnerReport { last, why: None }, &[check(passed)]);
        assert_eq!(verdict.cause.is_none(), verdict.why.is_none());
        (verdict.outcome, verdict.cause)
    }

    #[test]
    fn the_table_of_the_contract_holds() {
        for passed in [true, false] {
            let at = |end| verdict(&end, None, passed).0;
            assert_eq!(
                at(LoopEnd::Exited(0)),
                if passed { TrialOutcome::Success } else { TrialOutcome::Fail }
            );
            assert_eq!(at(LoopEnd::Exited(3)), TrialOutcome::Stuck);
            for end in [
                LoopEnd::Exited(1),
                LoopEnd::Exited(2),
                LoopEnd::Exited(4),
                LoopEnd::Exited(130),
                LoopEnd::OutOfTime,
                LoopEnd::Stopped,
                LoopEnd::Killed("x".to_owned()),
                LoopEnd::NeverBegan("x".to_owned()),
            ] {
                assert_eq!(at(end), TrialOutcome::Error);
            }
        }
    }

    #[test]
    fn a_cause_names_whose_doing_it_was() {
        let cause = |end, last| verdict(&end, last, false).1;
        assert_eq!(cause(LoopEnd::Exited(0), None), Some(FailureCause::Agent));
        assert_eq!(cause(LoopEnd::Exited(3), Some(Ending::GuardFailed)), Some(FailureCause::Guard));
        assert_eq!(cause(LoopEnd::Exited(3), Some(Ending::Retry)), Some(FailureCause::Agent));
        assert_eq!(cause(LoopEnd::Exited(4), None), Some(FailureCause::Limit));
        assert_eq!(cause(LoopEnd::Exited(1), Some(Ending::AgentNotStarted)), Some(FailureCause::MissingTool));
        assert_eq!(cause(LoopEnd::Exited(1), Some(Ending::NotLoggedIn)), Some(FailureCause::Provider));
        assert_eq!(cause(LoopEnd::Exited(1), Some(Ending::NoAnswer)), Some(FailureCause::Agent));
        assert_eq!(cause(LoopEnd::Exited(1), None), Some(FailureCause::Harness));
        assert_eq!(cause(LoopEnd::OutOfTime, Some(Ending::Passed)), Some(FailureCause::Limit));
        assert_eq!(cause(LoopEnd::OutOfTime, Some(Ending::Overloaded)), Some(FailureCause::Provider));
        assert_eq!(cause(LoopEnd::Stopped, None), Some(FailureCause::Interrupted));
    }

    #[test]
    fn an_agent_that_ends_the_runner_is_counted_all_the_same() {
        for end in [LoopEnd::Exited(143), LoopEnd::Killed("was killed by signal 9".to_owned())] {
            let (_, cause) = verdict(&end, None, true);
            assert!(cause.is_some_and(FailureCause::is_scored));
        }
    }
}
