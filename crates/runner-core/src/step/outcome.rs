//! Outcomes of iterations and stop reasons of runs: two lists, the same in commit messages, terminal, JSON, logs and page.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backoff::Wait;
use crate::model::checks::CheckName;
use crate::model::cost::BudgetLimit;
use crate::model::id::{IterationNumber, NodeId};

/// How one iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Outcome {
    Passed,
    Unconfirmed,
    ChecksFailed,
    GuardFailed,
    ReviewRefused,
    Retry,
    Decomposed,
    RuleViolation,
    InvalidTree,
    Repaired,
    RepairFailed,
    RepairAbandoned,
    Replanned,
    ReplanRefused,
    SplitRefused,
    /// A planning session wrote the plan.
    Planned,
    /// A planning session has questions that the user must answer first.
    PlanQuestions,
    PlanRejected,
    TimedOut,
    IdleTimeout,
    GuardTimedOut,
    OverBudget,
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
    ReviewFailed,
    NotLoggedIn,
    ContextFull,
}

/// A class of outcomes with the same consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeClass {
    Answered,
    /// A time limit ended it; the run stops and can be continued, or tries again.
    TimeLimit,
    /// It used what was left of a budget; no attempt is charged, and the loop stops at that budget.
    Budget,
    /// Interrupted by a signal or a crash; no attempt is charged.
    Interrupted,
    /// The provider will recover: wait and retry.
    Transient,
    /// The limit ends at a time that may be known: wait for it, or continue with the next agent of the ladder.
    UsageLimit,
    /// The task does not fit into one session: the next session must split it.
    TooLarge,
    /// A failure that a wait does not fix: three in a row stop the loop.
    Failure,
    /// Only the user can fix it: the loop stops immediately.
    NeedsUser,
}

impl Outcome {
    pub const ALL: [Self; 35] = [
        Self::Passed,
        Self::Unconfirmed,
        Self::ChecksFailed,
        Self::GuardFailed,
        Self::ReviewRefused,
        Self::Retry,
        Self::Decomposed,
        Self::RuleViolation,
        Self::InvalidTree,
        Self::Repaired,
        Self::RepairFailed,
        Self::RepairAbandoned,
        Self::Replanned,
        Self::ReplanRefused,
        Self::SplitRefused,
        Self::Planned,
        Self::PlanQuestions,
        Self::PlanRejected,
        Self::TimedOut,
        Self::IdleTimeout,
        Self::GuardTimedOut,
        Self::OverBudget,
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
        Self::ReviewFailed,
        Self::NotLoggedIn,
        Self::ContextFull,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unconfirmed => "unconfirmed",
            Self::ChecksFailed => "checks_failed",
            Self::GuardFailed => "guard_failed",
            Self::ReviewRefused => "review_refused",
            Self::Retry => "retry",
            Self::Decomposed => "decomposed",
            Self::RuleViolation => "rule_violation",
            Self::InvalidTree => "invalid_tree",
            Self::Repaired => "repaired",
            Self::RepairFailed => "repair_failed",
            Self::RepairAbandoned => "repair_abandoned",
            Self::Replanned => "replanned",
            Self::ReplanRefused => "replan_refused",
            Self::SplitRefused => "split_refused",
            Self::Planned => "planned",
            Self::PlanQuestions => "plan_questions",
            Self::PlanRejected => "plan_rejected",
            Self::TimedOut => "timed_out",
            Self::IdleTimeout => "idle_timeout",
            Self::GuardTimedOut => "guard_timed_out",
            Self::OverBudget => "over_budget",
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
            Self::ReviewFailed => "review_failed",
            Self::NotLoggedIn => "not_logged_in",
            Self::ContextFull => "context_full",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == name)
    }

    pub fn class(self) -> OutcomeClass {
        match self {
            Self::Passed
            | Self::Unconfirmed
            | Self::ChecksFailed
            | Self::GuardFailed
            | Self::ReviewRefused
            | Self::Retry
            | Self::Decomposed
            | Self::RuleViolation
            | Self::InvalidTree
            | Self::Repaired
            | Self::RepairFailed
            | Self::RepairAbandoned
            | Self::Replanned
            | Self::ReplanRefused
            | Self::SplitRefused
            | Self::Planned
            | Self::PlanQuestions
            | Self::PlanRejected => OutcomeClass::Answered,
            Self::TimedOut | Self::IdleTimeout | Self::GuardTimedOut => OutcomeClass::TimeLimit,
            Self::OverBudget => OutcomeClass::Budget,
            Self::Interrupted => OutcomeClass::Interrupted,
            Self::RateLimited | Self::Overloaded | Self::Disconnected => OutcomeClass::Transient,
            Self::UsageLimit => OutcomeClass::UsageLimit,
            Self::NotLoggedIn => OutcomeClass::NeedsUser,
            Self::AgentNotStarted
            | Self::AgentCrashed
            | Self::NoAnswer
            | Self::ProviderRefused
            | Self::GuardNotStarted
            | Self::ReviewFailed => OutcomeClass::Failure,
            Self::ContextFull => OutcomeClass::TooLarge,
        }
    }
}

