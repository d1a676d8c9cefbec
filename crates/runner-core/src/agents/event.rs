//! What an agent says and does in a session, in one form whichever agent it is.
//!
//! The raw lines stand beside it in stream.jsonl; here is what they mean. A line that means nothing that is known
//! is kept as it came, so that a newer agent loses nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::step::Usage;

/// One thing that an agent said or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentEvent {
    /// What it is about. A later event with the same id takes the place of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The call that started the sub-agent which this comes from, if it comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The thing itself.
    #[serde(flatten)]
    pub said: AgentEventKind,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentEventKind {
    /// The session begins.
    Session { session_id: Option<String>, model: Option<String>, version: Option<String>, tools: Vec<String> },
    /// Words to whoever reads along.
    Message { text: String },
    /// Thoughts, as far as the agent shows them.
    Reasoning { text: String },
    /// A shell command. Its exit code is its own: a test that fails is no fault of the session.
    Command { command: String, state: ActivityState, exit: Option<i64>, output: String },
    /// Changes to files.
    Edit { files: Vec<FileChange>, state: ActivityState },
    /// A file that is read.
    Read { path: String, state: ActivityState },
    /// A search in files.
    Search { query: String, state: ActivityState },
    /// A search or a page on the web.
    Web { query: String, state: ActivityState },
    /// Any other tool.
    Tool { name: String, input: String, state: ActivityState, output: String },
    /// The agent's own list of things to do.
    Plan { items: Vec<PlanItem> },
    /// The provider failed, and the agent tries again by itself.
    Retry { text: String, attempt: Option<u64>, of: Option<u64>, wait_ms: Option<u64> },
    /// Something to know that ends nothing.
    Warning { text: String },
    /// The agent summed up its own history to make room.
    Compacted { tokens_before: Option<u64>, tokens_after: Option<u64> },
    /// What the provider says of its limits.
    RateLimit { status: String, limit: Option<String>, resets_unix_secs: Option<u64> },
    /// What the session cost so far.
    Usage { usage: Usage },
    /// The session is over, by the agent's own word. Whether its answer is one is not said here.
    Finished,
    /// The session failed, by the agent's own word.
    Failed { message: String },
    /// A line that means nothing known.
    Unknown { raw: Value },
}

/// How far something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityState {
    Started,
    Done,
    Failed,
}

/// One file and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// As the agent names it.
    pub path: String,
    /// What becomes of it.
    pub change: FileAction,
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    Add,
    Update,
    Delete,
    /// It is written whole, whether it was there or not.
    Write,
}

/// One entry of a list of things to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanItem {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub state: PlanItemState,
}

/// How far an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanItemState {
    Open,
    Active,
    Done,
}

impl AgentEvent {
    pub(super) fn of(said: AgentEventKind) -> Self {
        Self { id: None, parent: None, said }
    }
}

impl AgentEventKind {
    /// The event's own word, as its JSON has it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::Message { .. } => "message",
            Self::Reasoning { .. } => "reasoning",
            Self::Command { .. } => "command",
            Self::Edit { .. } => "edit",
            Self::Read { .. } => "read",
            Self::Search { .. } => "search",
            Self::Web { .. } => "web",
            Self::Tool { .. } => "tool",
            Self::Plan { .. } => "plan",
            Self::Retry { .. } => "retry",
            Self::Warning { .. } => "warning",
            Self::Compacted { .. } => "compacted",
            Self::RateLimit { .. } => "rate_limit",
            Self::Usage { .. } => "usage",
            Self::Finished => "finished",
            Self::Failed { .. } => "failed",
            Self::Unknown { .. } => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_called_the_same_in_its_json() {
        let (none, state) = (String::new, ActivityState::Done);
        for said in [
            AgentEventKind::Session { session_id: None, model: None, version: None, tools: Vec::new() },
            AgentEventKind::Message { text: none() },
            AgentEventKind::Reasoning { text: none() },
            AgentEventKind::Command { command: none(), state, exit: None, output: none() },
            AgentEventKind::Edit { files: Vec::new(), state },
            AgentEventKind::Read { path: none(), state },
            AgentEventKind::Search { query: none(), state },
            AgentEventKind::Web { query: none(), state },
            AgentEventKind::Tool { name: none(), input: none(), state, output: none() },
            AgentEventKind::Plan { items: Vec::new() },
            AgentEventKind::Retry { text: none(), attempt: None, of: None, wait_ms: None },
            AgentEventKind::Warning { text: none() },
            AgentEventKind::Compacted { tokens_before: None, tokens_after: None },
            AgentEventKind::RateLimit { status: none(), limit: None, resets_unix_secs: None },
            AgentEventKind::Usage { usage: Usage::default() },
            AgentEventKind::Finished,
            AgentEventKind::Failed { message: none() },
            AgentEventKind::Unknown { raw: Value::Null },
        ] {
            assert_eq!(serde_json::to_value(&said).unwrap()["kind"], said.kind());
        }
    }
}
