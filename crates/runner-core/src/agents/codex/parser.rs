//! The output of `codex exec --json`, one event per line. No event depends on an earlier line.

use serde_json::Value;

use crate::agents::event::{
    ActivityState, AgentEvent, AgentEventKind, FileAction, FileChange, PlanItem, PlanItemState,
};
use crate::agents::transcript::{FailureInfo, LineParser, ParsedSession, SessionEnd};
use crate::agents::truncate::{self, number, some_text, text};
use crate::step::{CostSource, Usage};

#[derive(Debug)]
pub(super) struct CodexParser;

impl LineParser for CodexParser {
    fn parse_line(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        let kind = match text(line, "type") {
            "thread.started" => thread_started(line, session),
            "turn.started" => return Vec::new(),
            "turn.completed" => return turn_completed(line, session),
            "turn.failed" => turn_failed(line, session),
            "error" => error(line, session),
            "item.started" | "item.updated" | "item.completed" => return item(line).into_iter().collect(),
            _ => return vec![AgentEvent::unknown(line)],
        };
        vec![AgentEvent::new(kind)]
    }

    /// A line of Codex's own record of the session, which has the sum after every response. Its output has it only at the end.
    fn parse_usage_line(&mut self, line: &Value, session: &mut ParsedSession) {
        let sum = match text(line, "type") {
            "token_usage_record" => line.pointer("/payload/turn_token_usage"),
            "event_msg" => line.pointer("/payload/info/total_token_usage"),
            _ => None,
        };
        let Some(usage) = sum.map(token_usage) else { return };
        if usage.input_tokens > session.usage.input_tokens {
            session.usage = usage;
        }
    }
}

fn thread_started(line: &Value, session: &mut ParsedSession) -> AgentEventKind {
    session.identity.session_id = some_text(line, "thread_id");
    let session_id = session.identity.session_id.clone();
    AgentEventKind::Session { session_id, model: None, version: None, tools: Vec::new() }
}

/// Codex includes tokens read from and written to a cache in the input, and reasoning in the output.
fn token_usage(usage: &Value) -> Usage {
    Usage {
        input_tokens: number(usage, "input_tokens"),
        cached_input_tokens: number(usage, "cached_input_tokens"),
        cache_write_input_tokens: number(usage, "cache_write_input_tokens"),
        output_tokens: number(usage, "output_tokens"),
        reasoning_tokens: number(usage, "reasoning_output_tokens"),
        cost_microdollars: None,
        cost_source: CostSource::Unknown,
    }
}

fn turn_completed(line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
    session.end = SessionEnd::Finished;
    let mut events = Vec::new();
    if let Some(usage) = line.get("usage") {
        let usage = token_usage(usage);
        session.usage = usage;
        events.push(AgentEvent::new(AgentEventKind::Usage { usage }));
    }
    events.push(AgentEvent::new(AgentEventKind::Finished));
    events
}

fn turn_failed(line: &Value, session: &mut ParsedSession) -> AgentEventKind {
    let message = truncate::name(line.pointer("/error/message").and_then(Value::as_str).unwrap_or_default());
    session.end = SessionEnd::Failed(FailureInfo { message: message.clone(), ..FailureInfo::default() });
    AgentEventKind::Failed { message }
}

/// An error at the top level does not end the session: it announces a retry, or the message of the failure that
/// follows.
fn error(line: &Value, session: &mut ParsedSession) -> AgentEventKind {
    let message = text(line, "message");
    let text = truncate::name(message);
    let Some(rest) = message.strip_prefix("Reconnecting...") else {
        session.last_error = Some(text.clone());
        return AgentEventKind::Warning { text };
    };
    let (attempt, of) = retry_count(rest).unzip();
    AgentEventKind::Retry { text, attempt, of, wait_ms: None }
}

/// `2/5` after "Reconnecting...".
fn retry_count(rest: &str) -> Option<(u64, u64)> {
    let (attempt, of) = rest.split_whitespace().next()?.split_once('/')?;
    Some((attempt.parse().ok()?, of.parse().ok()?))
}

fn item(line: &Value) -> Option<AgentEvent> {
    let item = line.get("item")?;
    let state = state_of(text(line, "type"), text(item, "status"));
    let name = |key: &str| truncate::name(text(item, key));
    let kind = match text(item, "type") {
        "agent_message" => AgentEventKind::Message { text: truncate::message(text(item, "text")) },
        "reasoning" => AgentEventKind::Reasoning { text: truncate::message(text(item, "text")) },
        "command_execution" => AgentEventKind::Command {
            command: name("command"),
            state,
            exit: item.get("exit_code").and_then(Value::as_i64),
            output: truncate::output(text(item, "aggregated_output")),
        },
        "file_change" => AgentEventKind::Edit { files: files(item), state },
        "web_search" => AgentEventKind::Web { query: name("query"), state },
        "todo_list" => AgentEventKind::Plan { items: plan_items(item) },
        "error" => AgentEventKind::Warning { text: truncate::message(text(item, "message")) },
        "mcp_tool_call" | "collab_tool_call" => tool(item, state),
        _ => AgentEventKind::Unknown { raw: truncate::raw(line) },
    };
    Some(AgentEvent { id: some_text(item, "id"), parent: None, kind })
}

fn state_of(line: &str, status: &str) -> ActivityState {
    match (line, status) {
        (_, "failed" | "declined") => ActivityState::Failed,
        ("item.completed", _) | (_, "completed") => ActivityState::Done,
        _ => ActivityState::Started,
    }
}

fn tool(item: &Value, state: ActivityState) -> AgentEventKind {
    let name_parts = [text(item, "server"), text(item, "tool")];
    let name_parts: Vec<&str> = name_parts.into_iter().filter(|part| !part.is_empty()).collect();
    let json_of = |key: &str| item.get(key).filter(|value| !value.is_null()).map(ToString::to_string);
    let output = json_of("result").or_else(|| json_of("error")).unwrap_or_default();
    let input = json_of("arguments").or_else(|| json_of("prompt")).unwrap_or_default();
    AgentEventKind::Tool {
        name: truncate::name(&name_parts.join("/")),
        input: truncate::name(&input),
        state,
        output: truncate::output(&output),
    }
}

fn files(item: &Value) -> Vec<FileChange> {
    let mut files = Vec::new();
    for file in item.get("changes").and_then(Value::as_array).into_iter().flatten() {
        let change = match text(file, "kind") {
            "add" => FileAction::Add,
            "delete" => FileAction::Delete,
            _ => FileAction::Update,
        };
        files.push(FileChange { path: truncate::name(text(file, "path")), change });
    }
    files
}

fn plan_items(item: &Value) -> Vec<PlanItem> {
    let mut items = Vec::new();
    for entry in item.get("items").and_then(Value::as_array).into_iter().flatten() {
        let state = match entry.get("completed").and_then(Value::as_bool) {
            Some(true) => PlanItemState::Done,
            Some(false) | None => PlanItemState::Open,
        };
        items.push(PlanItem { text: truncate::name(text(entry, "text")), state });
    }
    items
}
