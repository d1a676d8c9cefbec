//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Act, Asked, Event, Offered, Turn, Written, arguments_of, list, said_by, text_at};

pub(super) fn read(body: &Value) -> Asked {
    let messages = list(body, "messages");
    let is_result = |block: &&Value| text_at(block, "type") == "tool_result";
    let tools = list(body, "tools").iter();
    let session = body.get("metadata").map(|metadata| text_at(metadata, "user_id"));
    Asked {
        tools: tools.map(|tool| Offered { name: text_at(tool, "name"), takes_text: false }).collect(),
        results: messages.iter().flat_map(|message| list(message, "content")).filter(is_result).count(),
        prompt: said_by(messages, "user", "content"),
        last: messages.last().map(ToString::to_string).unwrap_or_default(),
        session: session.unwrap_or_default(),
        ..Asked::default()
    }
}

/// This format counts the cached tokens beside the others, not among them.
fn usage(turn: &Turn, output: u64) -> Value {
    json!({
        "input_tokens": turn.tokens.input.saturating_sub(turn.tokens.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": turn.tokens.cached,
        "output_tokens": output,
    })
}

fn blocks(turn: &Turn) -> Vec<Value> {
    let said = turn.say.as_ref().map(|text| json!({ "type": "text", "text": text }));
    let act = match (&turn.act, arguments_of(&turn.act)) {
        (_, Some((name, input))) => {
            json!({ "type": "tool_use", "id": format!("toolu_{}", turn.number), "name": name, "input": input })
        }
        (Act::Text(text), _) => json!({ "type": "text", "text": text }),
        (Act::Call { .. } | Act::Custom { .. }, None) => Value::Null,
    };
    said.into_iter().chain([act]).collect()
}

fn message(turn: &Turn, asked: &Asked, content: &[Value], stop: Option<&str>) -> Value {
    // Before the end, hardly anything is written.
    let output = if stop.is_some() { turn.tokens.output } else { 1 };
    json!({
        "id": format!("msg_{}", turn.number), "type": "message", "role": "assistant", "model": asked.model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage(turn, output),
    })
}

pub(super) fn write(turn: &Turn, asked: &Asked) -> Written {
    let stop = if matches!(turn.act, Act::Text(_)) { "end_turn" } else { "tool_use" };
    let blocks = blocks(turn);
    let mut events = vec![start(turn, asked)];
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
        events.push(Event::named("content_block_start", json!({ "index": index, "content_block": empty })));
        events.push(Event::named("content_block_delta", json!({ "index": index, "delta": delta })));
        events.push(Event::named("content_block_stop", json!({ "index": index })));
    }
    let half = events.len() - 1;
    let delta = json!({
        "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": usage(turn, turn.tokens.output),
    });
    events.push(Event::named("message_delta", delta));
    events.push(Event::named("message_stop", json!({})));
    Written { whole: message(turn, asked, &blocks, Some(stop)), events, half }
}

fn start(turn: &Turn, asked: &Asked) -> Event {
    Event::named("message_start", json!({ "message": message(turn, asked, &[], None) }))
}

pub(super) fn failed(turn: &Turn, asked: &Asked, error: &Value) -> Vec<Event> {
    vec![start(turn, asked), Event::named("error", json!({ "error": error }))]
}
