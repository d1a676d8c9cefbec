//! Lines of agents that no recorded session holds, and what each means.

use std::iter::once;

use runner_core::agents::{SessionResult, Transcript, TranscriptFormat};
use runner_core::step::{CostSource, ProviderError, SessionExit, Usage};
use serde_json::{Value, json};

use crate::agents::{executor, heard};

/// The events of these lines, as they are recorded, and the end of a session that exited with code 1.
fn meant(dialect: TranscriptFormat, lines: &[Value]) -> (Value, SessionResult) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (events, end) = heard(dialect, 1, once(text.as_bytes()));
    (serde_json::to_value(events).unwrap(), end)
}

/// What a session used, of which only these lines were read so far.
fn used(dialect: TranscriptFormat, lines: &[Value]) -> Usage {
    let mut transcript = Transcript::new(dialect);
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
fn an_agent_is_read_in_its_own_dialect() {
    for (keys, dialect) in [
        ("kind = \"codex\"", Some(TranscriptFormat::Codex)),
        ("kind = \"claude\"", Some(TranscriptFormat::Claude)),
        ("kind = \"command\"\npreset = \"opencode\"", Some(TranscriptFormat::Opencode)),
        ("kind = \"command\"\npreset = \"gemini\"", Some(TranscriptFormat::Gemini)),
        ("kind = \"command\"\npreset = \"qwen\"", Some(TranscriptFormat::Qwen)),
        ("kind = \"command\"\npreset = \"copilot\"", Some(TranscriptFormat::Copilot)),
        ("kind = \"command\"\npreset = \"pi\"", Some(TranscriptFormat::Pi)),
        ("kind = \"command\"\ncommand = [\"a\"]", None),
        ("kind = \"script\"\nscenario = \"s\"", None),
    ] {
        assert_eq!(TranscriptFormat::of(&executor(keys)), dialect, "{keys}");
    }
}

#[test]
fn everything_that_codex_does_has_its_own_event() {
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
        assert_eq!(meant(TranscriptFormat::Codex, &[line]).0, json!([expected]), "{item}");
    }
}

fn claude_message(id: &str, content: &Value, usage: &Value) -> Value {
    json!({ "type": "assistant", "message": { "id": id, "content": content, "usage": usage } })
}

#[test]
fn thoughts_of_claude_are_told_as_far_as_they_can_be_read() {
    let content = json!([
        { "type": "thinking", "thinking": "hm", "signature": "x" },
        { "type": "redacted_thinking", "data": "x" },
        { "type": "text", "text": "so" },
    ]);
    let told = json!([{ "kind": "reasoning", "text": "hm" }, { "kind": "message", "text": "so" }]);
    assert_eq!(meant(TranscriptFormat::Claude, &[claude_message("m", &content, &json!({}))]).0, told);
}

#[test]
fn what_a_sub_agent_of_claude_does_is_told_with_the_call_that_started_it() {
    let mut line = claude_message("m", &json!([{ "type": "text", "text": "so" }]), &json!({}));
    line["parent_tool_use_id"] = json!("call");
    let told = json!([{ "parent": "call", "kind": "message", "text": "so" }]);
    assert_eq!(meant(TranscriptFormat::Claude, &[line]).0, told);
}

#[test]
fn a_command_of_claude_that_fails_has_its_exit_code() {
    let call = json!([{ "type": "tool_use", "id": "c", "name": "Bash", "input": { "command": "ls x" } }]);
    let command = |state: &str, exit: Option<i64>, output: &str| {
        json!({ "id": "c", "kind": "command", "command": "ls x", "state": state, "exit": exit,
            "output": output })
    };
    for (output, exit) in [("Exit code 2\nno such file", Some(2)), ("it was stopped", None)] {
        let result =
            json!([{ "type": "tool_result", "tool_use_id": "c", "is_error": true, "content": output }]);
        let result = json!({ "type": "user", "message": { "content": result } });
        let (told, _) = meant(TranscriptFormat::Claude, &[claude_message("m", &call, &json!({})), result]);
        assert_eq!(told, json!([command("started", None, ""), command("failed", exit, output)]));
    }
}

#[test]
fn a_message_of_claude_counts_once_in_however_many_lines_it_comes() {
    let message = |id: &str, output: u64| {
        let usage = json!({ "input_tokens": 10, "cache_creation_input_tokens": 5,
            "cache_read_input_tokens": 200, "output_tokens": output });
        claude_message(id, &json!([]), &usage)
    };
    let lines = [message("a", 1), message("a", 40), message("b", 2), message("b", 3)];
    let sums = [usage(215, 200, 1), usage(215, 200, 40), usage(430, 400, 42), usage(430, 400, 43)];
    for (read, sum) in (1..).zip(sums) {
        assert_eq!(used(TranscriptFormat::Claude, &lines[..read]), sum, "{read}");
    }
}

