//! OpenAI Responses.

use serde_json::{Value, json};

use super::{
    EncodedAnswer, ModelRequest, ModelTurn, OfferedTool, SseEvent, TurnAction, array_at, text_at,
    text_of_role,
};

pub(super) fn read(body: &Value) -> ModelRequest {
    let input = array_at(body, "input");
    let is_result = |item: &&Value| text_at(item, "type").ends_with("_call_output");
    let prompt = match body.get("input") {
        Some(Value::String(text)) => text.clone(),
        Some(_) | None => text_of_role(input, "user", "content"),
    };
    ModelRequest {
        tools: tools(body, input),
        results: input.iter().filter(is_result).count(),
        prompt,
        last: input.last().map(ToString::to_string).unwrap_or_default(),
        session: text_at(body, "prompt_cache_key"),
        ..ModelRequest::default()
    }
}

/// The tools of the request, and those that newer models get in the conversation, by namespace.
fn tools(body: &Value, input: &[Value]) -> Vec<OfferedTool> {
    let has_tools = |item: &&Value| text_at(item, "type") == "additional_tools";
    let additional = input.iter().filter(has_tools).flat_map(|item| array_at(item, "tools"));
    let mut offered = Vec::new();
    for tool in array_at(body, "tools").iter().chain(additional) {
        if text_at(tool, "type") == "namespace" {
            offered.extend(array_at(tool, "tools").iter().map(offered_tool));
        } else {
            offered.push(offered_tool(tool));
        }
    }
    offered
}

fn offered_tool(tool: &Value) -> OfferedTool {
    let name = text_at(tool, "name");
    let kind = text_at(tool, "type");
    OfferedTool { takes_text: kind == "custom", name: if name.is_empty() { kind } else { name } }
}

fn message(id: &str, text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    json!({ "type": "message", "id": id, "role": "assistant", "status": "completed", "content": content })
}

fn items(turn: &ModelTurn) -> Vec<Value> {
    let number = turn.number;
    let text = turn.text.as_ref().map(|text| message(&format!("msg_{number}_0"), text));
    let action = match &turn.action {
        TurnAction::Call { name, arguments } => json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "status": "completed", "name": name, "arguments": arguments.to_string(),
        }),
        TurnAction::Custom { name, input } => json!({
            "type": "custom_tool_call", "id": format!("ctc_{number}"), "call_id": format!("call_{number}"),
            "status": "completed", "name": name, "input": input,
        }),
        TurnAction::Text(text) => message(&format!("msg_{number}_1"), text),
    };
    text.into_iter().chain([action]).collect()
}

fn response(turn: &ModelTurn, request: &ModelRequest, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", turn.number), "object": "response", "created_at": 0, "model": request.model,
        "status": status, "output": [],
    })
}

pub(super) fn write(turn: &ModelTurn, request: &ModelRequest) -> EncodedAnswer {
    let items = items(turn);
    let tokens = turn.tokens;
    let mut document = response(turn, request, "completed");
    if let Some(document) = document.as_object_mut() {
        document.insert("output".to_owned(), json!(items));
        let usage = json!({
            "input_tokens": tokens.input,
            "input_tokens_details": { "cached_tokens": tokens.cached },
            "output_tokens": tokens.output,
            "output_tokens_details": { "reasoning_tokens": tokens.reasoning },
            "total_tokens": tokens.input + tokens.output,
        });
        document.insert("usage".to_owned(), usage);
    }
    let mut events = vec![created(turn, request)];
    for (index, item) in items.iter().enumerate() {
        events.extend(item_events(index, item));
    }
    let half = events.len() - 1;
    events.push(SseEvent::named("response.completed", json!({ "response": document })));
    EncodedAnswer { document, events, half }
}

fn created(turn: &ModelTurn, request: &ModelRequest) -> SseEvent {
    SseEvent::named("response.created", json!({ "response": response(turn, request, "in_progress") }))
}

fn item_events(index: usize, item: &Value) -> Vec<SseEvent> {
    let id = text_at(item, "id");
    let mut empty = item.clone();
    let (key, empty_value, delta) = match text_at(item, "type").as_str() {
        "message" => ("content", json!([]), "response.output_text.delta"),
        "function_call" => ("arguments", json!(""), "response.function_call_arguments.delta"),
        _ => ("input", json!(""), "response.custom_tool_call_input.delta"),
    };
    let content = item.get(key);
    let text = content.and_then(Value::as_str).map_or_else(|| super::content_text(content), str::to_owned);
    if let Some(empty) = empty.as_object_mut() {
        empty.insert(key.to_owned(), empty_value);
        empty.insert("status".to_owned(), json!("in_progress"));
    }
    let added = json!({ "output_index": index, "item": empty });
    let mut events = vec![SseEvent::named("response.output_item.added", added)];
    let position = json!({ "item_id": id, "output_index": index, "content_index": 0 });
    let delta_with = |key: &str, value: Value| {
        let mut fields = position.clone();
        if let Some(fields) = fields.as_object_mut() {
            fields.insert(key.to_owned(), value);
        }
        fields
    };
    if key == "content" {
        let part = json!({ "type": "output_text", "text": "", "annotations": [] });
        events.push(SseEvent::named("response.content_part.added", delta_with("part", part)));
    }
    events.push(SseEvent::named(delta, delta_with("delta", json!(text))));
    events.push(SseEvent::named("response.output_item.done", json!({ "output_index": index, "item": item })));
    events
}

pub(super) fn error_events(turn: &ModelTurn, request: &ModelRequest, error: &Value) -> Vec<SseEvent> {
    let mut response = response(turn, request, "failed");
    if let Some(response) = response.as_object_mut() {
        response.insert("error".to_owned(), error.clone());
    }
    vec![created(turn, request), SseEvent::named("response.failed", json!({ "response": response }))]
}
