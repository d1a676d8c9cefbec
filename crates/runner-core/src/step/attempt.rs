//! The results of a session and of a guard run, as values.
//!
//! An agent that fails, lies, hangs or answers nonsense is a value too; [`interpret`](super::interpret) decides what it means.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::guard_place::GuardPlace;
use super::left_checks::LeftChecks;
use super::outcome::{Interruption, Outcome};
use crate::model::cost::{Amount, amount};
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::strict::bytes_or_text;

/// The result of one agent session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub exit: SessionExit,
    pub answer: LeftFile,
    /// tree.json as the session left it.
    pub tree: LeftFile,
    /// Whether the session changed anything outside `.runner/`.
    pub work: ChangeScope,
    /// How many files the session changed.
    pub changes: FileChanges,
    /// Every protected path that the session changed, and every one that exists now and did not when the run started. Files
    /// of checks are among them.
    pub protected: Vec<ProtectedPath>,
    /// The checks of tasks that did not exist before the session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub new_checks: BTreeMap<NodeId, LeftChecks>,
    /// Memory files in which the session changed earlier text, which the runner restored.
    #[serde(default)]
    pub memory: Vec<RepoPath>,
    /// In a planning session: what it changed outside `.runner/`, and how many questions it added.
    #[serde(default)]
    pub planning: PlanningChanges,
    /// Keys in what the session wrote.
    #[serde(default, skip_serializing_if = "KeyReport::is_empty")]
    pub keys: KeyReport,
    /// Tokens and cost, as far as the agent reported them.
    pub usage: Usage,
    /// How many processes of the session were still running at its end and were killed.
    pub processes_left: u32,
}

/// What a planning session did besides its plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanningChanges {
    /// The files outside `.runner/` that it changed. They are not kept.
    #[serde(default)]
    pub discarded: Vec<RepoPath>,
    /// How many questions it added to questions.md.
    #[serde(default)]
    pub questions: u32,
}

/// A file as a session left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftFile {
    Bytes(#[serde(with = "bytes_or_text")] Vec<u8>),
    Missing,
    /// A folder, a symbolic link or a pipe.
    NotAFile,
    /// Its size, which is beyond the limit.
    TooLarge(u64),
}

/// Where a session wrote keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeyReport {
    /// Documents of the run in which the runner replaced a key.
    pub redacted: Vec<RepoPath>,
    /// Files of the commit that contain what looks like a key.
    pub committed: Vec<RepoPath>,
}

impl KeyReport {
    /// How many files are named.
    pub const FILES_MAX: usize = 20;

    pub fn is_empty(&self) -> bool {
        self.redacted.is_empty() && self.committed.is_empty()
    }
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SessionExit {
    /// The agent exited by itself. The code is recorded and decides nothing.
    Finished { code: i32 },
    /// A signal ended it that the runner did not send.
    Killed { signal: i32 },
    /// It reached the time limit of the iteration.
    TimedOut,
    /// It produced no output and changed no file for too long.
    Idle,
    /// It reached a limit on its tokens or its cost.
    OverBudget,
    /// A signal interrupted the runner, or the runner crashed.
    Interrupted { by: Interruption },
    /// The agent's program could not be started.
    NotStarted { why: String },
    /// The model provider failed, as the agent's structured output reports.
    Provider { fault: ProviderError },
}

/// A failure of the model provider, or of the agent's program on the way to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum ProviderError {
    RateLimited {
        retry_after_secs: Option<u32>,
    },
    Overloaded,
    Disconnected,
    /// A usage limit of the user's plan; its end, in seconds since 1970, if the agent reported it.
    UsageLimit {
        resets_unix_secs: Option<u64>,
    },
    /// The provider refuses the account, the model or the request.
    Refused {
        why: String,
    },
    /// The agent has no key or login that the provider accepts.
    NotLoggedIn {
        why: String,
    },
    /// The session filled the model's context.
    ContextFull,
    /// The agent could not make its model answer in the required schema.
    SchemaViolated {
        why: String,
    },
    /// The agent's program failed; its own error message.
    Crashed {
        why: String,
    },
}

impl SessionExit {
    /// The outcome, if the session was stopped from outside: then its answer does not count.
    pub(crate) fn stopped_from_outside(&self) -> Option<Outcome> {
        match self {
            Self::TimedOut => Some(Outcome::TimedOut),
            Self::Idle => Some(Outcome::IdleTimeout),
            Self::OverBudget => Some(Outcome::OverBudget),
            Self::Interrupted { .. } => Some(Outcome::Interrupted),
            Self::NotStarted { .. } => Some(Outcome::AgentNotStarted),
            Self::Finished { .. } | Self::Killed { .. } | Self::Provider { .. } => None,
        }
    }

