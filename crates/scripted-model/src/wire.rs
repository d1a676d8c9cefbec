//! The wire formats: parse requests into [`ModelRequest`] and encode [`ModelTurn`] as a document or a stream.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde::Serialize;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WireFormat {
    Responses,
    Messages,
    Chat,
    Gemini,
}

/// A request, independent of its wire format.
#[derive(Debug, Default)]
pub(crate) struct ModelRequest {
    pub(crate) tools: Vec<OfferedTool>,
    /// The number of tool results.
    pub(crate) results: usize,
    /// The user's text, without tool output.
    pub(crate) prompt: String,
    /// The last entry of the conversation, of any kind.
    pub(crate) last: String,
    pub(crate) session: String,
    pub(crate) model: String,
    pub(crate) is_stream: bool,
}

#[derive(Debug)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    /// Whether it takes free text instead of JSON.
    pub(crate) takes_text: bool,
}

/// An answer, independent of its wire format.
pub(crate) struct ModelTurn {
    /// Text before the action.
    pub(crate) text: Option<String>,
    pub(crate) action: TurnAction,
    pub(crate) tokens: TokenCounts,
    /// The request's number, which makes the ids in the answer unique.
    pub(crate) number: usize,
}

pub(crate) enum TurnAction {
    Call { name: String, arguments: Value },
    Custom { name: String, input: String },
    Text(String),
}

#[derive(Clone, Copy)]
pub(crate) struct TokenCounts {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

/// An answer in one wire format.
pub(crate) struct EncodedAnswer {
    pub(crate) document: Value,
    /// The same answer as a stream.
    pub(crate) events: Vec<SseEvent>,
    /// The number of events to send before a cut.
    pub(crate) half: usize,
}

pub(crate) struct SseEvent {
    name: Option<String>,
    data: String,
}

impl SseEvent {
    /// An event whose data repeats its name as `type`.
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

    pub(crate) fn to_text(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data)
    }
}

impl WireFormat {
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let suffixes = [
            ("/responses", Self::Responses),
            ("/messages", Self::Messages),
            ("/chat/completions", Self::Chat),
            (":generateContent", Self::Gemini),
            (":streamGenerateContent", Self::Gemini),
        ];
        suffixes.into_iter().find(|(suffix, _)| path.ends_with(suffix)).map(|(_, wire)| wire)
    }

    pub(crate) fn read(self, path: &str, body: &Value) -> ModelRequest {
        let request = match self {
            Self::Responses => responses::read(body),
            Self::Messages => messages::read(body),
            Self::Chat => chat::read(body),
            Self::Gemini => gemini::read(path, body),
        };
        let is_stream = request.is_stream || body.get("stream").and_then(Value::as_bool) == Some(true);
        let model = text_at(body, "model");
        ModelRequest { is_stream, model: if model.is_empty() { request.model } else { model }, ..request }
    }

    pub(crate) fn write(self, turn: &ModelTurn, request: &ModelRequest) -> EncodedAnswer {
        match self {
            Self::Responses => responses::write(turn, request),
            Self::Messages => messages::write(turn, request),
            Self::Chat => chat::write(turn, request),
            Self::Gemini => gemini::write(turn),
        }
    }

    /// A stream that consists of this error.
    pub(crate) fn error_events(
        self,
        turn: &ModelTurn,
        request: &ModelRequest,
        error: &Value,
    ) -> Vec<SseEvent> {
        match self {
            Self::Responses => responses::error_events(turn, request, error),
            Self::Messages => messages::error_events(turn, request, error),
            Self::Chat | Self::Gemini => vec![SseEvent::unnamed(&json!({ "error": error }))],
        }
    }

    /// The body of an error response.
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

fn array_at<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text_at(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A string, or the `text` of every block in a list, one per line.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            blocks.iter().map(|block| text_at(block, "text")).collect::<Vec<_>>().join("\n")
        }
        Some(_) | None => String::new(),
    }
}

/// The text of all entries with this role.
fn text_of_role(entries: &[Value], role: &str, content: &str) -> String {
    let of_role = entries.iter().filter(|entry| entry.get("role").and_then(Value::as_str) == Some(role));
    of_role.map(|entry| content_text(entry.get(content))).collect::<Vec<_>>().join("\n")
}

/// The tool name and arguments of a call, as JSON even for tools that take text.
fn call_arguments(action: &TurnAction) -> Option<(&str, Value)> {
    match action {
        TurnAction::Call { name, arguments } => Some((name, arguments.clone())),
        TurnAction::Custom { name, input } => Some((name, json!({ "input": input }))),
        TurnAction::Text(_) => None,
    }
}