impl Outcome {
    /// What happened, in one clause.
    pub fn description(self) -> &'static str {
        match self {
            Self::Passed => "the task passed: its checks and the guard succeeded, and no reviewer refused it",
            Self::Unconfirmed => {
                "the agent answered `done` without a change and without a check that proves it; a second session must confirm it"
            }
            Self::ChecksFailed => "the agent answered `done`, and a check of the task failed",
            Self::GuardFailed => "the agent answered `done`, and the guard failed",
            Self::ReviewRefused => "checks and guard succeeded, and the reviewer refused the work",
            Self::Retry => "the agent answered `retry`: it did not finish the task",
            Self::Decomposed => "the agent split the task into smaller ones",
            Self::RuleViolation => {
                "the session broke a rule, for example by changing a passed task; its plan was restored"
            }
            Self::InvalidTree => {
                "the session left an invalid tree.json; the last valid one was restored, and a repair follows"
            }
            Self::Repaired => "a session repaired the rejected plan",
            Self::RepairFailed => "a session did not repair the rejected plan",
            Self::RepairAbandoned => {
                "no attempt at a repair is left; the run continues with the last valid plan"
            }
            Self::Replanned => "a session changed or split the stuck task, which gets new attempts",
            Self::ReplanRefused => "a session was asked to change or split the stuck task and did neither",
            Self::SplitRefused => "a session was asked to split a task that is too large and did not",
            Self::Planned => "a planning session wrote the plan",
            Self::PlanQuestions => "a planning session has questions that you must answer first",
            Self::PlanRejected => "the plan of a planning session was rejected, and nothing was changed",
            Self::TimedOut => "the agent reached the time limit of the iteration (`iteration_timeout_secs`)",
            Self::IdleTimeout => {
                "the agent produced no output, changed no file and used no CPU time for too long (`idle_timeout_secs`)"
            }
            Self::GuardTimedOut => {
                "the guard reached the time limit of the iteration (`iteration_timeout_secs`)"
            }
            Self::OverBudget => {
                "the session reached a limit on tokens or cost (`[budget]`, `--max-tokens`, `--max-usd`)"
            }
            Self::Interrupted => "a signal interrupted the runner, or the runner crashed",
            Self::RateLimited => "the provider rejected a request: too many requests",
            Self::Overloaded => "the provider is overloaded",
            Self::Disconnected => "the agent could not connect to the provider",
            Self::UsageLimit => "a usage limit of the user's plan is reached",
            Self::AgentNotStarted => "the agent's program is missing or cannot be started",
            Self::AgentCrashed => "the agent crashed or a signal killed it",
            Self::NoAnswer => "the agent left no answer, or one that does not match the schema",
            Self::ProviderRefused => "the provider refuses the account, the model or the request",
            Self::ReviewFailed => {
                "the reviewer gave no verdict: it could not be started, crashed, reached a time limit, changed files, or left no \
                 answer that matches the schema"
            }
            Self::GuardNotStarted => "the guard's program is missing or cannot be started",
            Self::NotLoggedIn => "the agent has no key or login that the provider accepts",
            Self::ContextFull => "the session filled the model's context",
        }
    }

    /// What happened and what the loop does about it, in sentences.
    pub fn explanation(self) -> String {
        let class = self.class();
        let happened = format!("What happened: {}.", self.description());
        if class == OutcomeClass::Answered {
            return happened;
        }
        format!("{happened} The loop {}. It costs no attempt.", class.loop_action())
    }

    /// The table of failures, as Markdown.
    pub fn failure_table() -> String {
        let mut table = String::from(
            "| outcome | what happened | what the loop does | exit code |\n| --- | --- | --- | --- |\n",
        );
        for outcome in Self::ALL {
            if outcome.class() == OutcomeClass::Answered {
                continue;
            }
            let description = outcome.description();
            let action = outcome.class().loop_action();
            let exit = outcome.class().exit_codes();
            table.push_str(&format!("| `{outcome}` | {description} | {action} | {exit} |\n"));
        }
        table
    }
}

impl OutcomeClass {
    /// What the loop does after such an outcome.
    fn loop_action(self) -> &'static str {
        match self {
            Self::Answered => "decides by the answer",
            Self::TimeLimit => {
                "commits the work so far and stops; with `on_timeout = \"retry\"` tries again, and stops after three in a \
                 row on one task; `runner loop` continues the run"
            }
            Self::Budget => {
                "commits the work so far and stops at the budget; raise it, then `runner loop` continues the run"
            }
            Self::Interrupted => {
                "commits the work so far and stops; after a crash the next command recovers the iteration"
            }
            Self::Transient => {
                "retries after 5 s, doubled each time up to 300 s, or after the delay that the provider requests (at most an \
                 hour); does not count as an iteration"
            }
            Self::UsageLimit => {
                "waits until the limit ends (if unknown: a minute, doubled each time up to an hour), or continues with the \
                 next agent (`on_usage_limit`); does not count as an iteration"
            }
            Self::TooLarge => {
                "continues with a session that must split the task; a context that is full there counts as a failure, and \
                 three failures in a row stop the loop"
            }
            Self::Failure => "retries at once; stops after three failures in a row",
            Self::NeedsUser => "stops immediately; needs user action",
        }
    }

    /// The exit codes of a loop that stops for it.
    fn exit_codes(self) -> &'static str {
        match self {
            Self::Answered => "",
            Self::TimeLimit | Self::Budget => "4",
            Self::Interrupted => "130, 143, 129",
            Self::Transient | Self::UsageLimit => "none",
            Self::TooLarge | Self::Failure | Self::NeedsUser => "1",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What interrupted a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// The user pressed Ctrl-C.
    Int,
    /// The process received SIGTERM.
    Term,
    /// SIGHUP: the terminal was closed.
    Hup,
    /// The runner crashed; recovery found the session unfinished.
    Crash,
}

