//! Tool calls as events: the tool's name, which differs between agents, decides the kind of the event.

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::{
    ActivityState, AgentEvent, AgentEventKind, FileAction, FileChange, PlanItem, PlanItemState,
};
use super::truncate::{self, text};

/// Input keys that hold a file's path.
const PATH_KEYS: [&str; 5] = ["file_path", "filePath", "path", "absolute_path", "notebook_path"];
/// Input keys that hold what to search for.
const QUERY_KEYS: [&str; 4] = ["pattern", "query", "url", "prompt"];

/// The tool calls of a session that have started and not ended, by id.
#[derive(Debug, Default)]
pub(super) struct PendingCalls(BTreeMap<String, AgentEventKind>);

impl PendingCalls {
    /// Records a call and returns its event.
    pub(super) fn start(&mut self, id: Option<String>, tool: &str, input: &Value) -> AgentEvent {
        let kind = started(tool, input);
        if let Some(id) = &id {
            self.0.insert(id.clone(), kind.clone());
        }
        AgentEvent { id, parent: None, kind }
    }

    /// The event of a call's end; none if no such call has started.
    pub(super) fn end(
        &mut self,
        id: Option<&str>,
        state: ActivityState,
        exit: Option<i64>,
        result: &str,
    ) -> Option<AgentEvent> {
        let id = id?;
        let call = self.0.remove(id)?;
        Some(AgentEvent { id: Some(id.to_owned()), parent: None, kind: ended(call, state, exit, result) })
    }
}

/// The event of a call that starts.
pub(super) fn started(name: &str, input: &Value) -> AgentEventKind {
    let state = ActivityState::Started;
    let first = |keys: &[&str]| {
        let value = keys.iter().map(|key| text(input, key)).find(|text| !text.is_empty());
        truncate::name(value.unwrap_or_default())
    };
    let edit =
        |change| AgentEventKind::Edit { files: vec![FileChange { path: first(&PATH_KEYS), change }], state };
    match name {
        "Bash" | "bash" | "run_shell_command" | "run_terminal_command" | "shell" => {
            AgentEventKind::Command { command: first(&["command"]), state, exit: None, output: String::new() }
        }
        "Write" | "write" | "write_file" | "create" => edit(FileAction::Write),
        "Edit" | "MultiEdit" | "NotebookEdit" | "edit" | "replace" => edit(FileAction::Update),
        "Read" | "read" | "read_file" | "view" => AgentEventKind::Read { path: first(&PATH_KEYS), state },
        "Grep" | "Glob" | "grep" | "glob" | "grep_search" | "search_file_content" => {
            AgentEventKind::Search { query: first(&QUERY_KEYS), state }
        }
        "WebSearch" | "WebFetch" | "web_fetch" | "webfetch" | "google_web_search" => {
            AgentEventKind::Web { query: first(&QUERY_KEYS), state }
        }
        "TodoWrite" | "todo_write" | "todowrite" => AgentEventKind::Plan { items: plan_items(input) },
        _ => AgentEventKind::Tool {
            name: truncate::name(name),
            input: truncate::name(&input.to_string()),
            state,
            output: String::new(),
        },
    }
}

/// The event of the same call when it has ended.
pub(super) fn ended(
    call: AgentEventKind,
    state: ActivityState,
    exit: Option<i64>,
    result: &str,
) -> AgentEventKind {
    match call {
        AgentEventKind::Command { command, .. } => {
            AgentEventKind::Command { command, state, exit, output: truncate::output(result) }
        }
        AgentEventKind::Edit { files, .. } => AgentEventKind::Edit { files, state },
        AgentEventKind::Read { path, .. } => AgentEventKind::Read { path, state },
        AgentEventKind::Search { query, .. } => AgentEventKind::Search { query, state },
        AgentEventKind::Web { query, .. } => AgentEventKind::Web { query, state },
        AgentEventKind::Tool { name, input, .. } => {
            AgentEventKind::Tool { name, input, state, output: truncate::output(result) }
        }
        AgentEventKind::Plan { .. }
        | AgentEventKind::Session { .. }
        | AgentEventKind::Message { .. }
        | AgentEventKind::Reasoning { .. }
        | AgentEventKind::Retry { .. }
        | AgentEventKind::Warning { .. }
        | AgentEventKind::Compacted { .. }
        | AgentEventKind::RateLimit { .. }
        | AgentEventKind::Usage { .. }
        | AgentEventKind::Finished
        | AgentEventKind::Failed { .. }
        | AgentEventKind::Unknown { .. } => call,
    }
}

fn plan_items(input: &Value) -> Vec<PlanItem> {
    let mut items = Vec::new();
    for item in input.get("todos").and_then(Value::as_array).into_iter().flatten() {
        let state = match text(item, "status") {
            "completed" => PlanItemState::Done,
            "in_progress" => PlanItemState::Active,
            _ => PlanItemState::Open,
        };
        items.push(PlanItem { text: truncate::name(text(item, "content")), state });
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tool_names_of_every_agent_map_to_event_kinds() {
        let state = ActivityState::Started;
        let path = "a/b".to_owned();
        let query = "q".to_owned();
        let edit =
            |change| AgentEventKind::Edit { files: vec![FileChange { path: path.clone(), change }], state };
        let command =
            AgentEventKind::Command { command: "ls".to_owned(), state, exit: None, output: String::new() };
        let input = json!({ "absolute_path": path, "url": query, "command": "ls" });
        let other = |name: &str| AgentEventKind::Tool {
            name: name.to_owned(),
            input: input.to_string(),
            state,
            output: String::new(),
        };
        for (names, expected) in [
            (&["Bash", "bash", "run_shell_command", "shell"][..], command),
            (&["Write", "write", "write_file", "create"], edit(FileAction::Write)),
            (&["Edit", "MultiEdit", "NotebookEdit", "edit", "replace"], edit(FileAction::Update)),
            (&["Read", "read", "read_file", "view"], AgentEventKind::Read { path: path.clone(), state }),
            (
                &["Grep", "Glob", "grep", "glob", "grep_search", "search_file_content"],
                AgentEventKind::Search { query: query.clone(), state },
            ),
            (
                &["WebSearch", "WebFetch", "web_fetch", "webfetch", "google_web_search"],
                AgentEventKind::Web { query: query.clone(), state },
            ),
            (&["mcp__x"], other("mcp__x")),
        ] {
            for name in names {
                assert_eq!(started(name, &input), expected, "{name}");
            }
        }
    }

    #[test]
    fn to_do_lists_keep_the_state_of_each_item() {
        let input = json!({ "todos": [
            { "content": "a", "status": "completed" },
            { "content": "b", "status": "in_progress" },
            { "content": "c", "status": "pending" },
        ] });
        let items = [("a", PlanItemState::Done), ("b", PlanItemState::Active), ("c", PlanItemState::Open)];
        let items = items.map(|(text, state)| PlanItem { text: text.to_owned(), state }).to_vec();
        for name in ["TodoWrite", "todo_write", "todowrite"] {
            assert_eq!(started(name, &input), AgentEventKind::Plan { items: items.clone() }, "{name}");
        }
    }
}
