//! The HTTP server: logs each request, lets `choice` select the answer, and sends it in the request's wire format.

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

pub(crate) async fn accept(listener: TcpListener, script: Arc<ModelScript>, log: Arc<RequestLog>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let script = Arc::clone(&script);
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &script, &log));
            let connection = hyper::server::conn::http1::Builder::new();
            // Returns an error wherever the script closes the connection.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

type ServerResponse = Result<Response<ScriptedBody>, ConnectionClosed>;

async fn answer(request: hyper::Request<Incoming>, script: &ModelScript, log: &RequestLog) -> ServerResponse {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let entry = LoggedRequest::new(head.method.as_str(), &path, &head.headers, body.clone());
    let wire = WireFormat::of_path(&path).filter(|_| head.method == Method::POST);
    let Some(wire) = wire else {
        let is_websocket = head.headers.get(UPGRADE).is_some();
        let (kind, status, content) = answer_probe(&head.method, &path, is_websocket);
        log.record(entry, |_, entry| entry.kind = kind);
        return json_response(status, &content);
    };
    if !body.is_object() {
        log.record(entry, |_, entry| entry.wire = Some(wire));
        return json_response(400, &wire.error(400, "the body is not a JSON object"));
    }
    let model_request = wire.read(&path, &body);
    let choice = log.record(entry, |state, entry| {
        entry.wire = Some(wire);
        choose(script, &model_request, state, entry)
    });
    match choice {
        ServerChoice::Refuse(why) => json_response(400, &wire.error(400, &format!("scripted model: {why}"))),
        ServerChoice::Answer(answer) => {
            send_answer(wire, &model_request, &answer, streams_events(wire, &path)).await
        }
    }
}

/// Answers requests that do not call the model.
fn answer_probe(method: &Method, path: &str, is_websocket: bool) -> (RequestKind, u16, Value) {
    let path = path.split('?').next().unwrap_or_default();
    let probe = |status: u16, value: Value| (RequestKind::Probe, status, value);
    if is_websocket {
        // On this status the client falls back to plain HTTP at once.
        return probe(426, json!({ "error": { "message": "WebSocket is not supported" } }));
    }
    match *method {
        Method::HEAD => probe(200, Value::Null),
        Method::GET if path.ends_with("/models") => {
            let model =
                json!({ "id": "scripted", "object": "model", "created": 0, "owned_by": "scripted-model" });
            probe(200, json!({ "object": "list", "data": [model], "models": [] }))
        }
        Method::POST if path.ends_with("/messages/count_tokens") => {
            probe(200, json!({ "input_tokens": 1000 }))
        }
        Method::POST if path.ends_with(":countTokens") => probe(200, json!({ "totalTokens": 1000 })),
        _ => (
            RequestKind::Refused,
            404,
            json!({ "error": { "message": format!("unknown route: {method} {path}") } }),
        ),
    }
}

/// Whether a stream consists of server-sent events. Gemini without `alt=sse` sends a JSON list instead.
fn streams_events(wire: WireFormat, path: &str) -> bool {
    wire != WireFormat::Gemini || path.contains("alt=sse")
}

async fn send_answer(
    wire: WireFormat,
    request: &ModelRequest,
    answer: &ChosenAnswer,
    with_events: bool,
) -> ServerResponse {
    if answer.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
    }
    let turn = &answer.turn;
    let encoded = wire.write(turn, request);
    let is_stream = request.is_stream && with_events;
    let document = if request.is_stream { json!([encoded.document]) } else { encoded.document.clone() };
    match &answer.fault {
        None if is_stream => event_stream(encoded.events.iter(), BodyEnd::Complete),
        None => json_response(200, &document),
        Some(InjectedFault::Drop) => Err(ConnectionClosed),
        Some(InjectedFault::Http(http)) => http_error(wire, http),
        Some(InjectedFault::Hang) => event_stream([].into_iter(), BodyEnd::Open),
        Some(InjectedFault::Cut) if is_stream => {
            event_stream(encoded.events.iter().take(encoded.half), BodyEnd::Cut)
        }
        Some(InjectedFault::Cut) => {
            let text = document.to_string();
            let half: String = text.chars().take(text.chars().count() / 2).collect();
            response(200, "application/json", ScriptedBody::new([half], BodyEnd::Cut))
        }
        Some(InjectedFault::Event(error)) if is_stream => {
            event_stream(wire.error_events(turn, request, error).iter(), BodyEnd::Complete)
        }
        Some(InjectedFault::Event(error)) => json_response(500, &json!({ "type": "error", "error": error })),
    }
}

fn http_error(wire: WireFormat, http: &HttpError) -> ServerResponse {
    let default_body = || wire.error(http.status, &format!("scripted error {}", http.status));
    let mut response = json_response(http.status, &http.body.clone().unwrap_or_else(default_body))?;
    for (name, value) in &http.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<hyper::header::HeaderName>(), value.parse()) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

fn event_stream<'e>(events: impl Iterator<Item = &'e SseEvent>, end: BodyEnd) -> ServerResponse {
    let mut response =
        response(200, "text/event-stream", ScriptedBody::new(events.map(SseEvent::to_text), end))?;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, hyper::header::HeaderValue::from_static("no-cache"));
    headers.insert(CONNECTION, hyper::header::HeaderValue::from_static("close"));
    Ok(response)
}

fn json_response(status: u16, value: &Value) -> ServerResponse {
    let text = if value.is_null() { String::new() } else { value.to_string() };
    response(status, "application/json", ScriptedBody::new([text], BodyEnd::Complete))
}

fn response(status: u16, content_type: &'static str, body: ScriptedBody) -> ServerResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    Ok(response)
}