    /// The outcome of a session that ended like this without an answer.
    pub(crate) fn without_answer(&self) -> Outcome {
        match self {
            Self::TimedOut => Outcome::TimedOut,
            Self::Idle => Outcome::IdleTimeout,
            Self::OverBudget => Outcome::OverBudget,
            Self::Interrupted { .. } => Outcome::Interrupted,
            Self::NotStarted { .. } => Outcome::AgentNotStarted,
            Self::Finished { .. } => Outcome::NoAnswer,
            Self::Killed { .. } => Outcome::AgentCrashed,
            Self::Provider { fault } => match fault {
                ProviderError::RateLimited { .. } => Outcome::RateLimited,
                ProviderError::Overloaded => Outcome::Overloaded,
                ProviderError::Disconnected => Outcome::Disconnected,
                ProviderError::UsageLimit { .. } => Outcome::UsageLimit,
                ProviderError::Refused { .. } => Outcome::ProviderRefused,
                ProviderError::NotLoggedIn { .. } => Outcome::NotLoggedIn,
                ProviderError::ContextFull => Outcome::ContextFull,
                ProviderError::SchemaViolated { .. } => Outcome::NoAnswer,
                ProviderError::Crashed { .. } => Outcome::AgentCrashed,
            },
        }
    }

    /// When a usage limit ends, if the agent reported it.
    pub(crate) fn resets_unix_secs(&self) -> Option<Amount> {
        match self {
            Self::Provider { fault: ProviderError::UsageLimit { resets_unix_secs } } => {
                resets_unix_secs.map(amount)
            }
            Self::Provider { .. }
            | Self::Finished { .. }
            | Self::Killed { .. }
            | Self::TimedOut
            | Self::Idle
            | Self::OverBudget
            | Self::Interrupted { .. }
            | Self::NotStarted { .. } => None,
        }
    }

    /// The cause in one line, where the exit itself is not explanation enough.
    pub(crate) fn why(&self) -> Option<String> {
        match self {
            Self::NotStarted { why } => Some(why.clone()),
            Self::Provider { fault } => Some(fault.why()),
            Self::Killed { signal } => Some(format!("signal {signal} killed the agent")),
            Self::Finished { code } if *code != 0 => Some(format!("the agent exited with code {code}")),
            Self::OverBudget => Some("the session reached the limit on its tokens or its cost".to_owned()),
            Self::Finished { .. } | Self::TimedOut | Self::Idle | Self::Interrupted { .. } => None,
        }
    }
}

impl ProviderError {
    /// The provider's own message, or a description.
    fn why(&self) -> String {
        let description = match self {
            Self::Refused { why }
            | Self::NotLoggedIn { why }
            | Self::SchemaViolated { why }
            | Self::Crashed { why } => return why.clone(),
            Self::ContextFull => "the session filled the model's context",
            Self::RateLimited { .. } => "rate limited by the provider",
            Self::Overloaded => "the provider is overloaded",
            Self::Disconnected => "could not connect to the provider",
            Self::UsageLimit { .. } => "usage limit reached",
        };
        description.to_owned()
    }
}

/// What a session changed, as `mode` in meta.json has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeScope {
    Execute,
    Decompose,
}

/// How many files a session changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileChanges {
    pub work_files: u32,
    /// Files under `.runner/` besides tree.json and run_state.json, which the runner writes itself.
    pub runner_files: u32,
}

/// A protected path that a session changed, or that is newer than the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedPath {
    pub path: RepoPath,
    /// Whether the path existed when the run started.
    pub existed_at_start: bool,
    /// Whether this session changed, created or deleted it.
    pub changed: bool,
    /// Whether it exists now.
    pub exists: bool,
}

/// What a session used, as far as known. Every field means the same for every agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// All input tokens, including those read from and written to a cache.
    pub input_tokens: Option<u64>,
    /// The input tokens that were read from a cache.
    pub cached_input_tokens: Option<u64>,
    /// The input tokens that were written to a cache, if the agent reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<u64>,
    /// All output tokens, reasoning included.
    pub output_tokens: Option<u64>,
    /// The output tokens spent on reasoning, if the agent reports them.
    pub reasoning_tokens: Option<u64>,
    /// Millionths of a dollar.
    pub cost_microdollars: Option<u64>,
    pub cost_source: CostSource,
}

/// Who computed the cost of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CostSource {
    /// The agent reported no cost.
    #[default]
    Unknown,
    /// The agent reported it.
    Reported,
    /// The runner computed it from tokens and configured prices.
    Estimated,
}

impl CostSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Reported => "reported",
            Self::Estimated => "estimated",
        }
    }
}

/// The result of a guard run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GuardRun {
    Skipped,
    Ended {
        exit: GuardExit,
        /// What the guard printed, as far as it was kept.
        #[serde(with = "bytes_or_text")]
        output: Vec<u8>,
        place: GuardPlace,
    },
    NotStarted {
        why: String,
    },
    /// It reached the time limit of the iteration.
    TimedOut,
    /// A signal interrupted the runner.
    Interrupted {
        by: Interruption,
    },
}

impl GuardRun {
    /// Where it ran, if it ran to its end.
    pub fn place(&self) -> Option<&GuardPlace> {
        match self {
            Self::Ended { place, .. } => Some(place),
            Self::Skipped | Self::NotStarted { .. } | Self::TimedOut | Self::Interrupted { .. } => None,
        }
    }
}

/// How the guard exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuardExit {
    /// Only 0 means success.
    Code(i32),
    Signal(i32),
}

impl GuardExit {
    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("signal ") {
            Some(signal) => signal.parse().ok().map(Self::Signal),
            None => text.parse().ok().map(Self::Code),
        }
    }
}

impl std::fmt::Display for GuardExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}
