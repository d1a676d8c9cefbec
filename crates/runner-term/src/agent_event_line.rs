//! One-line rendering of an agent's events, for the loop's output and `runner watch`.

use runner_core::agents::{ActivityState, AgentEventKind, FileChange, PlanItemState};
use runner_core::text::one_line;

const CHARS_MAX: usize = 200;

/// One line for an event; none if the event has no news for a person.
pub fn line(event: &AgentEventKind) -> Option<String> {
    let text = match event {
        AgentEventKind::Message { text } | AgentEventKind::Warning { text } => text.clone(),
        AgentEventKind::Reasoning { text } => format!("thinking: {text}"),
        AgentEventKind::Command { command, state: ActivityState::Started, .. } => {
            format!("$ {}", without_shell(command))
        }
        AgentEventKind::Command { command, exit, .. } => {
            let exit = exit.map_or("failed".to_owned(), |exit| format!("exit {exit}"));
            format!("$ {} ({exit})", without_shell(command))
        }
        AgentEventKind::Edit { files, state } => activity("edit", &paths(files), *state)?,
        AgentEventKind::Read { path, state } => activity("read", path, *state)?,
        AgentEventKind::Search { query, state } => activity("search", query, *state)?,
        AgentEventKind::Web { query, state } => activity("web", query, *state)?,
        AgentEventKind::Tool { name, state, .. } => activity("tool", name, *state)?,
        AgentEventKind::Plan { items } => {
            let done = items.iter().filter(|item| item.state == PlanItemState::Done).count();
            format!("plan: {done} of {} done", items.len())
        }
        AgentEventKind::Retry { text, attempt, of, .. } => match (attempt, of) {
            (Some(attempt), Some(of)) => format!("retrying, {attempt} of {of}: {text}"),
            (_, _) => format!("retrying: {text}"),
        },
        AgentEventKind::Compacted { .. } => "compacted its context".to_owned(),
        AgentEventKind::RateLimit { status, .. } if status == "allowed" => return None,
        AgentEventKind::RateLimit { status, .. } => format!("provider limit: {status}"),
        AgentEventKind::Failed { message } => format!("failed: {message}"),
        AgentEventKind::Session { .. }
        | AgentEventKind::Usage { .. }
        | AgentEventKind::Finished
        | AgentEventKind::Unknown { .. } => return None,
    };
    let line: String = one_line(&text).chars().take(CHARS_MAX).collect();
    Some(line).filter(|line| !line.is_empty())
}

/// An activity is reported when it starts, and again only if it fails.
fn activity(verb: &str, what: &str, state: ActivityState) -> Option<String> {
    match state {
        ActivityState::Started => Some(format!("{verb} {what}")),
        ActivityState::Failed => Some(format!("{verb} {what} (failed)")),
        ActivityState::Done => None,
    }
}

/// A command without the shell that Codex wraps it in.
fn without_shell(command: &str) -> &str {
    let shells = ["/bin/bash -lc ", "/usr/bin/bash -lc ", "bash -lc ", "/bin/zsh -lc "];
    let inner = shells.iter().find_map(|shell| command.strip_prefix(shell));
    let quoted = inner.map(|inner| {
        let unquoted = |quote: char| inner.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        unquoted('\'').or_else(|| unquoted('"')).unwrap_or(inner)
    });
    quoted.unwrap_or(command)
}

fn paths(files: &[FileChange]) -> String {
    files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(command: &str, state: ActivityState, exit: Option<i64>) -> AgentEventKind {
        AgentEventKind::Command { command: command.to_owned(), state, exit, output: String::new() }
    }

    #[test]
    fn line_is_short_and_without_control_sequences() {
        let text = format!("\u{1b}[31mred\u{1b}[0m\n{}", "x".repeat(10_000));
        let shown = line(&AgentEventKind::Message { text }).unwrap();
        assert!(shown.starts_with("red x") && shown.chars().count() == CHARS_MAX, "{shown}");
        assert_eq!(line(&AgentEventKind::Message { text: " \n".to_owned() }), None);
    }

    #[test]
    fn command_is_shown_without_its_shell() {
        assert_eq!(
            line(&command("/bin/bash -lc 'just ci'", ActivityState::Started, None)).unwrap(),
            "$ just ci"
        );
        assert_eq!(line(&command("just ci", ActivityState::Failed, Some(3))).unwrap(), "$ just ci (exit 3)");
        assert_eq!(line(&command("just ci", ActivityState::Failed, None)).unwrap(), "$ just ci (failed)");
    }

    #[test]
    fn successful_activity_is_reported_once() {
        let read = |state| line(&AgentEventKind::Read { path: "a.rs".to_owned(), state });
        assert_eq!(read(ActivityState::Started).unwrap(), "read a.rs");
        assert_eq!(read(ActivityState::Failed).unwrap(), "read a.rs (failed)");
        assert_eq!(read(ActivityState::Done), None);
    }
}
