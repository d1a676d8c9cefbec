//! What comes back from outside, as values: a session of an agent, and a run of the guard.
//!
//! An agent that fails, lies, hangs or talks nonsense is one of these. Nothing here is judged yet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::{Interruption, Outcome};
use crate::model::cost::{Amount, amount};
use crate::model::repo_path::RepoPath;
use crate::strict::bytes_or_text;

/// What one agent session left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// How it ended.
    pub exit: SessionExit,
    /// Its answer.
    pub answer: LeftFile,
    /// The tree.json it left.
    pub tree: LeftFile,
    /// Whether it changed anything outside `.runner/`.
    pub work: ChangeScope,
    /// The protected paths to know of: every one that it changed, and every one there now that was not there
    /// when the run started.
    pub protected: Vec<ProtectedPath>,
    /// What it cost, as far as it said so.
    pub usage: Usage,
    /// How many of its processes were still there at its end and had to be ended.
    pub processes_left: u32,
}

/// A file as a session left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftFile {
    /// What is in it.
    Bytes(#[serde(with = "bytes_or_text")] Vec<u8>),
    /// It is not there.
    Missing,
    /// Something else is there: a folder, a link, a pipe.
    NotAFile,
    /// More bytes than are read.
    TooLarge(u64),
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SessionExit {
    /// By itself. The code is recorded and decides nothing.
    Finished { code: i32 },
    /// By a signal that was not the runner's.
    Killed { signal: i32 },
    /// The iteration's time was over.
    TimedOut,
    /// It was silent for too long.
    Idle,
    /// A signal to the runner, or the runner's own death.
    Interrupted { by: Interruption },
    /// The program could not be started.
    NotStarted { why: String },
    /// The provider behind the agent failed it, by the agent's own structured word.
    Provider { fault: ProviderError },
}

/// How a provider fails an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum ProviderError {
    /// Too many requests.
    RateLimited { retry_after_secs: Option<u32> },
    /// The provider is overloaded.
    Overloaded,
    /// No connection.
    Disconnected,
    /// The plan's allowance is used up, until a moment that may be known (seconds since 1970).
    UsageLimit { resets_unix_secs: Option<u64> },
    /// The provider will not serve this at all: account, model, request.
    Refused { why: String },
    /// The agent has no key or login that the provider takes.
    NotLoggedIn { why: String },
    /// The session is too long for the model: its context is full.
    ContextFull,
    /// The agent's own enforcement of the answer's schema gave up.
    SchemaViolated { why: String },
    /// The agent's program gave up by itself, in its own words.
    Crashed { why: String },
}

impl SessionExit {
    /// The outcome, if the session was broken off from outside: then its answer does not count.
    pub(crate) fn broken_off(&self) -> Option<Outcome> {
        match self {
            Self::TimedOut => Some(Outcome::TimedOut),
            Self::Idle => Some(Outcome::IdleTimeout),
            Self::Interrupted { .. } => Some(Outcome::Interrupted),
            Self::NotStarted { .. } => Some(Outcome::AgentNotStarted),
            Self::Finished { .. } | Self::Killed { .. } | Self::Provider { .. } => None,
        }
    }

    /// The outcome of a session that ended this way and gave no answer.
    pub(crate) fn without_answer(&self) -> Outcome {
        match self {
            Self::TimedOut => Outcome::TimedOut,
            Self::Idle => Outcome::IdleTimeout,
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

    /// When a used-up allowance comes back, if the agent said so.
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
            | Self::Interrupted { .. }
            | Self::NotStarted { .. } => None,
        }
    }

    /// In the runner's own words, if there is something to say about it.
    pub(crate) fn why(&self) -> Option<String> {
        match self {
            Self::NotStarted { why } => Some(why.clone()),
            Self::Provider { fault } => Some(fault.why()),
            Self::Killed { signal } => Some(format!("the agent was ended by signal {signal}")),
            Self::Finished { code } if *code != 0 => Some(format!("the agent exited with code {code}")),
            Self::Finished { .. } | Self::TimedOut | Self::Idle | Self::Interrupted { .. } => None,
        }
    }
}

impl ProviderError {
    /// What the provider said about it, or the runner's own words.
    fn why(&self) -> String {
        let own = match self {
            Self::Refused { why }
            | Self::NotLoggedIn { why }
            | Self::SchemaViolated { why }
            | Self::Crashed { why } => return why.clone(),
            Self::ContextFull => "the session filled the model's context",
            Self::RateLimited { .. } => "the provider had too many requests",
            Self::Overloaded => "the provider was overloaded",
            Self::Disconnected => "there was no connection to the provider",
            Self::UsageLimit { .. } => "the agent's allowance is used up",
        };
        own.to_owned()
    }
}

/// What a session changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeScope {
    /// Something outside `.runner/`.
    Execute,
    /// Nothing outside `.runner/`.
    Decompose,
}

/// A protected path that a session changed, or that is newer than the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedPath {
    /// Which one.
    pub path: RepoPath,
    /// Whether it was there when the run started.
    pub existed_at_start: bool,
    /// Whether this session changed, made or removed it.
    pub changed: bool,
    /// Whether it is there now.
    pub exists: bool,
}

/// What a session cost, as far as known. The same words mean the same for every agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// All tokens read: new ones, and those that came from or went into a cache.
    pub input_tokens: Option<u64>,
    /// The part of them that came from a cache.
    pub cached_input_tokens: Option<u64>,
    /// All tokens written, thoughts included.
    pub output_tokens: Option<u64>,
    /// The part of them that was thought, where the agent says so.
    pub reasoning_tokens: Option<u64>,
    /// Millionths of a dollar.
    pub cost_microdollars: Option<u64>,
    /// Where that sum comes from.
    pub cost_source: CostSource,
}

/// Who says what a session cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CostSource {
    /// Nobody.
    #[default]
    Unknown,
    /// The agent.
    Reported,
    /// The runner, from tokens and prices.
    Estimated,
}

impl CostSource {
    /// The one word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Reported => "reported",
            Self::Estimated => "estimated",
        }
    }
}

/// What a run of the guard gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GuardRun {
    /// The guard was not asked.
    Skipped,
    /// It ran to its end.
    Ended {
        /// How.
        exit: GuardExit,
        /// What it printed, as far as it was kept.
        #[serde(with = "bytes_or_text")]
        output: Vec<u8>,
    },
    /// It could not be started.
    NotStarted {
        /// Why.
        why: String,
    },
    /// The iteration's time was over.
    TimedOut,
    /// A signal to the runner broke it off.
    Interrupted {
        /// Which one.
        by: Interruption,
    },
}

/// How the guard's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuardExit {
    /// With this code; 0 alone means that the work is good.
    Code(i32),
    /// By this signal.
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
