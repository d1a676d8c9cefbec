//! The output of a session: lines from chunks of any size, events from lines, and at the end the session's result.

use std::fmt;

use serde_json::Value;

use super::event::{AgentEvent, AgentEventKind};
use super::spec::OutputFormat;
use super::truncate;
use crate::step::Usage;

/// The longest line to parse. A longer one becomes an unknown event with its beginning.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Turns the lines of one agent's output into events. Each agent's file implements it.
pub(super) trait LineParser: fmt::Debug + Send {
    /// The events of a line, which is a JSON object. Facts about the whole session go to `session`.
    fn parse_line(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent>;

    /// Reads a line of the log in which the agent records its usage while it works, if it has one.
    fn parse_usage_line(&mut self, _line: &Value, _session: &mut ParsedSession) {}
}

/// The output of a session, parsed so far.
#[derive(Debug)]
pub struct Transcript {
    pub(super) format: &'static OutputFormat,
    line: Vec<u8>,
    is_too_long: bool,
    parser: Box<dyn LineParser>,
    pub(super) session: ParsedSession,
}

/// What the lines so far reveal about the whole session.
#[derive(Clone, Debug, Default)]
pub(super) struct ParsedSession {
    pub(super) identity: SessionIdentity,
    pub(super) usage: Usage,
    /// The answer, if the agent prints it.
    pub(super) answer: Option<Value>,
    pub(super) end: SessionEnd,
    /// The last error at the top level, for a session that ends without a final event.
    pub(super) last_error: Option<String>,
    /// Whether any line was a JSON object.
    pub(super) has_output: bool,
}

/// Which session it was.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct SessionIdentity {
    /// The agent's id of the session.
    pub session_id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    pub version: Option<String>,
}

/// How a session ended, as the agent reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum SessionEnd {
    #[default]
    NotReported,
    Finished,
    Failed(FailureInfo),
    /// The agent stopped at the limit on its cost that the runner gave it.
    OverBudget,
}

/// The structured part of a failure that an agent reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FailureInfo {
    pub(super) message: String,
    /// The provider's HTTP status.
    pub(super) status: Option<u64>,
    /// The agent's class of the error.
    pub(super) error: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) reason: Option<String>,
    /// The end of the usage limit that was reached.
    pub(super) resets_unix_secs: Option<u64>,
}

impl FailureInfo {
    pub(super) fn with_status(message: String, status: Option<u64>) -> Self {
        Self { message, status, ..Self::default() }
    }
}

/// The result of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionResult {
    /// How it ended, with the provider's error if that was the cause.
    pub exit: crate::step::SessionExit,
    pub usage: Usage,
    /// The answer, if the agent prints it.
    pub answer: Option<Vec<u8>>,
    /// Which session it was.
    pub identity: SessionIdentity,
}

impl Transcript {
    pub fn new(format: &'static OutputFormat) -> Self {
        Self {
            format,
            line: Vec::new(),
            is_too_long: false,
            parser: (format.parser)(),
            session: ParsedSession::default(),
        }
    }

    /// Parses the next chunk of output. Chunk boundaries do not matter.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                Some(_) | None => (piece, false),
            };
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            self.is_too_long |= text.len() > room;
            self.line.extend(text.iter().take(room));
            if is_whole {
                events.extend(self.end_line());
            }
        }
        events
    }

    /// Parses a last line without a line end.
    pub fn finish(&mut self) -> Vec<AgentEvent> {
        self.end_line()
    }

    /// Reads whole lines of the log in which the agent records its usage.
    pub fn push_usage_log(&mut self, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<Value>(line) {
                self.parser.parse_usage_line(&line, &mut self.session);
            }
        }
    }

    /// What the session has reported as used so far.
    pub fn usage(&self) -> Usage {
        self.session.usage
    }

    fn end_line(&mut self) -> Vec<AgentEvent> {
        let line = std::mem::take(&mut self.line);
        let is_too_long = std::mem::take(&mut self.is_too_long);
        let text = String::from_utf8_lossy(line.trim_ascii());
        if text.is_empty() {
            return Vec::new();
        }
        let value = if is_too_long { None } else { serde_json::from_str::<Value>(&text).ok() };
        let Some(value) = value.filter(Value::is_object) else {
            let raw = Value::String(truncate::output(&text));
            return vec![AgentEvent::new(AgentEventKind::Unknown { raw })];
        };
        self.session.has_output = true;
        self.parser.parse_line(&value, &mut self.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::agent_named;

    #[test]
    fn a_line_beyond_the_limit_becomes_an_unknown_event() {
        let failed = r#"{"type":"turn.failed","error":{"message":"x"}}"#;
        let events = |last: &str| {
            let line = vec![b' '; LINE_BYTES_MAX - failed.len()];
            Transcript { line, ..Transcript::new(&agent_named("codex").unwrap().output) }
                .push(format!("{last}\n").as_bytes())
        };
        let parsed = AgentEvent::new(AgentEventKind::Failed { message: "x".to_owned() });
        assert_eq!(events(failed), [parsed]);
        let unknown = AgentEvent::new(AgentEventKind::Unknown { raw: Value::from(failed) });
        assert_eq!(events(&format!("{failed} ")), [unknown]);
    }
}
