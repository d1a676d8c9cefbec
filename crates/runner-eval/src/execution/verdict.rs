//! Classifies a trial: outcome, cause and reason, from how the loop ended, what the runner reported and what the checks
//! found. Pure.
//!
//! Once a session has begun, only three things keep a trial out of the scores: the user stopped the evaluation, the
//! provider's side confirms that it failed, or the grader is broken. Anything else would be a way out for an agent that
//! is about to fail.

use std::io;

use runner_core::step::{Outcome as IterationOutcome, OutcomeClass};

use crate::execution::loop_log::LoopProgress;
use crate::result::{CheckResult, FailureCause, TrialOutcome};

/// How `runner loop` ended, seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoopEnd {
    Exited(i32),
    /// It reached the wall time limit of the case.
    TimedOut,
    /// It used more memory, processes or disk than the case allows.
    Exceeded(String),
    /// The user stopped the evaluation.
    Stopped,
    /// By a signal that the evaluation did not send, or together with its supervisor or its worker.
    Killed(String),
    /// A program that the loop needs is missing on this machine.
    MissingTool(String),
    DidNotStart(String),
}

impl LoopEnd {
    pub(crate) fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(*code),
            Self::TimedOut
            | Self::Exceeded(_)
            | Self::Stopped
            | Self::Killed(_)
            | Self::MissingTool(_)
            | Self::DidNotStart(_) => None,
        }
    }

    /// Whether there is work of an agent to keep and to check.
    pub(crate) fn leaves_work(&self) -> bool {
        match self {
            Self::Exited(_) | Self::TimedOut | Self::Killed(_) => true,
            Self::Exceeded(_) | Self::Stopped | Self::MissingTool(_) | Self::DidNotStart(_) => false,
        }
    }
}

/// What the runner reported about the end of the loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunnerReport {
    pub(crate) progress: LoopProgress,
    /// Why the loop stopped.
    pub(crate) why: Option<String>,
    /// Whether a failure of the provider is known from a source that the agent's code cannot write.
    pub(crate) is_provider_failure_confirmed: bool,
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
    let last = report.progress.outcomes.last().copied();
    match end {
        LoopEnd::Exited(0) => classify_completed(checks),
        LoopEnd::Exited(3) => {
            let is_guard = last == Some(IterationOutcome::GuardFailed);
            let cause = if is_guard { FailureCause::Guard } else { FailureCause::Agent };
            TrialVerdict::new(TrialOutcome::Stuck, cause, reason("the run was stuck"))
        }
        LoopEnd::Exited(4) => TrialVerdict::error(FailureCause::Limit, reason("a limit was reached")),
        LoopEnd::Exited(1) => classify_failed_loop(report, &reason("the runner failed")),
        // The evaluation did not send this signal, so the agent or a process of it did. The trial counts.
        LoopEnd::Exited(code @ (129 | 130 | 143)) => TrialVerdict::error(
            FailureCause::Agent,
            format!("the runner exited with {code}: it was stopped, but not by the evaluation"),
        ),
        LoopEnd::Exited(code) => {
            let why = format!("the runner exited with {code}: {}", reason("no reason given"));
            TrialVerdict::error(cause_of_error(&report.progress), why)
        }
        LoopEnd::TimedOut => {
            let is_waiting = last.is_some_and(|outcome| {
                matches!(outcome.class(), OutcomeClass::Transient | OutcomeClass::UsageLimit)
            });
            let is_provider = is_waiting && report.is_provider_failure_confirmed;
            let cause = if is_provider { FailureCause::Provider } else { FailureCause::Limit };
            TrialVerdict::error(cause, "the wall time limit of the case was reached")
        }
        LoopEnd::Exceeded(what) => {
            TrialVerdict::error(FailureCause::Limit, format!("quota exceeded: {what}"))
        }
        LoopEnd::Stopped => TrialVerdict::error(FailureCause::Interrupted, "the evaluation was stopped"),
        LoopEnd::Killed(exit) => {
            TrialVerdict::error(FailureCause::Agent, format!("{exit}, but not by the evaluation"))
        }
        LoopEnd::MissingTool(why) => TrialVerdict::error(FailureCause::MissingTool, why.clone()),
        LoopEnd::DidNotStart(why) => TrialVerdict::error(FailureCause::Harness, why.clone()),
    }
}

/// Classifies a trial whose work could not be kept or checked. Agents decide what they leave, so after the first session it
/// counts.
pub(crate) fn classify_lost_work(report: &RunnerReport, error: &io::Error) -> TrialVerdict {
    let cause = if report.progress.has_session { FailureCause::Limit } else { FailureCause::Harness };
    TrialVerdict::error(cause, format!("could not keep or check what the run left: {error}"))
}

