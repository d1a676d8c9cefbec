//! The server: requests in, what was chosen out.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, UPGRADE};
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

use crate::body::{BodyEnd, ConnectionClosed, ScriptedBody};
use crate::choice::{ChosenAnswer, ServerChoice, choose};
use crate::request_log::{LoggedRequest, RequestKind, RequestLog};
use crate::script::{HttpError, InjectedFault, ModelScript};
use crate::wire::{ModelRequest, SseEvent, WireFormat};

/// Takes connections for as long as it is polled.
pub(crate) async fn accept(listener: TcpListener, script: Arc<ModelScript>, ledger: Arc<RequestLog>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (script, ledger) = (Arc::clone(&script), Arc::clone(&ledger));
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &script, &ledger));
            let connection = hyper::server::conn::http1::Builder::new();
            // Ends in an error wherever the script closes the connection.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type Answered = Result<Response<ScriptedBody>, ConnectionClosed>;

async fn answer(request: hyper::Request<Incoming>, script: &ModelScript, ledger: &RequestLog) -> Answered {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let entry = LoggedRequest::new(head.method.as_str(), &path, &head.headers, body.clone());
    let wire = WireFormat::of(&path).filter(|_| head.method == Method::POST);
    let Some(wire) = wire else {
        let is_websocket = head.headers.get(UPGRADE).is_some();
        let (kind, status, told) = probe(&head.method, &path, is_websocket);
        ledger.enter(entry, |_, entry| entry.kind = kind);
        return document(status, &told);
    };
    if !body.is_object() {
        ledger.enter(entry, |_, entry| entry.wire = Some(wire));
        return document(400, &wire.error(400, "the body is not a JSON object"));
    }
    let asked = wire.read(&path, &body);
    let chosen = ledger.enter(entry, |pages, entry| {
        entry.wire = Some(wire);
        choose(script, &asked, pages, entry)
    });
    match chosen {
        ServerChoice::Refuse(why) => document(400, &wire.error(400, &format!("scripted model: {why}"))),
        ServerChoice::Answer(answer) => play(wire, &asked, &answer, is_in_events(wire, &path)).await,
    }
}

/// Everything but a question to the model.
fn probe(method: &Method, path: &str, is_websocket: bool) -> (RequestKind, u16, Value) {
    let path = path.split('?').next().unwrap_or_default();
    let told = |status: u16, value: Value| (RequestKind::Probe, status, value);
    if is_websocket {
        // Whoever hears this goes on over plain HTTP at once.
        return told(426, json!({ "error": { "message": "no web sockets here" } }));
    }
    match *method {
        Method::HEAD => told(200, Value::Null),
        Method::GET if path.ends_with("/models") => {
            let model = json!({ "id": "scripted", "object": "model", "created": 0, "owned_by": "nobody" });
            told(200, json!({ "object": "list", "data": [model], "models": [] }))
        }
        Method::POST if path.ends_with("/messages/count_tokens") => {
            told(200, json!({ "input_tokens": 1000 }))
        }
        Method::POST if path.ends_with(":countTokens") => told(200, json!({ "totalTokens": 1000 })),
        _ => (
            RequestKind::Refused,
            404,
            json!({ "error": { "message": format!("there is no {method} {path}") } }),
        ),
    }
}

/// Whether a stream is one of events. Gemini without `alt=sse` sends a list instead.
fn is_in_events(wire: WireFormat, path: &str) -> bool {
    wire != WireFormat::Gemini || path.contains("alt=sse")
}

async fn play(wire: WireFormat, asked: &ModelRequest, answer: &ChosenAnswer, in_events: bool) -> Answered {
    if answer.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
    }
    let turn = &answer.turn;
    let written = wire.write(turn, asked);
    let is_stream = asked.is_stream && in_events;
    let whole = if asked.is_stream { json!([written.whole]) } else { written.whole.clone() };
    match &answer.trouble {
        None if is_stream => stream(written.events.iter(), BodyEnd::Whole),
        None => document(200, &whole),
        Some(InjectedFault::Drop) => Err(ConnectionClosed),
        Some(InjectedFault::Http(http)) => refusal(wire, http),
        Some(InjectedFault::Hang) => stream([].into_iter(), BodyEnd::Open),
        Some(InjectedFault::Cut) if is_stream => {
            stream(written.events.iter().take(written.half), BodyEnd::Cut)
        }
        Some(InjectedFault::Cut) => {
            let text = whole.to_string();
            let half: String = text.chars().take(text.chars().count() / 2).collect();
            sent(200, "application/json", ScriptedBody::new([half], BodyEnd::Cut))
        }
        Some(InjectedFault::Event(error)) if is_stream => {
            stream(wire.failed(turn, asked, error).iter(), BodyEnd::Whole)
        }
        Some(InjectedFault::Event(error)) => document(500, &json!({ "type": "error", "error": error })),
    }
}

fn refusal(wire: WireFormat, http: &HttpError) -> Answered {
    let usual = || wire.error(http.status, &format!("scripted error {}", http.status));
    let mut response = document(http.status, &http.body.clone().unwrap_or_else(usual))?;
    for (name, value) in &http.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<hyper::header::HeaderName>(), value.parse()) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

fn stream<'e>(events: impl Iterator<Item = &'e SseEvent>, ending: BodyEnd) -> Answered {
    let mut response =
        sent(200, "text/event-stream", ScriptedBody::new(events.map(SseEvent::to_text), ending))?;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, hyper::header::HeaderValue::from_static("no-cache"));
    headers.insert(CONNECTION, hyper::header::HeaderValue::from_static("close"));
    Ok(response)
}

fn document(status: u16, value: &Value) -> Answered {
    let text = if value.is_null() { String::new() } else { value.to_string() };
    sent(status, "application/json", ScriptedBody::new([text], BodyEnd::Whole))
}

fn sent(status: u16, kind: &'static str, body: ScriptedBody) -> Answered {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    Ok(response)
}
