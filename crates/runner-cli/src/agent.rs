//! What an agent does, each thing on one short line.

use runner_core::agents::{FileChange, PlanState, Said, State};
use runner_core::text::one_line;

/// The most characters of a line.
const CHARS_MAX: usize = 200;

/// One line for an event; none for one that says nothing new to a person.
pub fn line(said: &Said) -> Option<String> {
    let text = match said {
        Said::Message { text } | Said::Warning { text } => text.clone(),
        Said::Reasoning { text } => format!("thinks: {text}"),
        Said::Command { command, state: State::Started, .. } => format!("$ {}", bare(command)),
        Said::Command { command, exit, .. } => {
            let exit = exit.map_or("failed".to_owned(), |exit| format!("exit {exit}"));
            format!("$ {} ({exit})", bare(command))
        }
        Said::Edit { files, state } => stated("edits", &paths(files), *state)?,
        Said::Read { path, state } => stated("reads", path, *state)?,
        Said::Search { query, state } => stated("searches for", query, *state)?,
        Said::Web { query, state } => stated("looks up", query, *state)?,
        Said::Tool { name, state, .. } => stated("uses", name, *state)?,
        Said::Plan { items } => {
            let done = items.iter().filter(|item| item.state == PlanState::Done).count();
            format!("plan: {done} of {} done", items.len())
        }
        Said::Retry { text, attempt, of, .. } => match (attempt, of) {
            (Some(attempt), Some(of)) => format!("tries again, {attempt} of {of}: {text}"),
            (_, _) => format!("tries again: {text}"),
        },
        Said::Compacted { .. } => "summed up its own history to make room".to_owned(),
        Said::RateLimit { status, .. } if status == "allowed" => return None,
        Said::RateLimit { status, .. } => format!("limit of the provider: {status}"),
        Said::Failed { message } => format!("failed: {message}"),
        Said::Session { .. } | Said::Usage { .. } | Said::Finished | Said::Unknown { .. } => return None,
    };
    let line: String = one_line(&text).chars().take(CHARS_MAX).collect();
    Some(line).filter(|line| !line.is_empty())
}

/// Something that is told when it begins, and again only if it fails.
fn stated(verb: &str, what: &str, state: State) -> Option<String> {
    match state {
        State::Started => Some(format!("{verb} {what}")),
        State::Failed => Some(format!("{verb} {what} (failed)")),
        State::Done => None,
    }
}

/// A command without the shell that Codex puts around it.
fn bare(command: &str) -> &str {
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

    fn command(command: &str, state: State, exit: Option<i64>) -> Said {
        Said::Command { command: command.to_owned(), state, exit, output: String::new() }
    }

    #[test]
    fn a_line_is_short_and_safe_for_a_terminal() {
        let text = format!("\u{1b}[31mred\u{1b}[0m\n{}", "x".repeat(10_000));
        let shown = line(&Said::Message { text }).unwrap();
        assert!(shown.starts_with("red x") && shown.chars().count() == CHARS_MAX, "{shown}");
        assert_eq!(line(&Said::Message { text: " \n".to_owned() }), None);
    }

    #[test]
    fn a_command_is_shown_as_it_was_meant() {
        assert_eq!(line(&command("/bin/bash -lc 'just ci'", State::Started, None)).unwrap(), "$ just ci");
        assert_eq!(line(&command("just ci", State::Failed, Some(3))).unwrap(), "$ just ci (exit 3)");
        assert_eq!(line(&command("just ci", State::Failed, None)).unwrap(), "$ just ci (failed)");
    }

    #[test]
    fn what_went_well_is_told_once() {
        let read = |state| line(&Said::Read { path: "a.rs".to_owned(), state });
        assert_eq!(read(State::Started).unwrap(), "reads a.rs");
        assert_eq!(read(State::Failed).unwrap(), "reads a.rs (failed)");
        assert_eq!(read(State::Done), None);
    }
}
