//! Reads the sessions of a trial from the folders of its iterations: prompt, actions, answer, usage. For reports.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use runner_core::agents::AgentEventKind;
use runner_core::step::{Event, RecordedEvent, RecordedIteration, Usage};
use serde_json::{Value, json};

use super::iteration_folders;
use crate::result::stored_trial::StoredTrial;

/// Larger files are not included in a report.
const FILE_BYTES_MAX: u64 = 16_000_000;

pub(crate) struct TranscriptSession {
    pub(crate) prompt: String,
    pub(crate) actions: Vec<AgentAction>,
    /// The answer as the agent wrote it.
    pub(crate) answer: String,
    /// The outcome of the iteration, in a line.
    pub(crate) outcome: String,
    /// Tokens and cost; none if the iteration's `meta.json` is missing.
    pub(crate) usage: Option<Usage>,
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
    let recorded = RecordedIteration::from_json(text("meta.json").as_bytes()).map(|recorded| recorded.meta);
    let outcome = match &recorded {
        Some(meta) => format!("outcome: {}; guard: {}", meta.outcome, meta.guard.as_str()),
        None => "outcome: unknown".to_owned(),
    };
    TranscriptSession {
        prompt: text("prompt.md"),
        actions: actions(&text("events.jsonl")),
        answer: text("output.json"),
        outcome,
        usage: recorded.map(|meta| meta.usage),
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
    for recorded in RecordedEvent::from_lines(events.as_bytes()) {
        let Event::Agent { activity, .. } = recorded.event else { continue };
        let Some(action) = action(activity.kind) else { continue };
        let earlier = activity.id.as_ref().and_then(|id| positions.get(id));
        match earlier.and_then(|position| actions.get_mut(*position)) {
            Some(earlier) => *earlier = action,
            None => {
                positions.extend(activity.id.map(|id| (id, actions.len())));
                actions.push(action);
            }
        }
    }
    actions
}

/// The action of an event; none for events that are not actions.
fn action(kind: AgentEventKind) -> Option<AgentAction> {
    let name = kind.name().to_owned();
    let tool_call =
        |input: Value, output: Option<String>| Some(AgentAction::ToolCall { name, input, output });
    match kind {
        AgentEventKind::Message { text } => Some(AgentAction::Message(text)),
        AgentEventKind::Reasoning { text } => Some(AgentAction::Reasoning(text)),
        AgentEventKind::Command { command, output, .. } => {
            tool_call(json!({ "command": command }), Some(output))
        }
        AgentEventKind::Edit { files, .. } => tool_call(json!({ "files": files }), None),
        AgentEventKind::Read { path, .. } => tool_call(json!({ "path": path }), None),
        AgentEventKind::Search { query, .. } | AgentEventKind::Web { query, .. } => {
            tool_call(json!({ "query": query }), None)
        }
        AgentEventKind::Tool { name, input, output, .. } => {
            Some(AgentAction::ToolCall { name, input: json!({ "input": input }), output: Some(output) })
        }
        AgentEventKind::Session { .. }
        | AgentEventKind::Plan { .. }
        | AgentEventKind::Retry { .. }
        | AgentEventKind::Warning { .. }
        | AgentEventKind::Compacted { .. }
        | AgentEventKind::RateLimit { .. }
        | AgentEventKind::Usage { .. }
        | AgentEventKind::Finished
        | AgentEventKind::Failed { .. }
        | AgentEventKind::Unknown { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_command_replaces_its_running_event() {
        let events = r#"{"t_ms":1,"event":"paused"}
{"t_ms":2,"event":"agent","iter":1,"seq":1,"kind":"message","text":"hello"}
{"t_ms":3,"event":"agent","iter":1,"seq":2,"id":"c","kind":"command","command":"ls","state":"started","exit":null,"output":""}
{"t_ms":4,"event":"agent","iter":1,"seq":3,"kind":"reasoning","text":"hm"}
{"t_ms":5,"event":"agent","iter":1,"seq":4,"id":"c","kind":"command","command":"ls","state":"done","exit":0,"output":"a"}
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
