//! OpenAI chat completions.

use serde_json::{Value, json};

use super::{
    EncodedAnswer, ModelRequest, ModelTurn, OfferedTool, SseEvent, TurnAction, array_at, call_arguments,
    text_at, text_of_role,
};

pub(super) fn read(body: &Value) -> ModelRequest {
    let messages = array_at(body, "messages");
    let name = |tool: &Value| {
        let function = tool.get("function").map(|function| text_at(function, "name"));
        function.unwrap_or_else(|| text_at(tool, "name"))
    };
    let tools = array_at(body, "tools").iter();
    ModelRequest {
        tools: tools.map(|tool| OfferedTool { name: name(tool), takes_text: false }).collect(),
        results: messages.iter().filter(|message| text_at(message, "role") == "tool").count(),
        prompt: text_of_role(messages, "user", "content"),
        last: messages.last().map(ToString::to_string).unwrap_or_default(),
        session: text_at(body, "user"),
        ..ModelRequest::default()
    }
}

pub(super) fn write(turn: &ModelTurn, request: &ModelRequest) -> EncodedAnswer {
    let tokens = turn.tokens;
    let usage = json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": { "cached_tokens": tokens.cached },
        "completion_tokens_details": { "reasoning_tokens": tokens.reasoning },
    });
    let call = call_arguments(&turn.action).map(|(name, arguments)| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "index": 0, "id": format!("call_{}", turn.number), "type": "function", "function": function })
    });
    let (content, finish) = match &turn.action {
        TurnAction::Text(text) => {
            let before = turn.text.as_ref().map(|before| format!("{before}\n")).unwrap_or_default();
            (Some(before + text), "stop")
        }
        TurnAction::Call { .. } | TurnAction::Custom { .. } => (turn.text.clone(), "tool_calls"),
    };
    let document = |object: &str, choices: Value, usage: Option<&Value>| {
        json!({
            "id": format!("chatcmpl_{}", turn.number), "object": object, "created": 0, "model": request.model,
            "choices": choices, "usage": usage,
        })
    };
    let chunk = |delta: Value, finish: Option<&str>| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        SseEvent::unnamed(&document("chat.completion.chunk", choices, None))
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": content }), None)];
    if let Some(call) = &call {
        events.push(chunk(json!({ "tool_calls": [call] }), None));
    }
    let half = events.len();
    events.push(chunk(json!({}), Some(finish)));
    events.push(SseEvent::unnamed(&document("chat.completion.chunk", json!([]), Some(&usage))));
    events.push(SseEvent { name: None, data: "[DONE]".to_owned() });
    let mut message = json!({ "role": "assistant", "content": content });
    if let (Some(message), Some(call)) = (message.as_object_mut(), call) {
        message.insert("tool_calls".to_owned(), json!([call]));
    }
    let choices = json!([{ "index": 0, "message": message, "finish_reason": finish }]);
    EncodedAnswer { document: document("chat.completion", choices, Some(&usage)), events, half }
}
