//! What goes wrong on demand, on the wire.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Reply, open, post};
use crate::playing;

const PATHS: [&str; 4] = [
    "/v1/responses",
    "/v1/messages",
    "/v1/chat/completions",
    "/v1beta/models/m:streamGenerateContent?alt=sse",
];

/// A request that every format reads, each its own part of it.
fn asking(is_stream: bool) -> Value {
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

fn names(model: &scripted_model::ScriptedModel) -> Vec<Option<String>> {
    model.requests().into_iter().map(|request| request.fault).collect()
}

#[test]
fn an_http_error_has_its_status_its_headers_and_its_body_as_often_as_it_says() {
    let fault = "{ times = 2, what.http = { status = 429, headers = { retry-after = '1' }, \
        body = { error = { type = 'usage_limit_reached', resets_at = 1900000000 } } } }, { times = 1, what.http.status = 500 }";
    for path in PATHS {
        let model = playing(&with_fault(fault));
        let replies: Vec<Reply> = (0..4).map(|_| post(model.address(), path, &asking(true))).collect();
        let statuses: Vec<u16> = replies.iter().filter_map(|reply| reply.status).collect();
        assert_eq!(statuses, [429, 429, 500, 200], "{path}");
        assert_eq!(replies[0].headers["retry-after"], "1");
        assert_eq!(replies[1].json()["error"]["resets_at"], 1_900_000_000);
        assert!(replies[2].json()["error"].is_object());
        assert!(replies[3].body.contains("the answer"));
        let told = names(&model);
        assert_eq!(
            told,
            [Some("http 429".to_owned()), Some("http 429".to_owned()), Some("http 500".to_owned()), None]
        );
    }
}

#[test]
fn errors_without_a_body_get_what_their_format_has() {
    for (path, pointer, kind) in [
        ("/v1/messages", "/error/type", "overloaded_error"),
        ("/v1/responses", "/error/code", "scripted"),
        ("/v1beta/models/m:generateContent", "/error/status", "INTERNAL"),
    ] {
        let model = playing("[[part]]\n[[part.step]]\nfault = [{ what.http.status = 529 }]\n");
        for _ in 0..3 {
            let reply = post(model.address(), path, &asking(false));
            assert_eq!((reply.status, reply.json().pointer(pointer)), (Some(529), Some(&json!(kind))));
        }
    }
}

#[test]
fn a_dropped_connection_says_nothing() {
    for path in PATHS {
        let model = playing(&with_fault("{ times = 1, what = 'drop' }"));
        assert_eq!(post(model.address(), path, &asking(true)), Reply::default());
        assert_eq!(post(model.address(), path, &asking(true)).status, Some(200));
    }
}

#[test]
fn a_cut_answer_begins_and_does_not_end() {
    for path in PATHS {
        for is_stream in [true, false] {
            let path = if is_stream {
                path.to_owned()
            } else {
                path.replace("streamGenerateContent?alt=sse", "generateContent")
            };
            let model = playing(&with_fault("{ times = 1, what = 'cut' }"));
            let reply = post(model.address(), &path, &asking(is_stream));
            assert_eq!((reply.status, reply.is_whole), (Some(200), false), "{path}: {}", reply.body);
            assert!(!reply.body.is_empty(), "{path}");
            let whole = post(model.address(), &path, &asking(is_stream));
            assert!(whole.is_whole && whole.body.len() > reply.body.len(), "{path}");
        }
    }
}

#[test]
fn an_error_in_the_stream_looks_as_its_format_has_it() {
    let fault = "{ what.event = { code = 'context_length_exceeded', type = 'overloaded_error', message = 'too long' } }";
    for (path, name, pointer) in [
        ("/v1/responses", "response.failed", "/response/error/code"),
        ("/v1/messages", "error", "/error/code"),
        ("/v1/chat/completions", "", "/error/code"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "", "/error/code"),
    ] {
        let model = playing(&with_fault(fault));
        let reply = post(model.address(), path, &asking(true));
        let (found, data) = reply.events().pop().unwrap();
        assert_eq!((found.as_str(), data.pointer(pointer)), (name, Some(&json!("context_length_exceeded"))));
        assert!(reply.is_whole && !reply.body.contains("the answer"));
    }
    let model = playing(&with_fault(fault));
    assert_eq!(post(model.address(), "/v1/messages", &asking(false)).status, Some(500));
}

#[test]
fn a_hang_begins_an_answer_and_lasts_until_the_client_goes() {
    let model = playing(&with_fault("{ what = 'hang' }"));
    let body = asking(true).to_string();
    let mut stream = open(model.address());
    write!(stream, "POST /v1/messages HTTP/1.1\r\nhost: l\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .unwrap();
    let mut begun = [0; 15];
    stream.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200 OK");
    assert!(model.wait_until(Duration::from_secs(60), |requests| requests.len() == 1));
    // Others are answered meanwhile, and the server can be stopped.
    assert_eq!(post(model.address(), "/v1/messages/count_tokens", &json!({})).status, Some(200));
    drop(model);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("the answer"));
}

#[test]
fn a_delayed_answer_does_not_come_before_its_time() {
    let model = playing("[[part]]\n[[part.step]]\ndo.final = 'x'\ndelay_ms = 300\n");
    let before = Instant::now();
    assert_eq!(post(model.address(), "/v1/messages", &asking(true)).status, Some(200));
    assert!(before.elapsed() >= Duration::from_millis(300));
}

#[test]
fn counting_requests_gives_each_session_its_own_row_of_steps_and_faults_are_no_steps() {
    let model = playing(
        "count = 'requests'\n[[part]]\n[[part.step]]\ndo.final = '0'\nfault = [{ times = 1, what.http.status = 500 }]\n\
        [[part.step]]\ndo.final = '1'\n",
    );
    let step = |session: &str| {
        let mut body = asking(true);
        body["prompt_cache_key"] = json!(session);
        post(model.address(), "/v1/responses", &body);
        model.requests().pop().unwrap().step.unwrap()
    };
    let steps: Vec<usize> = ["a", "a", "a", "b", "b", "a"].map(step).to_vec();
    assert_eq!(steps, [0, 0, 1, 0, 1, 1]);
}

#[test]
fn nobody_can_ask_for_ever() {
    let model = playing("requests_max = 2\n[[part]]\n[[part.step]]\ndo.final = 'x'\n");
    let statuses: Vec<Option<u16>> =
        (0..4).map(|_| post(model.address(), "/v1/messages", &asking(true)).status).collect();
    assert_eq!(statuses, [Some(200), Some(200), Some(400), Some(400)]);
    assert!(
        post(model.address(), "/v1/messages", &asking(true)).body.contains("the script allows 2 requests")
    );
}
