//! How iterations end and why runs stop: two lists, the same in commit messages, terminal, JSON, logs and page.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backoff::Wait;
use crate::model::cost::BudgetLimit;
use crate::model::id::NodeId;

/// How one iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Outcome {
    Passed,
    GuardFailed,
    Retry,
    Decomposed,
    RuleViolation,
    InvalidTree,
    Repaired,
    RepairFailed,
    RepairAbandoned,
    Replanned,
    ReplanRefused,
    TimedOut,
    IdleTimeout,
    GuardTimedOut,
    Interrupted,
    RateLimited,
    Overloaded,
    Disconnected,
    UsageLimit,
    AgentNotStarted,
    AgentCrashed,
    NoAnswer,
    ProviderRefused,
    GuardNotStarted,
    NotLoggedIn,
    ContextFull,
}

/// What kind of ending an outcome is; everything that follows from it alone hangs on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeClass {
    /// The agent answered and was judged.
    Answered,
    /// A limit of time ended it; the run stops and can go on.
    TimeLimit,
    /// A signal or a crash ended it; nobody's fault.
    Interrupted,
    /// Will pass by itself: wait and try again.
    Transient,
    /// Will pass at a moment that may be known: wait for it, or ask the next agent of the ladder.
    UsageLimit,
    /// Will hardly pass by itself: three in a row stop the loop.
    Failure,
    /// Will not pass by itself: the loop stops at once, and says how to mend it.
    NeedsUser,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::Passed,
        Self::GuardFailed,
        Self::Retry,
        Self::Decomposed,
        Self::RuleViolation,
        Self::InvalidTree,
        Self::Repaired,
        Self::RepairFailed,
        Self::RepairAbandoned,
        Self::Replanned,
        Self::ReplanRefused,
        Self::TimedOut,
        Self::IdleTimeout,
        Self::GuardTimedOut,
        Self::Interrupted,
        Self::RateLimited,
        Self::Overloaded,
        Self::Disconnected,
        Self::UsageLimit,
        Self::AgentNotStarted,
        Self::AgentCrashed,
        Self::NoAnswer,
        Self::ProviderRefused,
        Self::GuardNotStarted,
        Self::NotLoggedIn,
        Self::ContextFull,
    ];

    /// The one word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::GuardFailed => "guard_failed",
            Self::Retry => "retry",
            Self::Decomposed => "decomposed",
            Self::RuleViolation => "rule_violation",
            Self::InvalidTree => "invalid_tree",
            Self::Repaired => "repaired",
            Self::RepairFailed => "repair_failed",
            Self::RepairAbandoned => "repair_abandoned",
            Self::Replanned => "replanned",
            Self::ReplanRefused => "replan_refused",
            Self::TimedOut => "timed_out",
            Self::IdleTimeout => "idle_timeout",
            Self::GuardTimedOut => "guard_timed_out",
            Self::Interrupted => "interrupted",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Disconnected => "disconnected",
            Self::UsageLimit => "usage_limit",
            Self::AgentNotStarted => "agent_not_started",
            Self::AgentCrashed => "agent_crashed",
            Self::NoAnswer => "no_answer",
            Self::ProviderRefused => "provider_refused",
            Self::GuardNotStarted => "guard_not_started",
            Self::NotLoggedIn => "not_logged_in",
            Self::ContextFull => "context_full",
        }
    }

    /// The outcome that a word stands for.
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }

    /// The kind of ending it is.
    pub fn class(self) -> OutcomeClass {
        match self {
            Self::Passed
            | Self::GuardFailed
            | Self::Retry
            | Self::Decomposed
            | Self::RuleViolation
            | Self::InvalidTree
            | Self::Repaired
            | Self::RepairFailed
            | Self::RepairAbandoned
            | Self::Replanned
            | Self::ReplanRefused => OutcomeClass::Answered,
            Self::TimedOut | Self::IdleTimeout | Self::GuardTimedOut => OutcomeClass::TimeLimit,
            Self::Interrupted => OutcomeClass::Interrupted,
            Self::RateLimited | Self::Overloaded | Self::Disconnected => OutcomeClass::Transient,
            Self::UsageLimit => OutcomeClass::UsageLimit,
            Self::NotLoggedIn => OutcomeClass::NeedsUser,
            Self::AgentNotStarted
            | Self::AgentCrashed
            | Self::NoAnswer
            | Self::ProviderRefused
            | Self::ContextFull
            | Self::GuardNotStarted => OutcomeClass::Failure,
        }
    }
}

