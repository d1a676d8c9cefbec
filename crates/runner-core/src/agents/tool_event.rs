//! Calls of tools, whichever agent makes them: what each is for, by the names that agents give them.

use serde_json::Value;

use super::event::{ActivityState, AgentEventKind, FileAction, FileChange, PlanItem, PlanItemState};
use super::truncate::{self, text};

/// The keys under which tools name a file.
const PATHS: [&str; 5] = ["file_path", "filePath", "path", "absolute_path", "notebook_path"];
/// The keys under which they say what they look for.
const QUERIES: [&str; 4] = ["pattern", "query", "url", "prompt"];

/// A call that begins.
pub(super) fn begun(name: &str, input: &Value) -> AgentEventKind {
    let state = ActivityState::Started;
    let first = |keys: &[&str]| {
        let found = keys.iter().map(|key| text(input, key)).find(|text| !text.is_empty());
        truncate::name(found.unwrap_or_default())
    };
    let edit =
        |change| AgentEventKind::Edit { files: vec![FileChange { path: first(&PATHS), change }], state };
    match name {
        "Bash" | "bash" | "run_shell_command" | "shell" => {
            AgentEventKind::Command { command: first(&["command"]), state, exit: None, output: String::new() }
        }
        "Write" | "write" | "write_file" | "create" => edit(FileAction::Write),
        "Edit" | "MultiEdit" | "NotebookEdit" | "edit" | "replace" => edit(FileAction::Update),
        "Read" | "read" | "read_file" | "view" => AgentEventKind::Read { path: first(&PATHS), state },
        "Grep" | "Glob" | "grep" | "glob" | "grep_search" | "search_file_content" => {
            AgentEventKind::Search { query: first(&QUERIES), state }
        }
        "WebSearch" | "WebFetch" | "web_fetch" | "webfetch" | "google_web_search" => {
            AgentEventKind::Web { query: first(&QUERIES), state }
        }
        "TodoWrite" | "todo_write" | "todowrite" => AgentEventKind::Plan { items: todo(input) },
        _ => AgentEventKind::Tool {
            name: truncate::name(name),
            input: truncate::name(&input.to_string()),
            state,
            output: String::new(),
        },
    }
}

/// The same call, now that it is over.
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

fn todo(input: &Value) -> Vec<PlanItem> {
    let entry = |entry: &Value| PlanItem {
        text: truncate::name(text(entry, "content")),
        state: match text(entry, "status") {
            "completed" => PlanItemState::Done,
            "in_progress" => PlanItemState::Active,
            _ => PlanItemState::Open,
        },
    };
    input.get("todos").and_then(Value::as_array).into_iter().flatten().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_told_by_what_it_is_for_whichever_name_the_agent_has_for_it() {
        let (state, path, query) = (ActivityState::Started, "a/b".to_owned(), "q".to_owned());
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
                assert_eq!(begun(name, &input), expected, "{name}");
            }
        }
    }

    #[test]
    fn a_list_of_things_to_do_says_how_far_each_is() {
        let input = json!({ "todos": [
            { "content": "a", "status": "completed" },
            { "content": "b", "status": "in_progress" },
            { "content": "c", "status": "pending" },
        ] });
        let items = [("a", PlanItemState::Done), ("b", PlanItemState::Active), ("c", PlanItemState::Open)];
        let items = items.map(|(text, state)| PlanItem { text: text.to_owned(), state }).to_vec();
        for name in ["TodoWrite", "todo_write", "todowrite"] {
            assert_eq!(begun(name, &input), AgentEventKind::Plan { items: items.clone() }, "{name}");
        }
    }
}