fn classify_completed(checks: &[CheckResult]) -> TrialVerdict {
    let names = |checks: Vec<&CheckResult>| {
        checks.iter().map(|check| check.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let sprung: Vec<&CheckResult> = checks.iter().filter(|check| check.trap && check.passed).collect();
    if !sprung.is_empty() {
        let why = format!("the work cheated: {}", names(sprung));
        return TrialVerdict::new(TrialOutcome::Fail, FailureCause::Agent, why);
    }
    let failed: Vec<&CheckResult> =
        checks.iter().filter(|check| !check.trap && !check.passed && !check.grader_fault).collect();
    if !failed.is_empty() {
        let why = format!("failed checks: {}", names(failed));
        return TrialVerdict::new(TrialOutcome::Fail, FailureCause::Agent, why);
    }
    let broken: Vec<&CheckResult> = checks.iter().filter(|check| check.grader_fault).collect();
    if !broken.is_empty() {
        let why = format!("broken checks: {}", names(broken));
        return TrialVerdict::error(FailureCause::Grader, why);
    }
    TrialVerdict { outcome: TrialOutcome::Success, cause: None, why: None }
}

/// The verdict about a loop that a failure stopped.
fn classify_failed_loop(report: &RunnerReport, why: &str) -> TrialVerdict {
    let progress = &report.progress;
    let Some(last) = progress.outcomes.last().copied() else {
        return TrialVerdict::error(cause_of_error(progress), why);
    };
    let cause = match last {
        IterationOutcome::ProviderRefused
        | IterationOutcome::NotLoggedIn
        | IterationOutcome::RateLimited
        | IterationOutcome::Overloaded
        | IterationOutcome::Disconnected
        | IterationOutcome::UsageLimit => {
            if !report.is_provider_failure_confirmed {
                let why =
                    format!("the agent reports a failure of its provider, which is not confirmed: {why}");
                return TrialVerdict::error(FailureCause::Agent, why);
            }
            FailureCause::Provider
        }
        // The programs of guard and agents existed when the trial started; see `Workspace::missing_program`.
        IterationOutcome::GuardNotStarted
        | IterationOutcome::AgentNotStarted
        | IterationOutcome::AgentCrashed
        | IterationOutcome::NoAnswer
        | IterationOutcome::ContextFull
        | IterationOutcome::Unconfirmed
        | IterationOutcome::ChecksFailed
        | IterationOutcome::ReviewRefused
        | IterationOutcome::ReviewFailed
        | IterationOutcome::GuardFailed
        | IterationOutcome::Retry
        | IterationOutcome::RuleViolation
        | IterationOutcome::InvalidTree
        | IterationOutcome::RepairFailed
        | IterationOutcome::RepairAbandoned
        | IterationOutcome::ReplanRefused
        | IterationOutcome::SplitRefused
        | IterationOutcome::Planned
        | IterationOutcome::PlanQuestions
        | IterationOutcome::PlanRejected
        | IterationOutcome::TimedOut
        | IterationOutcome::IdleTimeout
        | IterationOutcome::GuardTimedOut
        | IterationOutcome::OverBudget
        | IterationOutcome::Interrupted => FailureCause::Agent,
        IterationOutcome::Passed
        | IterationOutcome::Decomposed
        | IterationOutcome::Repaired
        | IterationOutcome::Replanned => FailureCause::Runner,
    };
    TrialVerdict::error(cause, why)
}

/// Whether an outcome is a reported failure of the provider.
pub(crate) fn is_provider_failure(outcome: IterationOutcome) -> bool {
    matches!(
        outcome,
        IterationOutcome::ProviderRefused
            | IterationOutcome::NotLoggedIn
            | IterationOutcome::RateLimited
            | IterationOutcome::Overloaded
            | IterationOutcome::Disconnected
            | IterationOutcome::UsageLimit
    )
}

/// The cause of an error of the runner itself. Before the first session, no code of the agent has run.
fn cause_of_error(progress: &LoopProgress) -> FailureCause {
    if progress.has_session { FailureCause::Runner } else { FailureCause::Harness }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(passed: bool) -> CheckResult {
        CheckResult {
            name: "c".to_owned(),
            kind: "git_clean".to_owned(),
            hidden: false,
            trap: false,
            passed,
            grader_fault: false,
            why: None,
            seconds: 0.0,
            output: None,
        }
    }

    fn report(outcomes: &[IterationOutcome], is_provider_failure_confirmed: bool) -> RunnerReport {
        let progress = LoopProgress {
            has_session: !outcomes.is_empty(),
            outcomes: outcomes.to_vec(),
            ..LoopProgress::default()
        };
        RunnerReport { progress, why: None, is_provider_failure_confirmed }
    }

    fn verdict(
        end: &LoopEnd,
        last_outcome: Option<IterationOutcome>,
        passed: bool,
    ) -> (TrialOutcome, Option<FailureCause>) {
        let outcomes: Vec<IterationOutcome> = last_outcome.into_iter().collect();
        let verdict = classify(end, &report(&outcomes, false), &[check(passed)]);
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
                LoopEnd::Exceeded("x".to_owned()),
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
            Some(FailureCause::Agent)
        );
        assert_eq!(cause(LoopEnd::Exited(1), Some(IterationOutcome::NoAnswer)), Some(FailureCause::Agent));
        assert_eq!(cause(LoopEnd::Exited(1), None), Some(FailureCause::Harness));
        assert_eq!(cause(LoopEnd::TimedOut, Some(IterationOutcome::Passed)), Some(FailureCause::Limit));
        assert_eq!(cause(LoopEnd::Stopped, None), Some(FailureCause::Interrupted));
    }

    #[test]
    fn only_a_confirmed_failure_of_the_provider_excuses_a_trial() {
        for outcome in [
            IterationOutcome::ProviderRefused,
            IterationOutcome::NotLoggedIn,
            IterationOutcome::RateLimited,
            IterationOutcome::Overloaded,
            IterationOutcome::Disconnected,
            IterationOutcome::UsageLimit,
        ] {
            for end in [LoopEnd::Exited(1), LoopEnd::TimedOut] {
                let cause = |is_confirmed| classify(&end, &report(&[outcome], is_confirmed), &[]).cause;
                assert!(cause(false).is_some_and(FailureCause::is_scored), "{outcome:?} {end:?}");
            }
        }
        let confirmed = classify(&LoopEnd::Exited(1), &report(&[IterationOutcome::NotLoggedIn], true), &[]);
        assert_eq!(confirmed.cause, Some(FailureCause::Provider));
        let waiting = classify(&LoopEnd::TimedOut, &report(&[IterationOutcome::Overloaded], true), &[]);
        assert_eq!(waiting.cause, Some(FailureCause::Provider));
    }

    #[test]
    fn no_end_after_the_first_session_is_unscored_unless_the_provider_or_the_user_caused_it() {
        for outcome in [
            IterationOutcome::Passed,
            IterationOutcome::GuardNotStarted,
            IterationOutcome::AgentCrashed,
            IterationOutcome::Interrupted,
        ] {
            for code in [1, 2, 3, 4, 101, 126, 127, 129, 130, 134, 137, 139, 143] {
                let verdict = classify(
                    &LoopEnd::Exited(code),
                    &report(&[IterationOutcome::Passed, outcome], false),
                    &[],
                );
                assert!(verdict.cause.is_some_and(FailureCause::is_scored), "{code} {outcome:?}");
            }
        }
        let removed = report(&[IterationOutcome::AgentNotStarted], false);
        assert_eq!(classify(&LoopEnd::Exited(1), &removed, &[]).cause, Some(FailureCause::Agent));
    }

    #[test]
    fn work_that_cannot_be_kept_is_scored_after_the_first_session() {
        let error = || io::Error::from(io::ErrorKind::StorageFull);
        let begun = report(&[IterationOutcome::Passed], false);
        assert_eq!(classify_lost_work(&begun, &error()).cause, Some(FailureCause::Limit));
        let unbegun = RunnerReport::default();
        assert_eq!(classify_lost_work(&unbegun, &error()).cause, Some(FailureCause::Harness));
    }

    #[test]
    fn broken_check_is_not_the_agents_failure_but_a_failed_one_is() {
        let broken = CheckResult { grader_fault: true, ..check(false) };
        let end = LoopEnd::Exited(0);
        let verdict = classify(&end, &RunnerReport::default(), &[check(true), broken.clone()]);
        assert_eq!((verdict.outcome, verdict.cause), (TrialOutcome::Error, Some(FailureCause::Grader)));
        let verdict = classify(&end, &RunnerReport::default(), &[check(false), broken]);
        assert_eq!(verdict.cause, Some(FailureCause::Agent));
    }

    #[test]
    fn trap_fails_the_trial_if_it_passes_and_decides_nothing_otherwise() {
        let verdict = |passed| {
            let trap = CheckResult { trap: true, ..check(passed) };
            classify(&LoopEnd::Exited(0), &RunnerReport::default(), &[check(true), trap])
        };
        let sprung = verdict(true);
        assert_eq!((sprung.outcome, sprung.cause), (TrialOutcome::Fail, Some(FailureCause::Agent)));
        assert_eq!(verdict(false).outcome, TrialOutcome::Success);
    }

    #[test]
    fn agent_that_kills_the_runner_is_scored() {
        for end in [LoopEnd::Exited(143), LoopEnd::Killed("was killed by signal 9".to_owned())] {
            let (_, cause) = verdict(&end, None, true);
            assert!(cause.is_some_and(FailureCause::is_scored));
        }
    }
}
