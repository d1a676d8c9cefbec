//! Anthropic Messages.

use serde_json::{Value, json};

use super::{
    EncodedAnswer, ModelRequest, ModelTurn, OfferedTool, SseEvent, TurnAction, array_at, call_arguments,
    text_at, text_of_role,
};

pub(super) fn read(body: &Value) -> ModelRequest {
    let messages = array_at(body, "messages");
    let is_result = |block: &&Value| text_at(block, "type") == "tool_result";
    let tools = array_at(body, "tools").iter();
    let session = body.get("metadata").map(|metadata| text_at(metadata, "user_id"));
    ModelRequest {
        tools: tools.map(|tool| OfferedTool { name: text_at(tool, "name"), takes_text: false }).collect(),
        results: messages.iter().flat_map(|message| array_at(message, "content")).filter(is_result).count(),
        prompt: text_of_role(messages, "user", "content"),
        last: messages.last().map(ToString::to_string).unwrap_or_default(),
        session: session.unwrap_or_default(),
        ..ModelRequest::default()
    }
}

/// In this format `input_tokens` excludes the cached tokens.
fn usage(turn: &ModelTurn, output: u64) -> Value {
    json!({
        "input_tokens": turn.tokens.input.saturating_sub(turn.tokens.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": turn.tokens.cached,
        "output_tokens": output,
    })
}

fn blocks(turn: &ModelTurn) -> Vec<Value> {
    let text = turn.text.as_ref().map(|text| json!({ "type": "text", "text": text }));
    let action = match (&turn.action, call_arguments(&turn.action)) {
        (_, Some((name, input))) => {
            json!({ "type": "tool_use", "id": format!("toolu_{}", turn.number), "name": name, "input": input })
        }
        (TurnAction::Text(text), _) => json!({ "type": "text", "text": text }),
        (TurnAction::Call { .. } | TurnAction::Custom { .. }, None) => Value::Null,
    };
    text.into_iter().chain([action]).collect()
}

fn message(turn: &ModelTurn, request: &ModelRequest, content: &[Value], stop: Option<&str>) -> Value {
    // At the start of a stream, hardly any output exists yet.
    let output = if stop.is_some() { turn.tokens.output } else { 1 };
    json!({
        "id": format!("msg_{}", turn.number), "type": "message", "role": "assistant", "model": request.model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage(turn, output),
    })
}

pub(super) fn write(turn: &ModelTurn, request: &ModelRequest) -> EncodedAnswer {
    let stop = if matches!(turn.action, TurnAction::Text(_)) { "end_turn" } else { "tool_use" };
    let blocks = blocks(turn);
    let mut events = vec![start(turn, request)];
    for (index, block) in blocks.iter().enumerate() {
        let (empty, delta) = if text_at(block, "type") == "text" {
            let delta = json!({ "type": "text_delta", "text": text_at(block, "text") });
            (json!({ "type": "text", "text": "" }), delta)
        } else {
            let mut empty = block.clone();
            let input = block.get("input").map(ToString::to_string).unwrap_or_default();
            if let Some(empty) = empty.as_object_mut() {
                empty.insert("input".to_owned(), json!({}));
            }
            (empty, json!({ "type": "input_json_delta", "partial_json": input }))
        };
        events
            .push(SseEvent::named("content_block_start", json!({ "index": index, "content_block": empty })));
        events.push(SseEvent::named("content_block_delta", json!({ "index": index, "delta": delta })));
        events.push(SseEvent::named("content_block_stop", json!({ "index": index })));
    }
    let half = events.len() - 1;
    let delta = json!({
        "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": usage(turn, turn.tokens.output),
    });
    events.push(SseEvent::named("message_delta", delta));
    events.push(SseEvent::named("message_stop", json!({})));
    EncodedAnswer { document: message(turn, request, &blocks, Some(stop)), events, half }
}

fn start(turn: &ModelTurn, request: &ModelRequest) -> SseEvent {
    SseEvent::named("message_start", json!({ "message": message(turn, request, &[], None) }))
}

pub(super) fn error_events(turn: &ModelTurn, request: &ModelRequest, error: &Value) -> Vec<SseEvent> {
    vec![start(turn, request), SseEvent::named("error", json!({ "error": error }))]
}