#[test]
fn the_sum_of_claude_is_over_all_models_and_with_what_went_into_the_cache() {
    let model = |input: u64| {
        json!({ "inputTokens": input, "cacheCreationInputTokens": 5, "cacheReadInputTokens": 200,
            "outputTokens": 7 })
    };
    let result = json!({ "type": "result", "is_error": false, "total_cost_usd": 0.5,
        "usage": { "input_tokens": 1, "output_tokens": 1 },
        "modelUsage": { "m": model(10), "n": model(20) } });
    let sum =
        Usage { cost_microdollars: Some(500_000), cost_source: CostSource::Reported, ..usage(440, 400, 14) };
    assert_eq!(used(TranscriptFormat::Claude, &[result]), sum);
}

#[test]
fn presets_tell_their_thoughts_and_their_troubles() {
    for (dialect, line, expected) in [
        (
            TranscriptFormat::Opencode,
            json!({ "type": "reasoning", "part": { "text": "hm" } }),
            json!([{ "kind": "reasoning", "text": "hm" }]),
        ),
        (
            TranscriptFormat::Gemini,
            json!({ "type": "error", "severity": "warning", "message": "loop" }),
            json!([{ "kind": "warning", "text": "loop" }]),
        ),
        (
            TranscriptFormat::Copilot,
            json!({ "type": "assistant.reasoning", "data": { "content": "hm" } }),
            json!([{ "kind": "reasoning", "text": "hm" }]),
        ),
        (TranscriptFormat::Copilot, json!({ "type": "session.idle", "data": {} }), json!([])),
        (
            TranscriptFormat::Copilot,
            json!({ "type": "weather", "data": 1 }),
            json!([{ "kind": "unknown", "raw": { "type": "weather", "data": 1 } }]),
        ),
        (
            TranscriptFormat::Pi,
            json!({ "type": "message_end", "message": { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "so" },
                { "type": "toolCall", "id": "c" },
            ] } }),
            json!([{ "kind": "reasoning", "text": "hm" }, { "kind": "message", "text": "so" }]),
        ),
        (
            TranscriptFormat::Pi,
            json!({ "type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000,
                "errorMessage": "429" }),
            json!([{ "kind": "retry", "text": "429", "attempt": 1, "of": 3, "wait_ms": 2000 }]),
        ),
    ] {
        assert_eq!(meant(dialect, std::slice::from_ref(&line)).0, expected, "{line}");
    }
}

#[test]
fn what_a_preset_wrote_into_a_cache_was_read_by_the_model() {
    let tokens = json!({ "input": 10, "output": 4, "reasoning": 3, "cache": { "read": 200, "write": 5 } });
    let opencode = json!({ "type": "step_finish", "part": { "reason": "tool-calls", "tokens": tokens } });
    assert_eq!(used(TranscriptFormat::Opencode, &[opencode]), usage(215, 200, 7));
    let tokens = json!({ "input": 10, "output": 7, "cacheRead": 200, "cacheWrite": 5 });
    let pi = json!({ "type": "message_end", "message": { "role": "assistant", "usage": tokens } });
    assert_eq!(used(TranscriptFormat::Pi, &[pi]), usage(215, 200, 7));
}

#[test]
fn the_failure_that_a_preset_tells_of_is_the_one_that_it_ends_with() {
    let failed = |message: &str| json!({ "kind": "failed", "message": message });
    let opencode = json!({ "type": "error", "error": { "name": "APIError",
        "data": { "message": "slow down", "statusCode": 429 } } });
    let (told, end) = meant(TranscriptFormat::Opencode, &[opencode]);
    assert_eq!(told, json!([failed("slow down")]));
    assert_eq!(
        end.exit,
        SessionExit::Provider { fault: ProviderError::RateLimited { retry_after_secs: None } }
    );
    let unnamed = json!({ "type": "error", "error": { "name": "UnknownError" } });
    let (told, end) = meant(TranscriptFormat::Opencode, &[unnamed]);
    assert_eq!((told, end.exit), (json!([failed("UnknownError")]), SessionExit::Finished { code: 1 }));

    let error = json!({ "type": "session.error", "data": { "message": "no key", "statusCode": 401 } });
    let (told, end) = meant(TranscriptFormat::Copilot, &[error, json!({ "type": "result", "exitCode": 1 })]);
    assert_eq!(told, json!([{ "kind": "warning", "text": "no key" }, failed("no key")]));
    let fault = ProviderError::NotLoggedIn { why: "no key".to_owned() };
    assert_eq!(end.exit, SessionExit::Provider { fault });

    let message = json!({ "role": "assistant", "stopReason": "error", "errorMessage": "404 no model",
        "content": [] });
    let message = json!({ "type": "message_end", "message": message });
    let (told, end) = meant(TranscriptFormat::Pi, &[message, json!({ "type": "agent_end" })]);
    assert_eq!(told[1], failed("404 no model"));
    let fault = ProviderError::Refused { why: "404 no model".to_owned() };
    assert_eq!(end.exit, SessionExit::Provider { fault });
}
