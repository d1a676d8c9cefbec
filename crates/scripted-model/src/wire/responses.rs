//! OpenAI Responses.

use serde_json::{Value, json};

use super::{
    EncodedAnswer, ModelRequest, ModelTurn, OfferedTool, SseEvent, TurnAction, list, said_by, text_at,
};

pub(super) fn read(body: &Value) -> ModelRequest {
    let input = list(body, "input");
    let is_result = |item: &&Value| text_at(item, "type").ends_with("_call_output");
    let prompt = match body.get("input") {
        Some(Value::String(text)) => text.clone(),
        Some(_) | None => said_by(input, "user", "content"),
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

/// The tools of the request, and those that newer models are offered in the conversation, by name space.
fn tools(body: &Value, input: &[Value]) -> Vec<OfferedTool> {
    let is_more = |item: &&Value| text_at(item, "type") == "additional_tools";
    let more = input.iter().filter(is_more).flat_map(|item| list(item, "tools"));
    let mut found = Vec::new();
    for tool in list(body, "tools").iter().chain(more) {
        if text_at(tool, "type") == "namespace" {
            found.extend(list(tool, "tools").iter().map(offered));
        } else {
            found.push(offered(tool));
        }
    }
    found
}

fn offered(tool: &Value) -> OfferedTool {
    let (name, kind) = (text_at(tool, "name"), text_at(tool, "type"));
    OfferedTool { takes_text: kind == "custom", name: if name.is_empty() { kind } else { name } }
}

fn message(id: &str, text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    json!({ "type": "message", "id": id, "role": "assistant", "status": "completed", "content": content })
}

fn items(turn: &ModelTurn) -> Vec<Value> {
    let number = turn.number;
    let said = turn.say.as_ref().map(|text| message(&format!("msg_{number}_0"), text));
    let act = match &turn.act {
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
    said.into_iter().chain([act]).collect()
}

fn response(turn: &ModelTurn, asked: &ModelRequest, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", turn.number), "object": "response", "created_at": 0, "model": asked.model,
        "status": status, "output": [],
    })
}

pub(super) fn write(turn: &ModelTurn, asked: &ModelRequest) -> EncodedAnswer {
    let (items, tokens) = (items(turn), turn.tokens);
    let mut whole = response(turn, asked, "completed");
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("output".to_owned(), json!(items));
        let usage = json!({
            "input_tokens": tokens.input,
            "input_tokens_details": { "cached_tokens": tokens.cached },
            "output_tokens": tokens.output,
            "output_tokens_details": { "reasoning_tokens": tokens.reasoning },
            "total_tokens": tokens.input + tokens.output,
        });
        whole.insert("usage".to_owned(), usage);
    }
    let mut events = vec![created(turn, asked)];
    for (index, item) in items.iter().enumerate() {
        events.extend(item_events(index, item));
    }
    let half = events.len() - 1;
    events.push(SseEvent::named("response.completed", json!({ "response": whole })));
    EncodedAnswer { whole, events, half }
}

fn created(turn: &ModelTurn, asked: &ModelRequest) -> SseEvent {
    SseEvent::named("response.created", json!({ "response": response(turn, asked, "in_progress") }))
}

fn item_events(index: usize, item: &Value) -> Vec<SseEvent> {
    let id = text_at(item, "id");
    let mut empty = item.clone();
    let (key, none, delta) = match text_at(item, "type").as_str() {
        "message" => ("content", json!([]), "response.output_text.delta"),
        "function_call" => ("arguments", json!(""), "response.function_call_arguments.delta"),
        _ => ("input", json!(""), "response.custom_tool_call_input.delta"),
    };
    let whole = item.get(key);
    let text = whole.and_then(Value::as_str).map_or_else(|| super::texts(whole), str::to_owned);
    if let Some(empty) = empty.as_object_mut() {
        empty.insert(key.to_owned(), none);
        empty.insert("status".to_owned(), json!("in_progress"));
    }
    let added = json!({ "output_index": index, "item": empty });
    let mut events = vec![SseEvent::named("response.output_item.added", added)];
    let place = json!({ "item_id": id, "output_index": index, "content_index": 0 });
    let with = |key: &str, value: Value| {
        let mut fields = place.clone();
        if let Some(fields) = fields.as_object_mut() {
            fields.insert(key.to_owned(), value);
        }
        fields
    };
    if key == "content" {
        let part = json!({ "type": "output_text", "text": "", "annotations": [] });
        events.push(SseEvent::named("response.content_part.added", with("part", part)));
    }
    events.push(SseEvent::named(delta, with("delta", json!(text))));
    events.push(SseEvent::named("response.output_item.done", json!({ "output_index": index, "item": item })));
    events
}

pub(super) fn failed(turn: &ModelTurn, asked: &ModelRequest, error: &Value) -> Vec<SseEvent> {
    let mut response = response(turn, asked, "failed");
    if let Some(response) = response.as_object_mut() {
        response.insert("error".to_owned(), error.clone());
    }
    vec![created(turn, asked), SseEvent::named("response.failed", json!({ "response": response }))]
}
