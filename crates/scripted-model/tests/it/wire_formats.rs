//! Every wire format: how requests are read, and how answers are written.

use scripted_model::{RequestKind, WireFormat};
use serde_json::{Value, json};

use crate::HELLO;
use crate::client::{ask, post};
use crate::playing;

/// A request in each format: after `results` tool results, with these tools.
fn asking(wire: WireFormat, tools: &[&str], results: usize, prompt: &str) -> (&'static str, Value) {
    let each = |one: Value| vec![one; results];
    let named = |shape: &dyn Fn(&str) -> Value| tools.iter().map(|name| shape(name)).collect::<Vec<_>>();
    match wire {
        WireFormat::Responses => {
            let mut input = vec![
                json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": prompt }] }),
            ];
            input.extend(each(json!({ "type": "function_call_output", "call_id": "c", "output": "leaf x" })));
            let tools = named(&|name| json!({ "type": "function", "name": name }));
            ("/v1/responses", json!({ "model": "m", "input": input, "tools": tools, "stream": true }))
        }
        WireFormat::Messages => {
            let mut messages = vec![json!({ "role": "user", "content": prompt })];
            messages.extend(each(json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": "leaf x" }] })));
            let tools = named(&|name| json!({ "name": name }));
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
            messages.extend(each(json!({ "role": "tool", "tool_call_id": "c", "content": "leaf x" })));
            let tools = named(&|name| json!({ "type": "function", "function": { "name": name } }));
            (
                "/v1/chat/completions",
                json!({ "model": "m", "messages": messages, "tools": tools, "stream": true }),
            )
        }
        WireFormat::Gemini => {
            let mut contents = vec![json!({ "role": "user", "parts": [{ "text": prompt }] })];
            contents.extend(each(
                json!({ "role": "user", "parts": [{ "functionResponse": { "name": "s", "response": {} } }] }),
            ));
            let tools = named(&|name| json!({ "name": name }));
            (
                "/v1beta/models/m:streamGenerateContent?alt=sse",
                json!({ "contents": contents, "tools": [{ "functionDeclarations": tools }] }),
            )
        }
    }
}

const ALL: [WireFormat; 4] =
    [WireFormat::Responses, WireFormat::Messages, WireFormat::Chat, WireFormat::Gemini];

fn without_stream(path: &str, mut body: Value) -> (String, Value) {
    body.as_object_mut().unwrap().remove("stream");
    (path.replace(":streamGenerateContent?alt=sse", ":generateContent"), body)
}

#[test]
fn a_step_is_chosen_by_the_results_in_the_request_in_every_format() {
    for wire in ALL {
        let model = playing(HELLO);
        for (results, step) in [(0, 0), (1, 1), (0, 0), (2, 1)] {
            let (path, body) = asking(wire, &["bash"], results, "go");
            assert_eq!(post(model.address(), path, &body).status, Some(200));
            let request = model.requests().pop().unwrap();
            assert_eq!((request.wire, request.kind), (Some(wire), RequestKind::Step));
            assert_eq!((request.part, request.step, request.fault), (Some(0), Some(step), None));
            assert_eq!(request.tools, ["bash"]);
        }
    }
}

#[test]
fn a_part_is_chosen_by_what_the_user_said_and_not_by_what_a_tool_printed() {
    let script = "[[part]]\nwhen = ['leaf x']\nunless = ['attempt 2']\n[[part.step]]\ndo.final = 'x'\n\
        [[part]]\nwhen = ['leaf', 'y']\n[[part.step]]\ndo.final = 'y'\n";
    for wire in ALL {
        let model = playing(script);
        for (prompt, part) in
            [("leaf x", Some(0)), ("y leaf", Some(1)), ("leaf x attempt 2", None), ("z", None)]
        {
            let (path, body) = asking(wire, &["bash"], 1, prompt);
            let reply = post(model.address(), path, &body);
            assert_eq!(
                reply.status,
                Some(if part.is_some() { 200 } else { 400 }),
                "{prompt}: {}",
                reply.body
            );
            assert_eq!(model.requests().pop().unwrap().part, part);
        }
        assert!(
            post(model.address(), asking(wire, &["bash"], 0, "z").0, &asking(wire, &["bash"], 0, "z").1)
                .body
                .contains("no part of the script fits the prompt")
        );
    }
}

#[test]
fn responses_stream_the_call_and_the_answer() {
    let model = playing(HELLO);
    let (path, body) = asking(WireFormat::Responses, &["exec_command"], 0, "go");
    let reply = post(model.address(), path, &body);
    assert!(reply.is_whole);
    let events = reply.events();
    assert_eq!(
        (events[0].0.as_str(), events.last().unwrap().0.as_str()),
        ("response.created", "response.completed")
    );
    let done: Vec<&Value> = events
        .iter()
        .filter(|(name, _)| name == "response.output_item.done")
        .map(|(_, data)| &data["item"])
        .collect();
    assert_eq!(done[0]["content"][0]["text"], "first a file");
    assert_eq!(
        (&done[1]["name"], &done[1]["arguments"]),
        (&json!("exec_command"), &json!(r#"{"cmd":"echo hello > hello.txt"}"#))
    );
    for (name, data) in &events {
        assert_eq!(&data["type"], name);
    }

    let (path, body) = asking(WireFormat::Responses, &["exec_command"], 1, "go");
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
    let model = playing(HELLO);
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
fn messages_stream_the_call_and_the_structured_answer() {
    let model = playing(HELLO);
    let (path, body) = asking(WireFormat::Messages, &["Read", "Bash", "StructuredOutput"], 0, "go");
    let reply = post(model.address(), path, &body);
    assert_eq!(
        reply.names(),
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

    let (path, body) = asking(WireFormat::Messages, &["Bash", "StructuredOutput"], 1, "go");
    let (path, body) = without_stream(path, body);
    let whole = post(model.address(), &path, &body).json();
    assert_eq!(whole["content"][0]["name"], "StructuredOutput");
    assert_eq!(whole["content"][0]["input"], json!({ "status": "done", "summary": "made it" }));
    let usage = json!({ "input_tokens": 2000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3000, "output_tokens": 70 });
    assert_eq!(whole["usage"], usage);
    let (path, body) = asking(WireFormat::Messages, &["Bash"], 1, "go");
    let (path, body) = without_stream(path, body);
    let whole = post(model.address(), &path, &body).json();
    assert_eq!((&whole["content"][0]["type"], &whole["stop_reason"]), (&json!("text"), &json!("end_turn")));
}

#[test]
fn chat_completions_stream_the_call_and_the_answer() {
    let model = playing(HELLO);
    let (path, body) = asking(WireFormat::Chat, &["bash"], 0, "go");
    let events = post(model.address(), path, &body).events();
    assert_eq!(events[0].1["choices"][0]["delta"]["content"], "first a file");
    let call = &events[1].1["choices"][0]["delta"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "bash");
    assert_eq!(events[2].1["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(events[3].1["usage"]["prompt_tokens"], 1000);
    assert_eq!(events[4].1, "[DONE]");

    let (path, body) = asking(WireFormat::Chat, &["bash", "structured_output"], 1, "go");
    let (path, body) = without_stream(path, body);
    let whole = post(model.address(), &path, &body).json();
    let call = &whole["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("structured_output"), &json!(r#"{"status":"done","summary":"made it"}"#))
    );
    assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 3000);
}

#[test]
fn gemini_answers_in_events_in_a_list_and_at_once() {
    let model = playing(HELLO);
    let (path, body) = asking(WireFormat::Gemini, &["run_shell_command"], 0, "go");
    let events = post(model.address(), path, &body).events();
    let part = |event: &Value, index: usize| event["candidates"][0]["content"]["parts"][index].clone();
    assert_eq!(part(&events[0].1, 0)["text"], "first a file");
    assert_eq!(part(&events[0].1, 1)["functionCall"]["name"], "run_shell_command");
    assert_eq!(events[1].1["candidates"][0]["finishReason"], "STOP");

    let listed = post(model.address(), &path.replace("?alt=sse", ""), &body).json();
    assert_eq!(part(&listed[0], 0)["text"], "first a file");
    let (path, body) = asking(WireFormat::Gemini, &["run_shell_command"], 1, "go");
    let (path, body) = without_stream(path, body);
    let whole = post(model.address(), &path, &body).json();
    assert_eq!(part(&whole, 0)["text"], r#"{"status":"done","summary":"made it"}"#);
    let usage = &whole["usageMetadata"];
    assert_eq!((&usage["candidatesTokenCount"], &usage["thoughtsTokenCount"]), (&json!(63), &json!(7)));
}

#[test]
fn a_shell_step_takes_whatever_shell_there_is_and_says_when_there_is_none() {
    for (tool, key) in [
        ("exec_command", "cmd"),
        ("shell_command", "command"),
        ("shell", "command"),
        ("Bash", "command"),
        ("bash", "command"),
        ("run_shell_command", "command"),
    ] {
        let model = playing(HELLO);
        let (path, body) = asking(WireFormat::Chat, &["read", tool], 0, "go");
        let (path, body) = without_stream(path, body);
        let call =
            post(model.address(), &path, &body).json()["choices"][0]["message"]["tool_calls"][0]["function"]
                .clone();
        assert_eq!(call["name"], tool);
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments[key].to_string().contains("echo hello > hello.txt"), "{arguments}");
    }
    let model = playing(HELLO);
    let (path, body) = asking(WireFormat::Chat, &["read", "write"], 0, "go");
    let reply = post(model.address(), path, &body);
    assert_eq!(reply.status, Some(400));
    assert!(
        reply.body.contains("the step needs a shell, and there is none among read, write"),
        "{}",
        reply.body
    );
}

#[test]
fn exact_tools_and_tools_that_take_text_are_called_by_name() {
    let script = "[[part]]\n[[part.step]]\ndo.tool = { name = 'Write', arguments = { path = 'a' } }\n\
        [[part.step]]\ndo.custom = { name = 'apply_patch', input = '*** Begin' }\n";
    let model = playing(script);
    let answer = |wire, results| {
        let (path, body) = asking(wire, &["Write"], results, "go");
        let (path, body) = without_stream(path, body);
        post(model.address(), &path, &body).json()
    };
    assert_eq!(answer(WireFormat::Messages, 0)["content"][0]["input"], json!({ "path": "a" }));
    assert_eq!(answer(WireFormat::Messages, 1)["content"][0]["input"], json!({ "input": "*** Begin" }));
    assert_eq!(answer(WireFormat::Responses, 1)["output"][0]["input"], "*** Begin");
}

#[test]
fn questions_beside_the_work_are_answered_and_are_no_steps() {
    let model = playing(HELLO);
    for (wire, text) in [
        (WireFormat::Messages, "ok"),
        (WireFormat::Chat, "ok"),
        (WireFormat::Responses, "ok"),
        (WireFormat::Gemini, "ok"),
    ] {
        let (path, body) = asking(wire, &[], 0, "a title, please");
        assert!(post(model.address(), path, &body).body.contains(text));
        assert_eq!(model.requests().pop().unwrap().kind, RequestKind::Aside);
    }
    let (path, body) = asking(WireFormat::Messages, &["Bash"], 0, "… followed by a <summary> block");
    assert!(post(model.address(), path, &body).body.contains("what happened so far"));
    let request = model.requests().pop().unwrap();
    assert_eq!((request.kind, request.step), (RequestKind::Summary, None));
}

#[test]
fn probes_are_answered() {
    let model = playing(HELLO);
    let address = model.address();
    assert_eq!(ask(address, "HEAD / HTTP/1.1\r\n", "").status, Some(200));
    assert_eq!(ask(address, "GET /v1/models HTTP/1.1\r\n", "").json()["data"][0]["id"], "scripted");
    assert_eq!(post(address, "/v1/messages/count_tokens", &json!({})).json()["input_tokens"], 1000);
    assert_eq!(post(address, "/v1beta/models/m:countTokens", &json!({})).json()["totalTokens"], 1000);
    let upgrade = "GET /v1/responses HTTP/1.1\r\nupgrade: websocket\r\n";
    assert_eq!(ask(address, upgrade, "").status, Some(426));
    assert!(model.requests().iter().all(|request| request.kind == RequestKind::Probe));
    assert_eq!(ask(address, "GET /nowhere HTTP/1.1\r\n", "").status, Some(404));
    assert_eq!(ask(address, "POST /v1/responses HTTP/1.1\r\ncontent-length: 3\r\n", "no!").status, Some(400));
    assert!(model.requests().iter().skip(5).all(|request| request.kind == RequestKind::Refused));
}
