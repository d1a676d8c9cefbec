//! The events of a session: what an agent writes and does, in one format for all agents.
//!
//! stream.jsonl has the raw lines. A line that no parser knows is kept unchanged, so that nothing of a newer agent is
//! lost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::step::Usage;

/// One message or activity of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentEvent {
    /// The id of the activity. A later event with the same id replaces this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The call that started the sub-agent, if the event comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(flatten)]
    pub kind: AgentEventKind,
}

/// What an agent wrote or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentEventKind {
    /// The session has started.
    Session {
        session_id: Option<String>,
        model: Option<String>,
        version: Option<String>,
        tools: Vec<String>,
    },
    /// Text of the agent for the reader.
    Message {
        text: String,
    },
    /// Reasoning, as far as the agent shows it.
    Reasoning {
        text: String,
    },
    /// A shell command. A failing exit code is not a failure of the session: it may be a test.
    Command {
        command: String,
        state: ActivityState,
        exit: Option<i64>,
        output: String,
    },
    Edit {
        files: Vec<FileChange>,
        state: ActivityState,
    },
    /// The agent reads a file.
    Read {
        path: String,
        state: ActivityState,
    },
    /// The agent searches files.
    Search {
        query: String,
        state: ActivityState,
    },
    /// A web search or a web page.
    Web {
        query: String,
        state: ActivityState,
    },
    /// A call of any other tool.
    Tool {
        name: String,
        input: String,
        state: ActivityState,
        output: String,
    },
    /// The agent's to-do list.
    Plan {
        items: Vec<PlanItem>,
    },
    /// The provider failed, and the agent retries by itself.
    Retry {
        text: String,
        attempt: Option<u64>,
        of: Option<u64>,
        wait_ms: Option<u64>,
    },
    /// A warning; the session goes on.
    Warning {
        text: String,
    },
    /// The agent compacted its context.
    Compacted {
        tokens_before: Option<u64>,
        tokens_after: Option<u64>,
    },
    /// The state of a limit of the provider.
    RateLimit {
        status: String,
        limit: Option<String>,
        resets_unix_secs: Option<u64>,
    },
    /// What the session has used so far.
    Usage {
        usage: Usage,
    },
    /// The agent reports that the session has ended. Its answer may still be invalid.
    Finished,
    /// The agent reports that the session has failed.
    Failed {
        message: String,
    },
    /// A line that the parser does not know.
    Unknown {
        raw: Value,
    },
}

/// The state of a command, a tool call or another activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityState {
    Started,
    Done,
    Failed,
}

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The path, as the agent wrote it.
    pub path: String,
    pub change: FileAction,
}

/// How a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    Add,
    Update,
    Delete,
    /// Written whole, whether it existed or not.
    Write,
}

/// An item of the agent's to-do list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanItem {
    pub text: String,
    pub state: PlanItemState,
}

/// The state of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanItemState {
    Open,
    Active,
    Done,
}

impl AgentEvent {
    pub(super) fn new(kind: AgentEventKind) -> Self {
        Self { id: None, parent: None, kind }
    }

    pub(super) fn unknown(line: &Value) -> Self {
        Self::new(AgentEventKind::Unknown { raw: super::truncate::raw(line) })
    }
}

impl AgentEventKind {
    /// The value of `kind` in the event's JSON.
    pub fn name(&self) -> &'static str {
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
    fn names_are_those_of_the_json() {
        let none = String::new;
        let state = ActivityState::Done;
        for kind in [
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
            assert_eq!(serde_json::to_value(&kind).unwrap()["kind"], kind.name());
        }
    }
}