impl Outcome {
    /// What happened, for the table of failures; nothing for an agent that answered.
    fn happened(self) -> Option<&'static str> {
        Some(match self {
            Self::Passed
            | Self::GuardFailed
            | Self::Retry
            | Self::Decomposed
            | Self::RuleViolation
            | Self::InvalidTree
            | Self::Repaired
            | Self::RepairFailed
            | Self::RepairAbandoned
            | Self::Replanned
            | Self::ReplanRefused => return None,
            Self::TimedOut => "the iteration's time was over while the agent worked",
            Self::IdleTimeout => "the agent was silent for too long",
            Self::GuardTimedOut => "the iteration's time was over while the guard ran",
            Self::Interrupted => "a signal, or the runner's own death",
            Self::RateLimited => "too many requests",
            Self::Overloaded => "the provider is overloaded",
            Self::Disconnected => "no connection to the provider",
            Self::UsageLimit => "the plan's allowance is used up",
            Self::AgentNotStarted => "the agent's program is missing or does not start",
            Self::AgentCrashed => "a signal ended the agent",
            Self::NoAnswer => "no answer, or one that breaks the schema",
            Self::ProviderRefused => "the provider will not serve this: account, model, request",
            Self::GuardNotStarted => "the guard's program is missing or does not start",
            Self::NotLoggedIn => "the agent has no key or login that its provider takes",
            Self::ContextFull => "the session filled the model's context",
        })
    }

    /// The failures and what each means, as Markdown.
    pub fn failure_table() -> String {
        let mut table =
            String::from("| outcome | what happened | what follows | exit |\n| --- | --- | --- | --- |\n");
        for outcome in Self::ALL {
            let Some(happened) = outcome.happened() else { continue };
            let (follows, exit) = outcome.class().follows();
            table.push_str(&format!("| `{outcome}` | {happened} | {follows} | {exit} |\n"));
        }
        table
    }
}

impl OutcomeClass {
    /// What follows, in words, and the exit code where the loop stops.
    fn follows(self) -> (&'static str, &'static str) {
        match self {
            Self::Answered => ("the answer decides", ""),
            Self::TimeLimit => ("what there is is committed, the run stops; `runner loop` goes on", "4"),
            Self::Interrupted => {
                ("what there is is committed; after a crash the next command goes on", "130, 143, 129")
            }
            Self::Transient => (
                "wait and try again: 5 s, then twice as long each time up to 300 s, or as long as the provider asks for (at most an hour)",
                "none",
            ),
            Self::UsageLimit => (
                "wait until the reset that the agent names (without one: a minute, then twice as long each time up to an hour), or ask the next agent (`on_usage_limit`)",
                "none",
            ),
            Self::Failure => ("try again at once; three in a row stop the loop", "1"),
            Self::NeedsUser => ("the loop stops at once: only you can mend it", "1"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who or what broke a session off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// Ctrl-C.
    Int,
    /// SIGTERM.
    Term,
    /// SIGHUP: the terminal is gone.
    Hup,
    /// The runner died; recovery found the session unfinished.
    Crash,
}

/// Why a run stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// The root passes.
    Complete,
    /// The next leaf has no attempts left.
    Stuck {
        /// The leaf.
        node: NodeId,
    },
    /// The run has made as many iterations as the configuration allows.
    MaxIterations {
        /// `max_iterations`.
        max: u32,
    },
    /// This invocation has made as many iterations as it was asked for.
    LoopIterations {
        /// `--max-iterations`.
        max: u32,
    },
    /// A limit of the budget is reached.
    Budget {
        /// Which one.
        limit: BudgetLimit,
        /// The leaf, where it is a limit of one.
        node: Option<NodeId>,
        /// What was spent, in tokens or millionths of a dollar.
        spent: u64,
        /// What the budget allows.
        max: u64,
    },
    /// An iteration ran out of time: the agent, its silence, or the guard.
    TimeLimit {
        /// Which of them.
        outcome: Outcome,
    },
    /// So many failures in a row that waiting will not help.
    Failures {
        /// How the last one failed.
        outcome: Outcome,
        /// How many there were.
        in_row: u32,
    },
    /// A failure that only the user can mend.
    NeedsUser {
        /// Which one.
        outcome: Outcome,
    },
    /// A signal.
    Interrupted {
        /// Which one.
        by: Interruption,
    },
    /// The user asked to stop after the running iteration.
    UserStop,
    /// A reason that only a newer runner knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl StopReason {
    /// The one word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stuck { .. } => "stuck",
            Self::MaxIterations { .. } => "max_iterations",
            Self::LoopIterations { .. } => "loop_iterations",
            Self::Budget { .. } => "budget",
            Self::TimeLimit { .. } => "time_limit",
            Self::Failures { .. } => "failures",
            Self::NeedsUser { .. } => "needs_user",
            Self::Interrupted { .. } => "interrupted",
            Self::UserStop => "user_stop",
            Self::Unknown => "unknown",
        }
    }

