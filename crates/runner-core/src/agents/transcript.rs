//! What an agent prints, read as it comes: lines out of pieces of any size, events out of lines, and in the end
//! what the session came to.

use serde_json::Value;

use super::event::{AgentEvent, AgentEventKind};
use super::{AgentKind, Preset, claude, codex, preset_lines, truncate};
use crate::config::Executor;
use crate::step::Usage;

/// The longest line that is read. Beyond it, the line is not understood and its beginning is kept.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Whose lines are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptFormat {
    Codex,
    Claude,
    Opencode,
    Gemini,
    Qwen,
    Copilot,
    Pi,
}

impl TranscriptFormat {
    /// What an agent's program prints, if it is one that is understood.
    pub fn of(executor: &Executor) -> Option<Self> {
        let of_agent = AgentKind::of_kind(executor.kind).map(Self::of_agent);
        of_agent.or_else(|| executor.preset.map(Self::of_preset))
    }

    fn of_agent(agent: AgentKind) -> Self {
        match agent {
            AgentKind::Codex => Self::Codex,
            AgentKind::Claude => Self::Claude,
        }
    }

    fn of_preset(preset: Preset) -> Self {
        match preset {
            Preset::Opencode => Self::Opencode,
            Preset::Gemini => Self::Gemini,
            Preset::Qwen => Self::Qwen,
            Preset::Copilot => Self::Copilot,
            Preset::Pi => Self::Pi,
        }
    }
}

/// A session's output, read so far.
#[derive(Clone, Debug)]
pub struct Transcript {
    pub(super) dialect: TranscriptFormat,
    line: Vec<u8>,
    is_too_long: bool,
    claude: claude::ClaudeParser,
    preset: preset_lines::PresetParser,
    pub(super) findings: ParsedSession,
}

/// What the lines so far tell about the session as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct ParsedSession {
    pub(super) identity: SessionIdentity,
    pub(super) usage: Usage,
    /// The answer, where it stands in the output.
    pub(super) answer: Option<Value>,
    pub(super) end: SessionEnd,
    /// The last error at the top level, for a session that ends without a word.
    pub(super) last_error: Option<String>,
    /// Whether any line was understood.
    pub(super) is_begun: bool,
}

/// Which session it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SessionIdentity {
    /// The agent's own name for the session.
    pub session_id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The program's version.
    pub version: Option<String>,
}

/// How a session ended by the agent's own word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// It has not said so.
    #[default]
    Unsaid,
    Finished,
    Failed(FailureInfo),
}

/// Everything structured that an agent says of its own failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FailureInfo {
    pub(super) message: String,
    /// The provider's HTTP status.
    pub(super) status: Option<u64>,
    /// The agent's own word for the error.
    pub(super) error: Option<String>,
    pub(super) subtype: Option<String>,
    pub(super) reason: Option<String>,
    /// When the limit ends that was reached.
    pub(super) resets_unix_secs: Option<u64>,
}

/// What a session came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionResult {
    /// How it ended, with the provider's fault in it if that was the cause.
    pub exit: crate::step::SessionExit,
    /// What it cost.
    pub usage: Usage,
    /// The answer, if the agent leaves it in its output.
    pub answer: Option<Vec<u8>>,
    /// Which session it was.
    pub identity: SessionIdentity,
}

impl Transcript {
    /// Nothing read yet.
    pub fn new(dialect: TranscriptFormat) -> Self {
        let cached = if dialect == TranscriptFormat::Qwen {
            claude::CacheTokens::Within
        } else {
            claude::CacheTokens::Apart
        };
        Self {
            dialect,
            line: Vec::new(),
            is_too_long: false,
            claude: claude::ClaudeParser::counting(cached),
            preset: preset_lines::PresetParser::default(),
            findings: ParsedSession::default(),
        }
    }

    /// Takes what the agent printed next. Where the pieces begin and end makes no difference.
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

    /// The agent prints nothing more: what stands in a last line without an end.
    pub fn finish(&mut self) -> Vec<AgentEvent> {
        self.end_line()
    }

    /// What the session used, as far as it has said so.
    pub fn usage(&self) -> Usage {
        self.findings.usage
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
            return vec![AgentEvent::of(AgentEventKind::Unknown { raw })];
        };
        self.findings.is_begun = true;
        match self.dialect {
            TranscriptFormat::Codex => codex::read(&value, &mut self.findings),
            TranscriptFormat::Claude | TranscriptFormat::Qwen => self.claude.read(&value, &mut self.findings),
            dialect @ (TranscriptFormat::Opencode
            | TranscriptFormat::Gemini
            | TranscriptFormat::Copilot
            | TranscriptFormat::Pi) => self.preset.read(dialect, &value, &mut self.findings),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_beyond_the_limit_is_not_understood_and_its_beginning_is_kept() {
        let begun = r#"{"type":"turn.failed","error":{"message":"x"}}"#;
        let told = |last: &str| {
            let line = vec![b' '; LINE_BYTES_MAX - begun.len()];
            Transcript { line, ..Transcript::new(TranscriptFormat::Codex) }
                .push(format!("{last}\n").as_bytes())
        };
        let understood = AgentEvent::of(AgentEventKind::Failed { message: "x".to_owned() });
        assert_eq!(told(begun), [understood]);
        let kept = AgentEvent::of(AgentEventKind::Unknown { raw: Value::from(begun) });
        assert_eq!(told(&format!("{begun} ")), [kept]);
    }
}
