//! Injected faults, as a client sees them on the wire.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Reply, connect, post};
use crate::start_model;

const PATHS: [&str; 4] = [
    "/v1/responses",
    "/v1/messages",
    "/v1/chat/completions",
    "/v1beta/models/m:streamGenerateContent?alt=sse",
];

/// A request that is valid in every wire format.
fn request_body(is_stream: bool) -> Value {
    json!({
        "stream": is_stream,
        "prompt_cache_key": "s1",
        "input": "go",
        "messages": [{ "role": "user", "content": "go" }],
        "contents": [{ "role": "user", "parts": [{ "text": "go" }] }],
        "tools": [{ "type": "function", "name": "bash", "function": { "name": "bash" }, "functionDeclarations": [{ "name": "bash" }] }],
    })
}

fn with_fault(fault: &str) -> String {
    format!("[[part]]\n[[part.step]]\ndo.final = 'the answer'\nfault = [{fault}]\n")
}

fn fault_names(model: &scripted_model::ScriptedModel) -> Vec<Option<String>> {
    model.requests().into_iter().map(|request| request.fault).collect()
}

#[test]
fn http_error_has_its_status_headers_and_body_as_often_as_the_script_says() {
    let fault = "{ times = 2, what.http = { status = 429, headers = { retry-after = '1' }, \
        body = { error = { type = 'usage_limit_reached', resets_at = 1900000000 } } } }, { times = 1, what.http.status = 500 }";
    for path in PATHS {
        let model = start_model(&with_fault(fault));
        let replies: Vec<Reply> = (0..4).map(|_| post(model.address(), path, &request_body(true))).collect();
        let statuses: Vec<u16> = replies.iter().filter_map(|reply| reply.status).collect();
        assert_eq!(statuses, [429, 429, 500, 200], "{path}");
        assert_eq!(replies[0].headers["retry-after"], "1");
        assert_eq!(replies[1].json()["error"]["resets_at"], 1_900_000_000);
        assert!(replies[2].json()["error"].is_object());
        assert!(replies[3].body.contains("the answer"));
        let names = fault_names(&model);
        assert_eq!(
            names,
            [Some("http 429".to_owned()), Some("http 429".to_owned()), Some("http 500".to_owned()), None]
        );
    }
}

#[test]
fn http_error_without_a_body_gets_the_formats_error_body() {
    for (path, pointer, kind) in [
        ("/v1/messages", "/error/type", "overloaded_error"),
        ("/v1/responses", "/error/code", "scripted"),
        ("/v1beta/models/m:generateContent", "/error/status", "INTERNAL"),
    ] {
        let model = start_model("[[part]]\n[[part.step]]\nfault = [{ what.http.status = 529 }]\n");
        for _ in 0..3 {
            let reply = post(model.address(), path, &request_body(false));
            assert_eq!((reply.status, reply.json().pointer(pointer)), (Some(529), Some(&json!(kind))));
        }
    }
}

#[test]
fn dropped_connection_sends_no_response() {
    for path in PATHS {
        let model = start_model(&with_fault("{ times = 1, what = 'drop' }"));
        assert_eq!(post(model.address(), path, &request_body(true)), Reply::default());
        assert_eq!(post(model.address(), path, &request_body(true)).status, Some(200));
    }
}

#[test]
fn cut_answer_is_incomplete() {
    for path in PATHS {
        for is_stream in [true, false] {
            let path = if is_stream {
                path.to_owned()
            } else {
                path.replace("streamGenerateContent?alt=sse", "generateContent")
            };
            let model = start_model(&with_fault("{ times = 1, what = 'cut' }"));
            let reply = post(model.address(), &path, &request_body(is_stream));
            assert_eq!((reply.status, reply.is_complete), (Some(200), false), "{path}: {}", reply.body);
            assert!(!reply.body.is_empty(), "{path}");
            let complete = post(model.address(), &path, &request_body(is_stream));
            assert!(complete.is_complete && complete.body.len() > reply.body.len(), "{path}");
        }
    }
}

#[test]
fn error_in_the_stream_has_the_formats_shape() {
    let fault = "{ what.event = { code = 'context_length_exceeded', type = 'overloaded_error', message = 'too long' } }";
    for (path, name, pointer) in [
        ("/v1/responses", "response.failed", "/response/error/code"),
        ("/v1/messages", "error", "/error/code"),
        ("/v1/chat/completions", "", "/error/code"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "", "/error/code"),
    ] {
        let model = start_model(&with_fault(fault));
        let reply = post(model.address(), path, &request_body(true));
        let (event, data) = reply.events().pop().unwrap();
        assert_eq!((event.as_str(), data.pointer(pointer)), (name, Some(&json!("context_length_exceeded"))));
        assert!(reply.is_complete && !reply.body.contains("the answer"));
    }
    let model = start_model(&with_fault(fault));
    assert_eq!(post(model.address(), "/v1/messages", &request_body(false)).status, Some(500));
}

#[test]
fn hang_sends_the_headers_and_then_nothing() {
    let model = start_model(&with_fault("{ what = 'hang' }"));
    let body = request_body(true).to_string();
    let mut stream = connect(model.address());
    write!(stream, "POST /v1/messages HTTP/1.1\r\nhost: l\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    let mut status_line = [0; 15];
    stream.read_exact(&mut status_line).unwrap();
    assert_eq!(&status_line, b"HTTP/1.1 200 OK");
    assert!(model.wait_until(Duration::from_secs(60), |requests| requests.len() == 1));
    // Meanwhile the server answers other requests, and it can stop.
    assert_eq!(post(model.address(), "/v1/messages/count_tokens", &json!({})).status, Some(200));
    drop(model);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("the answer"));
}

#[test]
fn delayed_answer_takes_at_least_its_delay() {
    let model = start_model("[[part]]\n[[part.step]]\ndo.final = 'x'\ndelay_ms = 300\n");
    let before = Instant::now();
    assert_eq!(post(model.address(), "/v1/messages", &request_body(true)).status, Some(200));
    assert!(before.elapsed() >= Duration::from_millis(300));
}

#[test]
fn steps_counted_by_requests_are_per_session_and_exclude_faults() {
    let model = start_model(
        "count = 'requests'\n[[part]]\n[[part.step]]\ndo.final = '0'\nfault = [{ times = 1, what.http.status = 500 }]\n\
        [[part.step]]\ndo.final = '1'\n",
    );
    let step = |session: &str| {
        let mut body = request_body(true);
        body["prompt_cache_key"] = json!(session);
        post(model.address(), "/v1/responses", &body);
        model.requests().pop().unwrap().step.unwrap()
    };
    let steps: Vec<usize> = ["a", "a", "a", "b", "b", "a"].map(step).to_vec();
    assert_eq!(steps, [0, 0, 1, 0, 1, 1]);
}

#[test]
fn requests_beyond_the_limit_are_refused() {
    let model = start_model("requests_max = 2\n[[part]]\n[[part.step]]\ndo.final = 'x'\n");
    let statuses: Vec<Option<u16>> =
        (0..4).map(|_| post(model.address(), "/v1/messages", &request_body(true)).status).collect();
    assert_eq!(statuses, [Some(200), Some(200), Some(400), Some(400)]);
    assert!(
        post(model.address(), "/v1/messages", &request_body(true))
            .body
            .contains("the script allows 2 requests")
    );
}
