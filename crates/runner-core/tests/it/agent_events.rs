//! Events of output lines that no recorded session contains.

use std::iter::once;

use runner_core::agents::{SessionResult, Transcript, agent_named};
use runner_core::step::{CostSource, ProviderError, SessionExit, Usage};
use serde_json::{Value, json};

use crate::agents::{executor, parse};

/// The events of these lines as JSON, and the result of a session that exited with code 1.
fn events_of(agent: &str, lines: &[Value]) -> (Value, SessionResult) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (events, result) = parse(agent_named(agent).unwrap(), 1, once(text.as_bytes()));
    (serde_json::to_value(events).unwrap(), result)
}

/// The usage of a session of which only these lines were parsed.
fn usage_after(agent: &str, lines: &[Value]) -> Usage {
    let mut transcript = Transcript::new(&agent_named(agent).unwrap().output);
    lines.iter().for_each(|line| drop(transcript.push(format!("{line}\n").as_bytes())));
    transcript.usage()
}

fn usage(input: u64, cached: u64, output: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        cached_input_tokens: Some(cached),
        output_tokens: Some(output),
        ..Usage::default()
    }
}

#[test]
fn only_agents_of_the_registry_have_a_parser() {
    for (keys, agent) in [
        ("kind = \"codex\"", Some("codex")),
        ("kind = \"claude\"", Some("claude")),
        ("kind = \"command\"\npreset = \"opencode\"", Some("opencode")),
        ("kind = \"command\"\ncommand = [\"a\"]", None),
        ("kind = \"script\"\nscenario = \"s\"", None),
    ] {
        assert_eq!(executor(keys).agent().map(|agent| agent.name), agent, "{keys}");
    }
}

#[test]
fn every_item_of_codex_becomes_an_event() {
    for (item, expected) in [
        (json!({ "type": "reasoning", "text": "hm" }), json!({ "kind": "reasoning", "text": "hm" })),
        (
            json!({ "type": "web_search", "query": "q" }),
            json!({ "kind": "web", "query": "q", "state": "done" }),
        ),
        (
            json!({ "type": "todo_list", "items": [
                { "text": "a", "completed": true }, { "text": "b", "completed": false },
            ] }),
            json!({ "kind": "plan", "items": [
                { "text": "a", "state": "done" }, { "text": "b", "state": "open" },
            ] }),
        ),
        (
            json!({ "type": "file_change", "changes": [
                { "path": "a", "kind": "add" }, { "path": "b", "kind": "update" },
                { "path": "c", "kind": "delete" },
            ] }),
            json!({ "kind": "edit", "state": "done", "files": [
                { "path": "a", "change": "add" }, { "path": "b", "change": "update" },
                { "path": "c", "change": "delete" },
            ] }),
        ),
        (
            json!({ "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": { "a": 1 },
                "result": null, "error": { "message": "no" }, "status": "failed" }),
            json!({ "kind": "tool", "name": "s/t", "input": "{\"a\":1}", "state": "failed",
                "output": "{\"message\":\"no\"}" }),
        ),
        (
            json!({ "type": "collab_tool_call", "tool": "spawn_agent", "prompt": "look", "result": [7] }),
            json!({ "kind": "tool", "name": "spawn_agent", "input": "\"look\"", "state": "done",
                "output": "[7]" }),
        ),
    ] {
        let line = json!({ "type": "item.completed", "item": item });
        assert_eq!(events_of("codex", &[line]).0, json!([expected]), "{item}");
    }
}

fn claude_message(id: &str, content: &Value, usage: &Value) -> Value {
    json!({ "type": "assistant", "message": { "id": id, "content": content, "usage": usage } })
}

#[test]
fn readable_thinking_of_claude_becomes_reasoning_events() {
    let content = json!([
        { "type": "thinking", "thinking": "hm", "signature": "x" },
        { "type": "redacted_thinking", "data": "x" },
        { "type": "text", "text": "so" },
    ]);
    let expected = json!([{ "kind": "reasoning", "text": "hm" }, { "kind": "message", "text": "so" }]);
    assert_eq!(events_of("claude", &[claude_message("m", &content, &json!({}))]).0, expected);
}

#[test]
fn events_of_a_claude_sub_agent_name_its_parent_call() {
    let mut line = claude_message("m", &json!([{ "type": "text", "text": "so" }]), &json!({}));
    line["parent_tool_use_id"] = json!("call");
    let expected = json!([{ "parent": "call", "kind": "message", "text": "so" }]);
    assert_eq!(events_of("claude", &[line]).0, expected);
}

#[test]
fn failed_commands_of_claude_have_an_exit_code() {
    let call = json!([{ "type": "tool_use", "id": "c", "name": "Bash", "input": { "command": "ls x" } }]);
    let command = |state: &str, exit: Option<i64>, output: &str| {
        json!({ "id": "c", "kind": "command", "command": "ls x", "state": state, "exit": exit,
            "output": output })
    };
    for (output, exit) in [("Exit code 2\nno such file", Some(2)), ("it was stopped", None)] {
        let result =
            json!([{ "type": "tool_result", "tool_use_id": "c", "is_error": true, "content": output }]);
        let result = json!({ "type": "user", "message": { "content": result } });
        let (events, _) = events_of("claude", &[claude_message("m", &call, &json!({})), result]);
        assert_eq!(events, json!([command("started", None, ""), command("failed", exit, output)]));
    }
}

