//! Every wire format: how the server parses requests and encodes answers.

use scripted_model::{RequestKind, WireFormat};
use serde_json::{Value, json};

use crate::HELLO;
use crate::client::{post, send};
use crate::start_model;

/// Path and body of a request with these tools and `results` tool results.
fn request(wire: WireFormat, tools: &[&str], results: usize, prompt: &str) -> (&'static str, Value) {
    let repeated = |result: Value| vec![result; results];
    let declare = |shape: &dyn Fn(&str) -> Value| tools.iter().map(|name| shape(name)).collect::<Vec<_>>();
    match wire {
        WireFormat::Responses => {
            let mut input = vec![
                json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": prompt }] }),
            ];
            input.extend(repeated(
                json!({ "type": "function_call_output", "call_id": "c", "output": "leaf x" }),
            ));
            let tools = declare(&|name| json!({ "type": "function", "name": name }));
            ("/v1/responses", json!({ "model": "m", "input": input, "tools": tools, "stream": true }))
        }
        WireFormat::Messages => {
            let mut messages = vec![json!({ "role": "user", "content": prompt })];
            messages.extend(repeated(json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": "leaf x" }] })));
            let tools = declare(&|name| json!({ "name": name }));
            (
                "/v1/messages?beta=true",
                json!({ "model": "m", "messages": messages, "tools": tools, "stream": true }),
            )
        }
        WireFormat::Chat => {
            let mut messages = vec![
                json!({ "role": "system", "content": "leaf x" }),
                json!({ "role": "user", "content": [{ "type": "text", "text": prompt }] }),
            ];
            messages.extend(repeated(json!({ "role": "tool", "tool_call_id": "c", "content": "leaf x" })));
            let tools = declare(&|name| json!({ "type": "function", "function": { "name": name } }));
            (
                "/v1/chat/completions",
                json!({ "model": "m", "messages": messages, "tools": tools, "stream": true }),
            )
        }
        WireFormat::Gemini => {
            let mut contents = vec![json!({ "role": "user", "parts": [{ "text": prompt }] })];
            contents.extend(repeated(
                json!({ "role": "user", "parts": [{ "functionResponse": { "name": "s", "response": {} } }] }),
            ));
            let tools = declare(&|name| json!({ "name": name }));
            (
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                json!({ "contents": contents, "tools": [{ "functionDeclarations": tools }] }),
            )
        }
    }
}

const ALL_FORMATS: [WireFormat; 4] =
    [WireFormat::Responses, WireFormat::Messages, WireFormat::Chat, WireFormat::Gemini];

fn without_stream(path: &str, mut body: Value) -> (String, Value) {
    body.as_object_mut().unwrap().remove("stream");
    (path.replace(":streamGenerateContent?alt=sse", ":generateContent"), body)
}

#[test]
fn tool_results_in_the_request_select_the_step_in_every_format() {
    for wire in ALL_FORMATS {
        let model = start_model(HELLO);
        for (results, step) in [(0, 0), (1, 1), (0, 0), (2, 1)] {
            let (path, body) = request(wire, &["bash"], results, "go");
            assert_eq!(post(model.address(), path, &body).status, Some(200));
            let request = model.requests().pop().unwrap();
            assert_eq!((request.wire, request.kind), (Some(wire), RequestKind::Step));
            assert_eq!((request.part, request.step, request.fault), (Some(0), Some(step), None));
            assert_eq!(request.tools, ["bash"]);
        }
    }
}

#[test]
fn user_text_selects_the_part_and_tool_output_does_not() {
    let script = "[[part]]\nwhen = ['leaf x']\nunless = ['attempt 2']\n[[part.step]]\ndo.final = 'x'\n\
        [[part]]\nwhen = ['leaf', 'y']\n[[part.step]]\ndo.final = 'y'\n";
    for wire in ALL_FORMATS {
        let model = start_model(script);
        for (prompt, part) in
            [("leaf x", Some(0)), ("y leaf", Some(1)), ("leaf x attempt 2", None), ("z", None)]
        {
            let (path, body) = request(wire, &["bash"], 1, prompt);
            let reply = post(model.address(), path, &body);
            assert_eq!(
                reply.status,
                Some(if part.is_some() { 200 } else { 400 }),
                "{prompt}: {}",
                reply.body
            );
            assert_eq!(model.requests().pop().unwrap().part, part);
        }
        let (path, body) = request(wire, &["bash"], 0, "z");
        let reply = post(model.address(), path, &body);
        assert!(reply.body.contains("no part of the script matches the prompt"), "{}", reply.body);
    }
}

#[test]
fn responses_format_streams_the_call_and_the_answer() {
    let model = start_model(HELLO);
    let (path, body) = request(WireFormat::Responses, &["exec_command"], 0, "go");
    let reply = post(model.address(), path, &body);
    assert!(reply.is_complete);
    let events = reply.events();
    assert_eq!(
        (events[0].0.as_str(), events.last().unwrap().0.as_str()),
        ("response.created", "response.completed")
    );
    let items: Vec<&Value> = events
        .iter()
        .filter(|(name, _)| name == "response.output_item.done")
        .map(|(_, data)| &data["item"])
        .collect();
    assert_eq!(items[0]["content"][0]["text"], "first a file");
    assert_eq!(
        (&items[1]["name"], &items[1]["arguments"]),
        (&json!("exec_command"), &json!(r#"{"cmd":"echo hello > hello.txt"}"#))
    );
    for (name, data) in &events {
        assert_eq!(&data["type"], name);
    }

    let (path, body) = request(WireFormat::Responses, &["exec_command"], 1, "go");
    let completed = post(model.address(), path, &body).events().pop().unwrap().1;
    assert_eq!(
        completed["response"]["usage"],
        json!({ "input_tokens": 5000, "input_tokens_details": { "cached_tokens": 3000 }, "output_tokens": 70,
            "output_tokens_details": { "reasoning_tokens": 7 }, "total_tokens": 5070 })
    );
    assert_eq!(
        completed["response"]["output"][0]["content"][0]["text"],
        r#"{"status":"done","summary":"made it"}"#
    );
    let (path, body) = without_stream(path, body);
    assert_eq!(post(model.address(), &path, &body).json()["status"], "completed");
}

#[test]
fn code_mode_gets_a_program_that_calls_the_shell() {
    let model = start_model(HELLO);
    let tools = json!({ "type": "additional_tools", "tools": [
        { "type": "namespace", "tools": [{ "type": "custom", "name": "exec" }, { "type": "function", "name": "wait" }] } ] });
    let body = json!({ "input": [tools, { "role": "user", "content": "go" }], "stream": true });
    let item = post(model.address(), "/v1/responses", &body).events().pop().unwrap().1["response"]["output"]
        [1]
    .clone();
    assert_eq!((&item["type"], &item["name"]), (&json!("custom_tool_call"), &json!("exec")));
    assert_eq!(
        item["input"],
        r#"const r = await tools.exec_command({cmd: "echo hello > hello.txt"}); text(r.output);"#
    );
}

#[test]
fn messages_format_streams_the_call_and_the_structured_answer() {
    let model = start_model(HELLO);
    let (path, body) = request(WireFormat::Messages, &["Read", "Bash", "StructuredOutput"], 0, "go");
    let reply = post(model.address(), path, &body);
    assert_eq!(
        reply.event_names(),
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    let events = reply.events();
    assert_eq!(events[2].1["delta"]["text"], "first a file");
    assert_eq!(
        (&events[4].1["content_block"]["name"], &events[4].1["content_block"]["input"]),
        (&json!("Bash"), &json!({}))
    );
    assert!(events[5].1["delta"]["partial_json"].as_str().unwrap().contains("echo hello > hello.txt"));
    assert_eq!(events[7].1["delta"]["stop_reason"], "tool_use");

    let (path, body) = request(WireFormat::Messages, &["Bash", "StructuredOutput"], 1, "go");
    let (path, body) = without_stream(path, body);
    let document = post(model.address(), &path, &body).json();
    assert_eq!(document["content"][0]["name"], "StructuredOutput");
    assert_eq!(document["content"][0]["input"], json!({ "status": "done", "summary": "made it" }));
    let usage = json!({ "input_tokens": 2000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3000, "output_tokens": 70 });
    assert_eq!(document["usage"], usage);
    let (path, body) = request(WireFormat::Messages, &["Bash"], 1, "go");
    let (path, body) = without_stream(path, body);
    let document = post(model.address(), &path, &body).json();
    assert_eq!(
        (&document["content"][0]["type"], &document["stop_reason"]),
        (&json!("text"), &json!("end_turn"))
    );
}

#[test]
fn chat_format_streams_the_call_and_the_answer() {
    let model = start_model(HELLO);
    let (path, body) = request(WireFormat::Chat, &["bash"], 0, "go");
    let events = post(model.address(), path, &body).events();
    assert_eq!(events[0].1["choices"][0]["delta"]["content"], "first a file");
    let call = &events[1].1["choices"][0]["delta"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "bash");
    assert_eq!(events[2].1["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(events[3].1["usage"]["prompt_tokens"], 1000);
    assert_eq!(events[4].1, "[DONE]");

    let (path, body) = request(WireFormat::Chat, &["bash", "structured_output"], 1, "go");
    let (path, body) = without_stream(path, body);
    let document = post(model.address(), &path, &body).json();
    let call = &document["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("structured_output"), &json!(r#"{"status":"done","summary":"made it"}"#))
    );
    assert_eq!(document["usage"]["prompt_tokens_details"]["cached_tokens"], 3000);
}

#[test]
fn gemini_format_answers_as_events_as_a_list_and_as_one_document() {
    let model = start_model(HELLO);
    let (path, body) = request(WireFormat::Gemini, &["run_shell_command"], 0, "go");
    let events = post(model.address(), path, &body).events();
    let part = |event: &Value, index: usize| event["candidates"][0]["content"]["parts"][index].clone();
    assert_eq!(part(&events[0].1, 0)["text"], "first a file");
    assert_eq!(part(&events[0].1, 1)["functionCall"]["name"], "run_shell_command");
    assert_eq!(events[1].1["candidates"][0]["finishReason"], "STOP");

    let list = post(model.address(), &path.replace("?alt=sse", ""), &body).json();
    assert_eq!(part(&list[0], 0)["text"], "first a file");
    let (path, body) = request(WireFormat::Gemini, &["run_shell_command"], 1, "go");
    let (path, body) = without_stream(path, body);
    let document = post(model.address(), &path, &body).json();
    assert_eq!(part(&document, 0)["text"], r#"{"status":"done","summary":"made it"}"#);
    let usage = &document["usageMetadata"];
    assert_eq!((&usage["candidatesTokenCount"], &usage["thoughtsTokenCount"]), (&json!(63), &json!(7)));
}

#[test]
fn shell_step_uses_any_known_shell_tool_and_fails_without_one() {
    for (tool, key) in [
        ("exec_command", "cmd"),
        ("shell_command", "command"),
        ("shell", "command"),
        ("Bash", "command"),
        ("bash", "command"),
        ("run_shell_command", "command"),
    ] {
        let model = start_model(HELLO);
        let (path, body) = request(WireFormat::Chat, &["read", tool], 0, "go");
        let (path, body) = without_stream(path, body);
        let call =
            post(model.address(), &path, &body).json()["choices"][0]["message"]["tool_calls"][0]["function"]
                .clone();
        assert_eq!(call["name"], tool);
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments[key].to_string().contains("echo hello > hello.txt"), "{arguments}");
    }
    let model = start_model(HELLO);
    let (path, body) = request(WireFormat::Chat, &["read", "write"], 0, "go");
    let reply = post(model.address(), path, &body);
    assert_eq!(reply.status, Some(400));
    assert!(
        reply.body.contains("the step needs a shell tool; the request offers only: read, write"),
        "{}",
        reply.body
    );
}

#[test]
fn tool_and_custom_steps_call_the_tool_by_name() {
    let script = "[[part]]\n[[part.step]]\ndo.tool = { name = 'Write', arguments = { path = 'a' } }\n\
        [[part.step]]\ndo.custom = { name = 'apply_patch', input = '*** Begin' }\n";
    let model = start_model(script);
    let answer = |wire, results| {
        let (path, body) = request(wire, &["Write"], results, "go");
        let (path, body) = without_stream(path, body);
        post(model.address(), &path, &body).json()
    };
    assert_eq!(answer(WireFormat::Messages, 0)["content"][0]["input"], json!({ "path": "a" }));
    assert_eq!(answer(WireFormat::Messages, 1)["content"][0]["input"], json!({ "input": "*** Begin" }));
    assert_eq!(answer(WireFormat::Responses, 1)["output"][0]["input"], "*** Begin");
}

#[test]
fn side_and_summary_requests_are_answered_without_using_a_step() {
    let model = start_model(HELLO);
    for (wire, text) in [
        (WireFormat::Messages, "ok"),
        (WireFormat::Chat, "ok"),
        (WireFormat::Responses, "ok"),
        (WireFormat::Gemini, "ok"),
    ] {
        let (path, body) = request(wire, &[], 0, "a title, please");
        assert!(post(model.address(), path, &body).body.contains(text));
        assert_eq!(model.requests().pop().unwrap().kind, RequestKind::Side);
    }
    let (path, body) = request(WireFormat::Messages, &["Bash"], 0, "… followed by a <summary> block");
    assert!(post(model.address(), path, &body).body.contains("what happened so far"));
    let request = model.requests().pop().unwrap();
    assert_eq!((request.kind, request.step), (RequestKind::Summary, None));
}

#[test]
fn probes_and_unknown_routes_are_classified() {
    let model = start_model(HELLO);
    let address = model.address();
    assert_eq!(send(address, "HEAD / HTTP/1.1\r\n", "").status, Some(200));
    assert_eq!(send(address, "GET /v1/models HTTP/1.1\r\n", "").json()["data"][0]["id"], "scripted");
    assert_eq!(post(address, "/v1/messages/count_tokens", &json!({})).json()["input_tokens"], 1000);
    assert_eq!(post(address, "/v1beta/models/m:countTokens", &json!({})).json()["totalTokens"], 1000);
    let upgrade = "GET /v1/responses HTTP/1.1\r\nupgrade: websocket\r\n";
    assert_eq!(send(address, upgrade, "").status, Some(426));
    assert!(model.requests().iter().all(|request| request.kind == RequestKind::Probe));
    assert_eq!(send(address, "GET /nowhere HTTP/1.1\r\n", "").status, Some(404));
    assert_eq!(
        send(address, "POST /v1/responses HTTP/1.1\r\ncontent-length: 3\r\n", "no!").status,
        Some(400)
    );
    assert!(model.requests().iter().skip(5).all(|request| request.kind == RequestKind::Refused));
}
