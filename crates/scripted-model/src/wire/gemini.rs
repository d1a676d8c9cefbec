//! Gemini: `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use super::{
    EncodedAnswer, ModelRequest, ModelTurn, OfferedTool, SseEvent, TurnAction, arguments_of, list, said_by,
    text_at,
};

pub(super) fn read(path: &str, body: &Value) -> ModelRequest {
    let contents = list(body, "contents");
    let declared = list(body, "tools").iter().flat_map(|tool| list(tool, "functionDeclarations"));
    let parts = contents.iter().flat_map(|content| list(content, "parts"));
    let path = path.split('?').next().unwrap_or_default();
    let model = path.rsplit('/').next().and_then(|last| last.split(':').next()).unwrap_or_default();
    ModelRequest {
        tools: declared.map(|tool| OfferedTool { name: text_at(tool, "name"), takes_text: false }).collect(),
        results: parts.filter(|part| part.get("functionResponse").is_some()).count(),
        prompt: said_by(contents, "user", "parts"),
        last: contents.last().map(ToString::to_string).unwrap_or_default(),
        model: model.to_owned(),
        is_stream: path.ends_with(":streamGenerateContent"),
        ..ModelRequest::default()
    }
}

pub(super) fn write(turn: &ModelTurn) -> EncodedAnswer {
    let tokens = turn.tokens;
    let said = turn.say.as_ref().map(|text| json!({ "text": text }));
    let act = match (&turn.act, arguments_of(&turn.act)) {
        (_, Some((name, arguments))) => json!({ "functionCall": { "name": name, "args": arguments } }),
        (TurnAction::Text(text), _) => json!({ "text": text }),
        (TurnAction::Call { .. } | TurnAction::Custom { .. }, None) => Value::Null,
    };
    let parts: Vec<Value> = said.into_iter().chain([act]).collect();
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
    // The answer, and then that it is the whole answer.
    let events = vec![
        SseEvent::unnamed(&document(&parts, None)),
        SseEvent::unnamed(&document(&[json!({ "text": "" })], Some("STOP"))),
    ];
    EncodedAnswer { whole: document(&parts, Some("STOP")), events, half: 1 }
}
