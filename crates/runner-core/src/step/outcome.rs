//! How iterations end and why runs stop: two lists, the same in commit messages, terminal, JSON, logs and page.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::NodeId;

/// How one iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Outcome {
    Passed,
    GuardFailed,
    Retry,
    Decomposed,
    RuleBroken,
    InvalidTree,
    Repaired,
    RepairFailed,
    RepairGivenUp,
    Replanned,
    ReplanRefused,
    TimedOut,
    Idle,
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
pub enum Nature {
    /// The agent answered and was judged.
    Answered,
    /// A limit of time ended it; the run stops and can go on.
    Cut,
    /// A signal or a crash ended it; nobody's fault.
    Interrupted,
    /// Will pass by itself: wait and try again.
    Transient,
    /// Will pass at a moment that may be known: wait for it, or ask the next agent of the ladder.
    UsedUp,
    /// Will hardly pass by itself: three in a row stop the loop.
    Failure,
    /// Will not pass by itself: the loop stops at once, and says how to mend it.
    Barred,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::Passed,
        Self::GuardFailed,
        Self::Retry,
        Self::Decomposed,
        Self::RuleBroken,
        Self::InvalidTree,
        Self::Repaired,
        Self::RepairFailed,
        Self::RepairGivenUp,
        Self::Replanned,
        Self::ReplanRefused,
        Self::TimedOut,
        Self::Idle,
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
            Self::RuleBroken => "rule_broken",
            Self::InvalidTree => "invalid_tree",
            Self::Repaired => "repaired",
            Self::RepairFailed => "repair_failed",
            Self::RepairGivenUp => "repair_given_up",
            Self::Replanned => "replanned",
            Self::ReplanRefused => "replan_refused",
            Self::TimedOut => "timed_out",
            Self::Idle => "idle",
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
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }

    /// The kind of ending it is.
    pub fn nature(self) -> Nature {
        match self {
            Self::Passed
            | Self::GuardFailed
            | Self::Retry
            | Self::Decomposed
            | Self::RuleBroken
            | Self::InvalidTree
            | Self::Repaired
            | Self::RepairFailed
            | Self::RepairGivenUp
            | Self::Replanned
            | Self::ReplanRefused => Nature::Answered,
            Self::TimedOut | Self::Idle | Self::GuardTimedOut => Nature::Cut,
            Self::Interrupted => Nature::Interrupted,
            Self::RateLimited | Self::Overloaded | Self::Disconnected => Nature::Transient,
            Self::UsageLimit => Nature::UsedUp,
            Self::NotLoggedIn => Nature::Barred,
            Self::AgentNotStarted
            | Self::AgentCrashed
            | Self::NoAnswer
            | Self::ProviderRefused
            | Self::ContextFull
            | Self::GuardNotStarted => Nature::Failure,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who or what broke a session off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Stop {
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
    /// An iteration ran out of time: the agent, its silence, or the guard.
    Time {
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
    Barred {
        /// Which one.
        outcome: Outcome,
    },
    /// A signal.
    Interrupted {
        /// Which one.
        by: Interruption,
    },
    /// The user asked to stop after the running iteration.
    Asked,
}

impl Stop {
    /// The one word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stuck { .. } => "stuck",
            Self::MaxIterations { .. } => "max_iterations",
            Self::LoopIterations { .. } => "loop_iterations",
            Self::Time { .. } => "time",
            Self::Failures { .. } => "failures",
            Self::Barred { .. } => "barred",
            Self::Interrupted { .. } => "interrupted",
            Self::Asked => "asked",
        }
    }

    /// The program's exit code for it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failures { .. } | Self::Barred { .. } | Self::Interrupted { by: Interruption::Crash } => 1,
            Self::Stuck { .. } => 3,
            Self::MaxIterations { .. } | Self::LoopIterations { .. } | Self::Time { .. } => 4,
            Self::Interrupted { by: Interruption::Hup } => 129,
            Self::Interrupted { by: Interruption::Int } | Self::Asked => 130,
            Self::Interrupted { by: Interruption::Term } => 143,
        }
    }
}

/// How long to wait before the next iteration. Both hold: the later one decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// At least this long.
    pub secs: u32,
    /// Not before this moment, in seconds since 1970, if the provider named one.
    pub until_unix_secs: Option<u64>,
}

/// The shortest wait after something transient.
const WAIT_SECS_MIN: u32 = 5;
/// The longest wait that the runner chooses by itself.
const WAIT_SECS_MAX: u32 = 300;
/// The longest wait that a provider can ask for without naming a moment.
const WAIT_SECS_ASKED_MAX: u32 = 3600;

impl Wait {
    /// The wait after the `nth` transient failure in a row: 5 seconds, then twice as long each time, up to 300.
    pub fn after(nth: u32, asked_secs: Option<u32>, until_unix_secs: Option<u64>) -> Self {
        let doubled = WAIT_SECS_MIN.saturating_mul(2_u32.saturating_pow(nth.saturating_sub(1)));
        let asked = asked_secs.unwrap_or_default().min(WAIT_SECS_ASKED_MAX);
        Self { secs: doubled.min(WAIT_SECS_MAX).max(asked), until_unix_secs }
    }
}

/// What follows an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "then", rename_all = "snake_case")]
pub enum Next {
    /// The next iteration.
    Go,
    /// The next iteration, after a wait.
    Wait(Wait),
    /// The end.
    Stop(Stop),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_listed_once_under_its_word() {
        for outcome in Outcome::ALL {
            assert_eq!(Outcome::of_word(outcome.as_str()), Some(outcome));
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
        let mut sorted = Outcome::ALL;
        sorted.sort_unstable();
        assert_eq!(sorted, Outcome::ALL, "in the order of the type");
        assert_eq!(Outcome::of_word("fine"), None);
    }

    #[test]
    fn every_stop_has_the_exit_code_of_the_contract() {
        let node = NodeId::root();
        for (stop, code) in [
            (Stop::Complete, 0),
            (Stop::Stuck { node }, 3),
            (Stop::MaxIterations { max: 1 }, 4),
            (Stop::LoopIterations { max: 1 }, 4),
            (Stop::Time { outcome: Outcome::Idle }, 4),
            (Stop::Failures { outcome: Outcome::NoAnswer, in_row: 3 }, 1),
            (Stop::Barred { outcome: Outcome::NotLoggedIn }, 1),
            (Stop::Interrupted { by: Interruption::Int }, 130),
            (Stop::Interrupted { by: Interruption::Term }, 143),
            (Stop::Interrupted { by: Interruption::Hup }, 129),
            (Stop::Asked, 130),
        ] {
            assert_eq!(stop.exit_code(), code, "{stop:?}");
            assert_eq!(serde_json::to_value(&stop).unwrap()["reason"], stop.as_str());
        }
    }

    #[test]
    fn waits_grow_and_stay_bounded() {
        let secs = |nth| Wait::after(nth, None, None).secs;
        assert_eq!((1..9).map(secs).collect::<Vec<_>>(), [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(secs(u32::MAX), 300);
        assert_eq!(Wait::after(1, Some(60), None).secs, 60);
        assert_eq!(Wait::after(1, Some(u32::MAX), None).secs, 3600);
        assert_eq!(Wait::after(1, None, Some(7)).until_unix_secs, Some(7));
    }
}
