//! Gemini: `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use super::{
    EncodedAnswer, ModelRequest, ModelTurn, OfferedTool, SseEvent, TurnAction, array_at, call_arguments,
    text_at, text_of_role,
};

pub(super) fn read(path: &str, body: &Value) -> ModelRequest {
    let contents = array_at(body, "contents");
    let declarations = array_at(body, "tools").iter().flat_map(|tool| array_at(tool, "functionDeclarations"));
    let parts = contents.iter().flat_map(|content| array_at(content, "parts"));
    let path = path.split('?').next().unwrap_or_default();
    let model = path.rsplit('/').next().and_then(|last| last.split(':').next()).unwrap_or_default();
    ModelRequest {
        tools: declarations
            .map(|tool| OfferedTool { name: text_at(tool, "name"), takes_text: false })
            .collect(),
        results: parts.filter(|part| part.get("functionResponse").is_some()).count(),
        prompt: text_of_role(contents, "user", "parts"),
        last: contents.last().map(ToString::to_string).unwrap_or_default(),
        model: model.to_owned(),
        is_stream: path.ends_with(":streamGenerateContent"),
        ..ModelRequest::default()
    }
}

pub(super) fn write(turn: &ModelTurn) -> EncodedAnswer {
    let tokens = turn.tokens;
    let text = turn.text.as_ref().map(|text| json!({ "text": text }));
    let action = match (&turn.action, call_arguments(&turn.action)) {
        (_, Some((name, arguments))) => json!({ "functionCall": { "name": name, "args": arguments } }),
        (TurnAction::Text(text), _) => json!({ "text": text }),
        (TurnAction::Call { .. } | TurnAction::Custom { .. }, None) => Value::Null,
    };
    let parts: Vec<Value> = text.into_iter().chain([action]).collect();
    let document = |parts: &[Value], finish: Option<&str>| {
        let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
        if let (Some(candidate), Some(finish)) = (candidate.as_object_mut(), finish) {
            candidate.insert("finishReason".to_owned(), json!(finish));
        }
        json!({
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": tokens.input,
                "cachedContentTokenCount": tokens.cached,
                "candidatesTokenCount": tokens.output.saturating_sub(tokens.reasoning),
                "thoughtsTokenCount": tokens.reasoning,
                "totalTokenCount": tokens.input + tokens.output,
            },
            "modelVersion": "scripted",
            "responseId": format!("gemini_{}", turn.number),
        })
    };
    // The answer, then an empty event with the finish reason.
    let events = vec![
        SseEvent::unnamed(&document(&parts, None)),
        SseEvent::unnamed(&document(&[json!({ "text": "" })], Some("STOP"))),
    ];
    EncodedAnswer { document: document(&parts, Some("STOP")), events, half: 1 }
}
