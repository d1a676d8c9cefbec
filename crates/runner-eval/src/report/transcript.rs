//! Reads the sessions of a trial from the folders of its iterations: prompt, actions, answer, usage. For reports.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::iteration_folders;
use crate::result::stored_trial::StoredTrial;

/// Larger files are not included in a report.
const FILE_BYTES_MAX: u64 = 16_000_000;

pub(crate) struct TranscriptSession {
    pub(crate) prompt: String,
    /// In order.
    pub(crate) actions: Vec<AgentAction>,
    /// The answer as the agent wrote it.
    pub(crate) answer: String,
    /// The outcome of the iteration, in a line.
    pub(crate) outcome: String,
    /// Tokens and cost, as in the iteration's `meta.json`.
    pub(crate) usage: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AgentAction {
    Message(String),
    Reasoning(String),
    ToolCall { name: String, input: Value, output: Option<String> },
}

/// The sessions of a trial, in order.
pub(crate) fn sessions(trial: &StoredTrial) -> Vec<TranscriptSession> {
    iteration_folders(&trial.folder).iter().map(|folder| session(folder)).collect()
}

/// The goal of the trial's run, from its tree.
pub(crate) fn goal(trial: &StoredTrial) -> Option<String> {
    let tree: Value = serde_json::from_str(&read_text(&trial.folder.join("tree.json"))?).ok()?;
    tree.pointer("/root/goal").and_then(Value::as_str).map(str::to_owned)
}

fn session(folder: &Path) -> TranscriptSession {
    let text = |name: &str| read_text(&folder.join(name)).unwrap_or_default();
    let meta: Value = serde_json::from_str(&text("meta.json")).unwrap_or_default();
    let field = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or("unknown");
    TranscriptSession {
        prompt: text("prompt.md"),
        actions: actions(&text("events.jsonl")),
        answer: text("output.json"),
        outcome: format!("outcome: {}; guard: {}", field("outcome"), field("guard")),
        usage: meta.get("usage").cloned().unwrap_or_default(),
    }
}

/// The text of a regular file that is not too large. A link, which an agent may have created, is not followed.
fn read_text(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return None;
    }
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
}

/// The actions in `events.jsonl`. A later event with the same id replaces the earlier one.
fn actions(events: &str) -> Vec<AgentAction> {
    let mut actions: Vec<AgentAction> = Vec::new();
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    for line in events.lines() {
        let Ok(event) = serde_json::from_str::<Map<String, Value>>(line) else { continue };
        if event.get("event").and_then(Value::as_str) != Some("agent") {
            continue;
        }
        let Some(action) = action(&event) else { continue };
        let id = event.get("id").and_then(Value::as_str);
        let earlier = id.and_then(|id| positions.get(id)).and_then(|position| actions.get_mut(*position));
        match earlier {
            Some(earlier) => *earlier = action,
            None => {
                positions.extend(id.map(|id| (id.to_owned(), actions.len())));
                actions.push(action);
            }
        }
    }
    actions
}

fn action(event: &Map<String, Value>) -> Option<AgentAction> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).map(str::to_owned);
    let tool_call = |name: String, input_key: &str| {
        let input = json!({ input_key: event.get(input_key).cloned().unwrap_or_default() });
        Some(AgentAction::ToolCall { name, input, output: text("output") })
    };
    let kind = text("kind")?;
    match kind.as_str() {
        "message" => text("text").map(AgentAction::Message),
        "reasoning" => text("text").map(AgentAction::Reasoning),
        "command" => tool_call(kind, "command"),
        "edit" => tool_call(kind, "files"),
        "read" => tool_call(kind, "path"),
        "search" | "web" => tool_call(kind, "query"),
        "tool" => tool_call(text("name")?, "input"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_command_replaces_its_running_event() {
        let events = r#"{"event":"planned","iter":1}
{"event":"agent","iter":1,"seq":1,"kind":"message","text":"hello"}
{"event":"agent","iter":1,"seq":2,"id":"c","kind":"command","command":"ls","state":"running","exit":null,"output":""}
{"event":"agent","iter":1,"seq":3,"kind":"reasoning","text":"hm"}
{"event":"agent","iter":1,"seq":4,"id":"c","kind":"command","command":"ls","state":"done","exit":0,"output":"a"}
not json
"#;
        let command = AgentAction::ToolCall {
            name: "command".into(),
            input: json!({ "command": "ls" }),
            output: Some("a".into()),
        };
        assert_eq!(
            actions(events),
            [AgentAction::Message("hello".into()), command, AgentAction::Reasoning("hm".into())]
        );
    }
}
