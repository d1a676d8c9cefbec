//! Calls of tools, whichever agent makes them: what each is for, by the names that agents give them.

use serde_json::Value;

use super::bounded::{self, text};
use super::event::{Change, FileChange, PlanItem, PlanState, Said, State};

/// The keys under which tools name a file.
const PATHS: [&str; 5] = ["file_path", "filePath", "path", "absolute_path", "notebook_path"];
/// The keys under which they say what they look for.
const QUERIES: [&str; 4] = ["pattern", "query", "url", "prompt"];

/// A call that begins.
pub(super) fn begun(name: &str, input: &Value) -> Said {
    let state = State::Started;
    let first = |keys: &[&str]| {
        let found = keys.iter().map(|key| text(input, key)).find(|text| !text.is_empty());
        bounded::name(found.unwrap_or_default())
    };
    let edit = |change| Said::Edit { files: vec![FileChange { path: first(&PATHS), change }], state };
    match name {
        "Bash" | "bash" | "run_shell_command" | "shell" => {
            Said::Command { command: first(&["command"]), state, exit: None, output: String::new() }
        }
        "Write" | "write" | "write_file" | "create" => edit(Change::Write),
        "Edit" | "MultiEdit" | "NotebookEdit" | "edit" | "replace" => edit(Change::Update),
        "Read" | "read" | "read_file" | "view" => Said::Read { path: first(&PATHS), state },
        "Grep" | "Glob" | "grep" | "glob" | "grep_search" | "search_file_content" => {
            Said::Search { query: first(&QUERIES), state }
        }
        "WebSearch" | "WebFetch" | "web_fetch" | "webfetch" | "google_web_search" => {
            Said::Web { query: first(&QUERIES), state }
        }
        "TodoWrite" | "todo_write" | "todowrite" => Said::Plan { items: todo(input) },
        _ => Said::Tool {
            name: bounded::name(name),
            input: bounded::name(&input.to_string()),
            state,
            output: String::new(),
        },
    }
}

/// The same call, now that it is over.
pub(super) fn ended(call: Said, state: State, exit: Option<i64>, result: &str) -> Said {
    match call {
        Said::Command { command, .. } => {
            Said::Command { command, state, exit, output: bounded::output(result) }
        }
        Said::Edit { files, .. } => Said::Edit { files, state },
        Said::Read { path, .. } => Said::Read { path, state },
        Said::Search { query, .. } => Said::Search { query, state },
        Said::Web { query, .. } => Said::Web { query, state },
        Said::Tool { name, input, .. } => Said::Tool { name, input, state, output: bounded::output(result) },
        Said::Plan { .. }
        | Said::Session { .. }
        | Said::Message { .. }
        | Said::Reasoning { .. }
        | Said::Retry { .. }
        | Said::Warning { .. }
        | Said::Compacted { .. }
        | Said::RateLimit { .. }
        | Said::Usage { .. }
        | Said::Finished
        | Said::Failed { .. }
        | Said::Unknown { .. } => call,
    }
}

fn todo(input: &Value) -> Vec<PlanItem> {
    let entry = |entry: &Value| PlanItem {
        text: bounded::name(text(entry, "content")),
        state: match text(entry, "status") {
            "completed" => PlanState::Done,
            "in_progress" => PlanState::Active,
            _ => PlanState::Open,
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
        let (state, path, query) = (State::Started, "a/b".to_owned(), "q".to_owned());
        let edit = |change| Said::Edit { files: vec![FileChange { path: path.clone(), change }], state };
        let command = Said::Command { command: "ls".to_owned(), state, exit: None, output: String::new() };
        let input = json!({ "absolute_path": path, "url": query, "command": "ls" });
        let other = |name: &str| Said::Tool {
            name: name.to_owned(),
            input: input.to_string(),
            state,
            output: String::new(),
        };
        for (names, expected) in [
            (&["Bash", "bash", "run_shell_command", "shell"][..], command),
            (&["Write", "write", "write_file", "create"], edit(Change::Write)),
            (&["Edit", "MultiEdit", "NotebookEdit", "edit", "replace"], edit(Change::Update)),
            (&["Read", "read", "read_file", "view"], Said::Read { path: path.clone(), state }),
            (
                &["Grep", "Glob", "grep", "glob", "grep_search", "search_file_content"],
                Said::Search { query: query.clone(), state },
            ),
            (
                &["WebSearch", "WebFetch", "web_fetch", "webfetch", "google_web_search"],
                Said::Web { query: query.clone(), state },
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
        let items = [("a", PlanState::Done), ("b", PlanState::Active), ("c", PlanState::Open)];
        let items = items.map(|(text, state)| PlanItem { text: text.to_owned(), state }).to_vec();
        for name in ["TodoWrite", "todo_write", "todowrite"] {
            assert_eq!(begun(name, &input), Said::Plan { items: items.clone() }, "{name}");
        }
    }
}
