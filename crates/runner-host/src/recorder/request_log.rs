//! `requests.jsonl`: every request of a session and its answer, without keys.
//!
//! A request is a line when it arrives, and its answer another when it ends. Bodies that are JSON have their keys sorted, so that a
//! hash depends on nothing but their content. Only what is left after redaction is hashed and stored.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use runner_core::model::digest::Sha256;
use runner_core::redact::is_key_name;
use runner_core::step::RecordedRequests;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::http_message::{AnswerHead, Header, Request};
use crate::clock::now_ms;
use crate::redaction::redactor;

/// What stands in the place of a secret value.
const REDACTED: &str = "[redacted]";

/// Headers that hold keys or name an account, besides those that are named like keys.
const SECRET_HEADERS: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "set-cookie",
    "chatgpt-account-id",
    "openai-organization",
    "anthropic-organization-id",
];

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum RequestLine {
    Request(RequestRecord),
    Answer(AnswerRecord),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RequestRecord {
    pub(super) t_ms: u64,
    /// Its number in the session, from 1.
    pub(super) number: u64,
    pub(super) method: String,
    /// Path and query, as the agent sent them.
    pub(super) target: String,
    pub(super) headers: Map<String, Value>,
    /// How many entries the conversation in the body has; none for a body without one.
    pub(super) items: Option<u64>,
    /// The hash of the body: of its canonical form if it is JSON.
    pub(super) sha256: Sha256,
    /// The body: a JSON value, or a string if it is not JSON. Left out of a log that is too large.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(super) body: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AnswerRecord {
    pub(super) t_ms: u64,
    /// The number of its request.
    pub(super) number: u64,
    /// None if the provider did not answer.
    pub(super) status: Option<u16>,
    pub(super) headers: Map<String, Value>,
    pub(super) sha256: Sha256,
    /// The text of the body. Left out of a log that is too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    /// Why the answer is not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// An answer as it arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedAnswer {
    pub(super) head: Option<AnswerHead>,
    pub(super) body: Vec<u8>,
    pub(super) error: Option<String>,
}

/// The log of one session.
pub(super) struct RequestLog {
    state: Mutex<LogState>,
}

struct LogState {
    /// None if requests are only counted, or if the file cannot be written.
    file: Option<File>,
    /// How many more bytes the file may have.
    bytes_left: u64,
    summary: String,
    count: u64,
}

/// How a request appears in the log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoggedRequest {
    pub(super) number: u64,
    pub(super) target: String,
    pub(super) items: Option<u64>,
    pub(super) sha256: Sha256,
}

