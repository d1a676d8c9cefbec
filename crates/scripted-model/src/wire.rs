//! The wire formats: what a request asks, and how an answer is written.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde::Serialize;
use serde_json::{Value, json};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WireFormat {
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// OpenAI chat completions.
    Chat,
    /// Gemini.
    Gemini,
}

/// What a request asks, whatever its format.
#[derive(Debug, Default)]
pub(crate) struct ModelRequest {
    pub(crate) tools: Vec<OfferedTool>,
    /// How many tool results it holds.
    pub(crate) results: usize,
    /// What the user said, and nothing that a tool did.
    pub(crate) prompt: String,
    /// The last entry of the conversation, whatever it is.
    pub(crate) last: String,
    /// What tells one session from another.
    pub(crate) session: String,
    pub(crate) model: String,
    pub(crate) is_stream: bool,
}

/// A tool that the model may call.
#[derive(Debug)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    /// Whether it takes free text instead of JSON.
    pub(crate) takes_text: bool,
}

/// One answer, whatever its format.
pub(crate) struct ModelTurn {
    pub(crate) say: Option<String>,
    pub(crate) act: TurnAction,
    pub(crate) tokens: TokenCounts,
    /// Of the request: what makes ids unlike each other.
    pub(crate) number: usize,
}

/// What the model does.
pub(crate) enum TurnAction {
    Call { name: String, arguments: Value },
    Custom { name: String, input: String },
    Text(String),
}

/// What it cost.
#[derive(Clone, Copy)]
pub(crate) struct TokenCounts {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

/// An answer, written.
pub(crate) struct EncodedAnswer {
    /// As one document.
    pub(crate) whole: Value,
    /// As a stream.
    pub(crate) events: Vec<SseEvent>,
    /// How many events there are before the answer is half said.
    pub(crate) half: usize,
}

/// One server-sent event.
pub(crate) struct SseEvent {
    name: Option<String>,
    data: String,
}

impl SseEvent {
    /// An event that carries its name in its data, too.
    fn named(name: &str, fields: Value) -> Self {
        let mut data = json!({ "type": name });
        if let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) {
            data.extend(fields);
        }
        Self { name: Some(name.to_owned()), data: data.to_string() }
    }

    fn unnamed(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }

    /// As it goes over the wire.
    pub(crate) fn to_text(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data)
    }
}

impl WireFormat {
    /// The format of a path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let ends = [("/responses", Self::Responses), ("/messages", Self::Messages)];
        let more = [
            ("/chat/completions", Self::Chat),
            (":generateContent", Self::Gemini),
            (":streamGenerateContent", Self::Gemini),
        ];
        ends.into_iter().chain(more).find(|(end, _)| path.ends_with(end)).map(|(_, wire)| wire)
    }

    pub(crate) fn read(self, path: &str, body: &Value) -> ModelRequest {
        let asked = match self {
            Self::Responses => responses::read(body),
            Self::Messages => messages::read(body),
            Self::Chat => chat::read(body),
            Self::Gemini => gemini::read(path, body),
        };
        let is_stream = asked.is_stream || body.get("stream").and_then(Value::as_bool) == Some(true);
        let model = text_at(body, "model");
        ModelRequest { is_stream, model: if model.is_empty() { asked.model } else { model }, ..asked }
    }

    pub(crate) fn write(self, turn: &ModelTurn, asked: &ModelRequest) -> EncodedAnswer {
        match self {
            Self::Responses => responses::write(turn, asked),
            Self::Messages => messages::write(turn, asked),
            Self::Chat => chat::write(turn, asked),
            Self::Gemini => gemini::write(turn),
        }
    }

    /// A stream that holds this error.
    pub(crate) fn failed(self, turn: &ModelTurn, asked: &ModelRequest, error: &Value) -> Vec<SseEvent> {
        match self {
            Self::Responses => responses::failed(turn, asked, error),
            Self::Messages => messages::failed(turn, asked, error),
            Self::Chat | Self::Gemini => vec![SseEvent::unnamed(&json!({ "error": error }))],
        }
    }

    /// The body of an error.
    pub(crate) fn error(self, status: u16, message: &str) -> Value {
        match self {
            Self::Responses | Self::Chat => {
                json!({ "error": { "message": message, "type": "scripted", "code": "scripted" } })
            }
            Self::Messages => {
                let kind = match status {
                    400 | 413 => "invalid_request_error",
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    _ => "api_error",
                };
                json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
            Self::Gemini => {
                let kind = match status {
                    400 => "INVALID_ARGUMENT",
                    401 => "UNAUTHENTICATED",
                    403 => "PERMISSION_DENIED",
                    429 => "RESOURCE_EXHAUSTED",
                    503 => "UNAVAILABLE",
                    _ => "INTERNAL",
                };
                json!({ "error": { "code": status, "message": message, "status": kind } })
            }
        }
    }
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text_at(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A text, or the texts in a list of blocks, one a line.
fn texts(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            blocks.iter().map(|block| text_at(block, "text")).collect::<Vec<_>>().join("\n")
        }
        Some(_) | None => String::new(),
    }
}

/// What the entries of a role say, as one text.
fn said_by(entries: &[Value], role: &str, content: &str) -> String {
    let of_role = entries.iter().filter(|entry| entry.get("role").and_then(Value::as_str) == Some(role));
    of_role.map(|entry| texts(entry.get(content))).collect::<Vec<_>>().join("\n")
}

/// The arguments of a call, whatever it takes.
fn arguments_of(act: &TurnAction) -> Option<(&str, Value)> {
    match act {
        TurnAction::Call { name, arguments } => Some((name, arguments.clone())),
        TurnAction::Custom { name, input } => Some((name, json!({ "input": input }))),
        TurnAction::Text(_) => None,
    }
}