    /// The program's exit code for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failures { .. }
            | Self::NeedsUser { .. }
            | Self::Interrupted { by: Interruption::Crash }
            | Self::Unknown => 1,
            Self::Stuck { .. } => 3,
            Self::MaxIterations { .. }
            | Self::LoopIterations { .. }
            | Self::Budget { .. }
            | Self::TimeLimit { .. } => 4,
            Self::Interrupted { by: Interruption::Hup } => 129,
            Self::Interrupted { by: Interruption::Int } | Self::UserStop => 130,
            Self::Interrupted { by: Interruption::Term } => 143,
        }
    }
}

/// What follows an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "then", rename_all = "snake_case")]
pub enum NextAction {
    /// The next iteration.
    Go,
    /// The next iteration, after a wait.
    Wait(Wait),
    /// The end.
    Stop(StopReason),
    /// An action that only a newer runner knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_listed_once_under_its_word() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::from_name(outcome.as_str()), Some(outcome));
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
        let mut sorted = Outcome::ALL;
        sorted.sort_unstable();
        assert_eq!(sorted, Outcome::ALL, "in the order of the type");
        assert_eq!(Outcome::from_name("fine"), None);
    }

    #[test]
    fn every_stop_has_the_exit_code_of_the_contract() {
        let node = NodeId::root();
        for (stop, code) in [
            (StopReason::Complete, 0),
            (StopReason::Stuck { node }, 3),
            (StopReason::MaxIterations { max: 1 }, 4),
            (StopReason::LoopIterations { max: 1 }, 4),
            (StopReason::Budget { limit: BudgetLimit::RunUsd, node: None, spent: 2, max: 1 }, 4),
            (StopReason::TimeLimit { outcome: Outcome::IdleTimeout }, 4),
            (StopReason::Failures { outcome: Outcome::NoAnswer, in_row: 3 }, 1),
            (StopReason::NeedsUser { outcome: Outcome::NotLoggedIn }, 1),
            (StopReason::Interrupted { by: Interruption::Int }, 130),
            (StopReason::Interrupted { by: Interruption::Term }, 143),
            (StopReason::Interrupted { by: Interruption::Hup }, 129),
            (StopReason::UserStop, 130),
        ] {
            assert_eq!(stop.exit_code(), code, "{stop:?}");
            assert_eq!(serde_json::to_value(&stop).unwrap()["reason"], stop.as_str());
        }
    }

    #[test]
    fn the_documented_failures_are_those_that_there_are() {
        let page = include_str!("../../../../docs/reference/failures.md");
        let (_, table) = page.rsplit_once("\n\n").unwrap();
        assert_eq!(Outcome::failure_table(), table);
    }

    #[test]
    fn every_failure_is_told_with_the_exit_code_of_its_stop() {
        let table = Outcome::failure_table();
        let mut rows = table.lines().skip(2).map(|row| row.trim_matches(['|', ' ']).split(" | "));
        for outcome in Outcome::ALL {
            let stops = match outcome.class() {
                OutcomeClass::Answered => continue,
                OutcomeClass::TimeLimit => vec![StopReason::TimeLimit { outcome }],
                OutcomeClass::Interrupted => [Interruption::Int, Interruption::Term, Interruption::Hup]
                    .map(|by| StopReason::Interrupted { by })
                    .to_vec(),
                OutcomeClass::Transient | OutcomeClass::UsageLimit => Vec::new(),
                OutcomeClass::Failure => vec![StopReason::Failures { outcome, in_row: 3 }],
                OutcomeClass::NeedsUser => vec![StopReason::NeedsUser { outcome }],
            };
            let codes: Vec<String> = stops.iter().map(|stop| stop.exit_code().to_string()).collect();
            let codes = if codes.is_empty() { "none".to_owned() } else { codes.join(", ") };
            let mut row = rows.next().unwrap();
            assert_eq!((row.next(), row.last()), (Some(&*format!("`{outcome}`")), Some(&*codes)));
        }
        assert_eq!(rows.count(), 0, "an answer is no failure");
    }
}