impl RequestLog {
    /// Creates the file; without a path, requests are counted and not stored.
    pub(super) fn create(path: Option<&Path>, bytes_max: u64) -> std::io::Result<Self> {
        let file = path.map(create_private).transpose()?;
        let state = LogState { file, bytes_left: bytes_max, summary: String::new(), count: 0 };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Records a request that arrived. `target` is without the recorder's own part.
    pub(super) fn add_request(&self, request: &Request, target: &str) -> LoggedRequest {
        let target = redacted_target(target);
        let body = canonical_body(&request.body);
        let items = item_count(&body.value);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        let number = state.count;
        state.summary.push_str(&format!("{} {target} {}\n", request.method, body.sha256));
        let mut record = RequestRecord {
            t_ms: now_ms(),
            number,
            method: request.method.clone(),
            target: target.clone(),
            headers: redacted_headers(&request.headers),
            items,
            sha256: body.sha256,
            body: body.value,
        };
        if state.bytes_left < body.bytes {
            record.body = Value::Null;
        }
        state.write(&RequestLine::Request(record));
        LoggedRequest { number, target, items, sha256: body.sha256 }
    }

    /// Records the answer to a request.
    pub(super) fn add_answer(&self, number: u64, answer: &ReceivedAnswer) {
        let text = redacted_answer(&answer.body);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = state.bytes_left >= text.len() as u64;
        let head = answer.head.as_ref();
        state.write(&RequestLine::Answer(AnswerRecord {
            t_ms: now_ms(),
            number,
            status: head.map(|head| head.status),
            headers: head.map(|head| redacted_headers(&head.headers)).unwrap_or_default(),
            sha256: Sha256::of(text.as_bytes()),
            body: has_room.then_some(text),
            error: answer.error.as_ref().map(|error| redactor().redact_text(error)),
        }));
    }

    /// What goes into the iteration's record.
    pub(super) fn summary(&self) -> RecordedRequests {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        RecordedRequests { count: state.count, sha256: Sha256::of(state.summary.as_bytes()), replay: None }
    }
}

impl LogState {
    /// Appends a line. A failure ends the log and nothing else: an agent does not stop because its log cannot be written.
    fn write(&mut self, line: &RequestLine) {
        let Ok(mut text) = serde_json::to_string(line) else { return };
        text.push('\n');
        self.bytes_left = self.bytes_left.saturating_sub(text.len() as u64);
        let is_written = self.file.as_mut().is_some_and(|file| file.write_all(text.as_bytes()).is_ok());
        if !is_written {
            self.file = None;
        }
    }
}

/// An empty file that only its owner may read, in the place of any other.
fn create_private(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// A body as it is hashed and stored.
struct CanonicalBody {
    value: Value,
    sha256: Sha256,
    bytes: u64,
}

fn canonical_body(body: &[u8]) -> CanonicalBody {
    let redacted = redactor().redact(body);
    let (value, text) = match serde_json::from_slice::<Value>(&redacted) {
        Ok(mut value) => {
            value.sort_all_objects();
            let text = value.to_string();
            (value, text)
        }
        Err(_) => {
            let text = String::from_utf8_lossy(&redacted).into_owned();
            (Value::from(text.clone()), text)
        }
    };
    let value = if body.is_empty() { Value::Null } else { value };
    CanonicalBody { value, sha256: Sha256::of(text.as_bytes()), bytes: text.len() as u64 }
}

/// An answer without keys. A streamed one has its text in the data of many events, and a key can be in several of them.
fn redacted_answer(body: &[u8]) -> String {
    const DATA: &str = "data:";
    let text = String::from_utf8_lossy(body);
    let data = |line: &str| serde_json::from_str::<Value>(line.strip_prefix(DATA)?).ok();
    let events: Vec<Value> = text.lines().filter_map(data).collect();
    let mut redacted = events.clone();
    redactor().redact_events(&mut redacted);
    if redacted == events {
        return redactor().redact_text(&text);
    }
    let mut changes = events.iter().zip(redacted);
    let line = |line: &str| match data(line.trim_end()).and_then(|_| changes.next()) {
        Some((before, after)) if *before != after => format!("{DATA} {after}\n"),
        Some(_) | None => line.to_owned(),
    };
    redactor().redact_text(&text.split_inclusive('\n').map(line).collect::<String>())
}

/// How many entries the conversation of a request has, by the names that the providers' interfaces use.
fn item_count(body: &Value) -> Option<u64> {
    let lists = ["input", "messages", "contents"].into_iter().filter_map(|name| body.get(name)?.as_array());
    lists.map(|list| list.len() as u64).next()
}

fn redacted_headers(headers: &[Header]) -> Map<String, Value> {
    let value = |header: &Header| {
        let is_secret = SECRET_HEADERS.contains(&header.name.as_str()) || is_key_name(&header.name);
        if is_secret { REDACTED.to_owned() } else { redactor().redact_text(&header.value) }
    };
    headers.iter().map(|header| (header.name.clone(), Value::from(value(header)))).collect()
}

/// A path and query without keys.
fn redacted_target(target: &str) -> String {
    let target = redactor().redact_text(target);
    let Some((path, query)) = target.split_once('?') else { return target };
    let parameter = |parameter: &str| match parameter.split_once('=') {
        Some((name, _)) if is_key_name(name) => format!("{name}={REDACTED}"),
        Some(_) | None => parameter.to_owned(),
    };
    format!("{path}?{}", query.split('&').map(parameter).collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &str) -> Request {
        let header = |name: &str, value: &str| Header { name: name.to_owned(), value: value.to_owned() };
        Request {
            method: "POST".to_owned(),
            headers: vec![
                header("authorization", "Bearer sk-abcdefghijklmnop"),
                header("x-api-key", "short"),
                header("x-goog-api-key", "short"),
                header("accept", "text/event-stream"),
            ],
            body: body.as_bytes().to_vec(),
            ..Request::default()
        }
    }

    #[test]
    fn a_hash_does_not_depend_on_the_order_of_keys() {
        let log = RequestLog::create(None, 1 << 20).unwrap();
        let one = log.add_request(&request(r#"{"b": 1, "a": {"d": 2, "c": 3}, "input": [1, 2]}"#), "/v1/a");
        let two = log.add_request(&request(r#"{"input":[1,2],"a":{"c":3,"d":2},"b":1}"#), "/v1/a");
        let other = log.add_request(&request(r#"{"input":[2,1],"a":{"c":3,"d":2},"b":1}"#), "/v1/a");
        assert_eq!((one.sha256, one.items), (two.sha256, Some(2)));
        assert_ne!(other.sha256, one.sha256);
        assert_eq!(log.summary().count, 3);
    }

    #[test]
    fn no_key_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.jsonl");
        let log = RequestLog::create(Some(&path), 1 << 20).unwrap();
        let key = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789";
        log.add_request(
            &request(&format!(r#"{{"messages": ["my key is {key}"]}}"#)),
            "/v1/a?key=AIzaShort&b=c",
        );
        let answer =
            ReceivedAnswer { body: format!("data: {key}\n").into_bytes(), ..ReceivedAnswer::default() };
        log.add_answer(1, &answer);
        let text = std::fs::read_to_string(&path).unwrap();
        for secret in [key, "abcdefghijklmnop", "short", "AIzaShort"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert!(text.contains("/v1/a?key=[redacted]&b=c") && text.contains("text/event-stream"), "{text}");
        let lines: Vec<RequestLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let RequestLine::Request(record) = &lines[0] else { panic!("{text}") };
        let canonical = serde_json::to_string(&record.body).unwrap();
        assert_eq!(record.sha256, Sha256::of(canonical.as_bytes()), "what is stored is what is hashed");
    }

    #[test]
    fn a_key_in_two_events_of_an_answer_is_found_wherever_it_is_cut() {
        let key = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let deltas: [fn(&str) -> Value; 3] = [
            |text| serde_json::json!({ "type": "content_block_delta", "index": 0, "delta": { "text": text } }),
            |text| serde_json::json!({ "type": "response.output_text.delta", "item_id": "m", "delta": text }),
            |text| serde_json::json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }),
        ];
        for delta in deltas {
            for at in 1..key.len() {
                let (one, two) = key.split_at(at);
                let events = [delta(&format!("key: {one}")), delta(&format!("{two} end"))];
                let body: String =
                    events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect();
                let body = body + "data: [DONE]\n\n";
                let answer = redacted_answer(body.as_bytes());
                let data = answer.lines().filter_map(|line| line.strip_prefix("data: ")).collect::<Vec<_>>();
                assert_eq!(data.len(), 3, "{answer}");
                let sent: Vec<Value> =
                    data[..2].iter().map(|event| serde_json::from_str(event).unwrap()).collect();
                assert_eq!(sent, ["key: [redacted]", " end"].map(delta), "{at}");
                assert!(answer.ends_with("data: [DONE]\n\n"), "{answer}");
            }
        }
        assert_eq!(redacted_answer(b"data: {\"b\": 1}\r\n"), "data: {\"b\": 1}\r\n");
    }

    #[test]
    fn a_log_that_is_full_keeps_hashes_without_bodies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.jsonl");
        let log = RequestLog::create(Some(&path), 10).unwrap();
        let logged = log.add_request(&request(r#"{"messages": ["a long body"]}"#), "/v1/a");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("a long body") && text.contains(&logged.sha256.to_string()), "{text}");
    }
}
