//! The lines of `codex exec --json`.

use serde_json::Value;

use super::event::{
    ActivityState, AgentEvent, AgentEventKind, FileAction, FileChange, PlanItem, PlanItemState,
};
use super::transcript::{FailureInfo, ParsedSession, SessionEnd};
use super::truncate::{self, number, some_text, text};
use crate::step::{CostSource, Usage};

/// What one line means.
pub(super) fn read(line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
    let told = match text(line, "type") {
        "thread.started" => thread_started(line, findings),
        "turn.started" => return Vec::new(),
        "turn.completed" => return turn_completed(line, findings),
        "turn.failed" => turn_failed(line, findings),
        "error" => error(line, findings),
        "item.started" | "item.updated" | "item.completed" => return item(line).into_iter().collect(),
        _ => AgentEventKind::Unknown { raw: truncate::raw(line) },
    };
    vec![AgentEvent::of(told)]
}

fn thread_started(line: &Value, findings: &mut ParsedSession) -> AgentEventKind {
    findings.identity.session_id = some_text(line, "thread_id");
    let session_id = findings.identity.session_id.clone();
    AgentEventKind::Session { session_id, model: None, version: None, tools: Vec::new() }
}

/// What a turn cost. Codex counts cached tokens among the input already, and thoughts among the output.
fn turn_completed(line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
    findings.end = SessionEnd::Finished;
    let mut events = Vec::new();
    if let Some(usage) = line.get("usage") {
        let usage = Usage {
            input_tokens: number(usage, "input_tokens"),
            cached_input_tokens: number(usage, "cached_input_tokens"),
            output_tokens: number(usage, "output_tokens"),
            reasoning_tokens: number(usage, "reasoning_output_tokens"),
            cost_microdollars: None,
            cost_source: CostSource::Unknown,
        };
        findings.usage = usage;
        events.push(AgentEvent::of(AgentEventKind::Usage { usage }));
    }
    events.push(AgentEvent::of(AgentEventKind::Finished));
    events
}

fn turn_failed(line: &Value, findings: &mut ParsedSession) -> AgentEventKind {
    let message = line.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
    let message = truncate::name(message);
    findings.end = SessionEnd::Failed(FailureInfo { message: message.clone(), ..FailureInfo::default() });
    AgentEventKind::Failed { message }
}

/// An error at the top level ends nothing by itself: a notice that codex tries again, or the words of the failure
/// that follows.
fn error(line: &Value, findings: &mut ParsedSession) -> AgentEventKind {
    let message = text(line, "message");
    let text = truncate::name(message);
    let Some(rest) = message.strip_prefix("Reconnecting...") else {
        findings.last_error = Some(text.clone());
        return AgentEventKind::Warning { text };
    };
    let count = rest.split_whitespace().next().and_then(|word| word.split_once('/'));
    let count = count.and_then(|(attempt, of)| Some((attempt.parse().ok()?, of.parse().ok()?)));
    AgentEventKind::Retry {
        text,
        attempt: count.map(|(attempt, _)| attempt),
        of: count.map(|(_, of)| of),
        wait_ms: None,
    }
}

fn item(line: &Value) -> Option<AgentEvent> {
    let item = line.get("item")?;
    let state = state_of(text(line, "type"), text(item, "status"));
    let named = |key: &str| truncate::name(text(item, key));
    let said = match text(item, "type") {
        "agent_message" => AgentEventKind::Message { text: truncate::said(text(item, "text")) },
        "reasoning" => AgentEventKind::Reasoning { text: truncate::said(text(item, "text")) },
        "command_execution" => AgentEventKind::Command {
            command: named("command"),
            state,
            exit: item.get("exit_code").and_then(Value::as_i64),
            output: truncate::output(text(item, "aggregated_output")),
        },
        "file_change" => AgentEventKind::Edit { files: files(item), state },
        "web_search" => AgentEventKind::Web { query: named("query"), state },
        "todo_list" => AgentEventKind::Plan { items: todo(item) },
        "error" => AgentEventKind::Warning { text: truncate::said(text(item, "message")) },
        "mcp_tool_call" | "collab_tool_call" => tool(item, state),
        _ => AgentEventKind::Unknown { raw: truncate::raw(line) },
    };
    Some(AgentEvent { id: some_text(item, "id"), parent: None, said })
}

fn state_of(line: &str, status: &str) -> ActivityState {
    match (line, status) {
        (_, "failed" | "declined") => ActivityState::Failed,
        ("item.completed", _) | (_, "completed") => ActivityState::Done,
        _ => ActivityState::Started,
    }
}

fn tool(item: &Value, state: ActivityState) -> AgentEventKind {
    let name = [text(item, "server"), text(item, "tool")].map(str::to_owned);
    let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    let shown = |key: &str| item.get(key).filter(|value| !value.is_null()).map(ToString::to_string);
    let output = shown("result").or_else(|| shown("error")).unwrap_or_default();
    let input = shown("arguments").or_else(|| shown("prompt")).unwrap_or_default();
    AgentEventKind::Tool {
        name: truncate::name(&name),
        input: truncate::name(&input),
        state,
        output: truncate::output(&output),
    }
}

fn files(item: &Value) -> Vec<FileChange> {
    let changes = item.get("changes").and_then(Value::as_array);
    let file = |change: &Value| FileChange {
        path: truncate::name(text(change, "path")),
        change: match text(change, "kind") {
            "add" => FileAction::Add,
            "delete" => FileAction::Delete,
            _ => FileAction::Update,
        },
    };
    changes.into_iter().flatten().map(file).collect()
}

fn todo(item: &Value) -> Vec<PlanItem> {
    let entry = |entry: &Value| PlanItem {
        text: truncate::name(text(entry, "text")),
        state: match entry.get("completed").and_then(Value::as_bool) {
            Some(true) => PlanItemState::Done,
            Some(false) | None => PlanItemState::Open,
        },
    };
    item.get("items").and_then(Value::as_array).into_iter().flatten().map(entry).collect()
}