#[test]
fn a_claude_message_in_several_lines_is_counted_once() {
    let message = |id: &str, output: u64| {
        let usage = json!({ "input_tokens": 10, "cache_creation_input_tokens": 5,
            "cache_read_input_tokens": 200, "output_tokens": output });
        claude_message(id, &json!([]), &usage)
    };
    let lines = [message("a", 1), message("a", 40), message("b", 2), message("b", 3)];
    let sums = [usage(215, 200, 1), usage(215, 200, 40), usage(430, 400, 42), usage(430, 400, 43)];
    for ((count, sum), written) in (1..).zip(sums).zip([5, 5, 10, 10]) {
        let sum = Usage { cache_write_input_tokens: Some(written), ..sum };
        assert_eq!(usage_after("claude", &lines[..count]), sum, "{count}");
    }
}

#[test]
fn the_total_of_claude_includes_all_models_and_cache_writes() {
    let model = |input: u64| {
        json!({ "inputTokens": input, "cacheCreationInputTokens": 5, "cacheReadInputTokens": 200,
            "outputTokens": 7 })
    };
    let result = json!({ "type": "result", "is_error": false, "total_cost_usd": 0.5,
        "usage": { "input_tokens": 1, "output_tokens": 1 },
        "modelUsage": { "m": model(10), "n": model(20) } });
    let sum = Usage {
        cost_microdollars: Some(500_000),
        cost_source: CostSource::Reported,
        cache_write_input_tokens: Some(10),
        ..usage(440, 400, 14)
    };
    assert_eq!(usage_after("claude", &[result]), sum);
}

#[test]
fn presets_have_reasoning_warning_and_retry_events() {
    for (agent, line, expected) in [
        (
            "opencode",
            json!({ "type": "reasoning", "part": { "text": "hm" } }),
            json!([{ "kind": "reasoning", "text": "hm" }]),
        ),
        (
            "gemini",
            json!({ "type": "error", "severity": "warning", "message": "loop" }),
            json!([{ "kind": "warning", "text": "loop" }]),
        ),
        (
            "copilot",
            json!({ "type": "assistant.reasoning", "data": { "content": "hm" } }),
            json!([{ "kind": "reasoning", "text": "hm" }]),
        ),
        ("copilot", json!({ "type": "session.idle", "data": {} }), json!([])),
        (
            "copilot",
            json!({ "type": "weather", "data": 1 }),
            json!([{ "kind": "unknown", "raw": { "type": "weather", "data": 1 } }]),
        ),
        (
            "pi",
            json!({ "type": "message_end", "message": { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "so" },
                { "type": "toolCall", "id": "c" },
            ] } }),
            json!([{ "kind": "reasoning", "text": "hm" }, { "kind": "message", "text": "so" }]),
        ),
        (
            "pi",
            json!({ "type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000,
                "errorMessage": "429" }),
            json!([{ "kind": "retry", "text": "429", "attempt": 1, "of": 3, "wait_ms": 2000 }]),
        ),
    ] {
        assert_eq!(events_of(agent, std::slice::from_ref(&line)).0, expected, "{line}");
    }
}

#[test]
fn cache_writes_of_a_preset_count_as_input() {
    let tokens = json!({ "input": 10, "output": 4, "reasoning": 3, "cache": { "read": 200, "write": 5 } });
    let opencode = json!({ "type": "step_finish", "part": { "reason": "tool-calls", "tokens": tokens } });
    let sum = Usage { cache_write_input_tokens: Some(5), ..usage(215, 200, 7) };
    assert_eq!(usage_after("opencode", &[opencode]), sum);
    let tokens = json!({ "input": 10, "output": 7, "cacheRead": 200, "cacheWrite": 5 });
    let pi = json!({ "type": "message_end", "message": { "role": "assistant", "usage": tokens } });
    assert_eq!(usage_after("pi", &[pi]), sum);
}

#[test]
fn a_failure_that_a_preset_reports_is_the_result_of_its_session() {
    let failed = |message: &str| json!({ "kind": "failed", "message": message });
    let opencode = json!({ "type": "error", "error": { "name": "APIError",
        "data": { "message": "slow down", "statusCode": 429 } } });
    let (events, result) = events_of("opencode", &[opencode]);
    assert_eq!(events, json!([failed("slow down")]));
    assert_eq!(
        result.exit,
        SessionExit::Provider { fault: ProviderError::RateLimited { retry_after_secs: None } }
    );
    let unnamed = json!({ "type": "error", "error": { "name": "UnknownError" } });
    let (events, result) = events_of("opencode", &[unnamed]);
    assert_eq!((events, result.exit), (json!([failed("UnknownError")]), SessionExit::Finished { code: 1 }));

    let error = json!({ "type": "session.error", "data": { "message": "no key", "statusCode": 401 } });
    let (events, result) = events_of("copilot", &[error, json!({ "type": "result", "exitCode": 1 })]);
    assert_eq!(events, json!([{ "kind": "warning", "text": "no key" }, failed("no key")]));
    let fault = ProviderError::NotLoggedIn { why: "no key".to_owned() };
    assert_eq!(result.exit, SessionExit::Provider { fault });

    let message = json!({ "role": "assistant", "stopReason": "error", "errorMessage": "404 no model",
        "content": [] });
    let message = json!({ "type": "message_end", "message": message });
    let (events, result) = events_of("pi", &[message, json!({ "type": "agent_end" })]);
    assert_eq!(events[1], failed("404 no model"));
    let fault = ProviderError::Refused { why: "404 no model".to_owned() };
    assert_eq!(result.exit, SessionExit::Provider { fault });
}