/// Why a loop stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// The root task passed.
    Complete,
    /// The next leaf has no attempts left.
    Stuck { node: NodeId },
    /// All tasks passed, and the guard failed in a clean checkout of the last commit.
    NotReproducible { exit: String },
    /// Checks of passed tasks fail again, and no further task is added for them.
    Regressed {
        /// The task of the first one.
        node: NodeId,
        check: CheckName,
        /// The iteration that broke it, if that is known.
        broken_by: Option<IterationNumber>,
    },
    /// The run reached `max_iterations`.
    MaxIterations { max: u32 },
    /// The command reached `--max-iterations`.
    LoopIterations { max: u32 },
    /// The command reached `--max-usd` or `--max-tokens`, or sessions do not report what a limit is about.
    LoopBudget {
        /// The limit of the configuration, or the one that corresponds to the option.
        limit: BudgetLimit,
        /// What this loop used, in tokens or millionths of a dollar; none if a session did not report it.
        spent: Option<u64>,
        max: u64,
    },
    /// The command reached the time of day of `--until`.
    LoopUntil {
        /// In local time: `07:00`.
        until: String,
    },
    /// The run reached a budget limit.
    Budget {
        limit: BudgetLimit,
        /// The leaf, if the limit is one per leaf.
        node: Option<NodeId>,
        /// What was used, in tokens or millionths of a dollar.
        spent: u64,
        max: u64,
    },
    /// No task passed for `stall_iterations` iterations.
    Stalled { iterations: u32 },
    /// An iteration reached a time limit.
    TimeLimit { outcome: Outcome },
    /// Too many failures in a row.
    Failures { outcome: Outcome, in_row: u32 },
    /// A failure that only the user can fix.
    NeedsUser { outcome: Outcome },
    /// Checks of a task do not fail before the work begins, and the configuration requires it.
    VacuousChecks { node: NodeId, checks: Vec<CheckName> },
    /// `[plan] approval` is "required", and the user has not approved the plan as it is.
    NotApproved,
    /// A signal interrupted the runner.
    Interrupted { by: Interruption },
    /// The user asked to stop after the current iteration.
    UserStop,
    /// A reason that only a newer runner knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

impl StopReason {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stuck { .. } => "stuck",
            Self::NotReproducible { .. } => "not_reproducible",
            Self::Regressed { .. } => "regressed",
            Self::MaxIterations { .. } => "max_iterations",
            Self::LoopIterations { .. } => "loop_iterations",
            Self::LoopBudget { .. } => "loop_budget",
            Self::LoopUntil { .. } => "loop_until",
            Self::Budget { .. } => "budget",
            Self::Stalled { .. } => "stalled",
            Self::TimeLimit { .. } => "time_limit",
            Self::Failures { .. } => "failures",
            Self::NeedsUser { .. } => "needs_user",
            Self::VacuousChecks { .. } => "vacuous_checks",
            Self::NotApproved => "not_approved",
            Self::Interrupted { .. } => "interrupted",
            Self::UserStop => "user_stop",
            Self::Unknown => "unknown",
        }
    }

    /// The exit code of `runner loop`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failures { .. }
            | Self::NeedsUser { .. }
            | Self::VacuousChecks { .. }
            | Self::Interrupted { by: Interruption::Crash }
            | Self::Unknown => 1,
            Self::NotApproved => 2,
            Self::Stuck { .. } | Self::NotReproducible { .. } | Self::Regressed { .. } => 3,
            Self::MaxIterations { .. }
            | Self::LoopIterations { .. }
            | Self::LoopBudget { .. }
            | Self::LoopUntil { .. }
            | Self::Budget { .. }
            | Self::Stalled { .. }
            | Self::TimeLimit { .. } => 4,
            Self::Interrupted { by: Interruption::Hup } => 129,
            Self::Interrupted { by: Interruption::Int } | Self::UserStop => 130,
            Self::Interrupted { by: Interruption::Term } => 143,
        }
    }
}

/// What the loop does after an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "then", rename_all = "snake_case")]
pub enum NextAction {
    /// Start the next iteration.
    Go,
    /// Start the next iteration after a wait.
    Wait(Wait),
    Stop(StopReason),
    /// An action that only a newer runner knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

#[cfg(test)]
mod tests;
