//! Words of other tools that people type for a command of this one.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::command_groups::GROUPS;

/// A word that is no command, and the commands that it may mean, the likeliest first.
const OTHER_WORDS: &[(&str, &[&str])] = &[
    ("abort", &["stop"]),
    ("add", &["node"]),
    ("apply", &["land"]),
    ("audit", &["verify"]),
    ("bench", &["eval"]),
    ("bisect", &["blame"]),
    ("cancel", &["stop"]),
    ("checkout", &["switch"]),
    ("continue", &["loop", "resume"]),
    ("create", &["run", "init"]),
    ("dashboard", &["ui", "watch"]),
    ("delete", &["clean"]),
    ("edit", &["plan", "node"]),
    ("finish", &["land"]),
    ("follow", &["watch"]),
    ("gc", &["clean"]),
    ("go", &["loop"]),
    ("history", &["log"]),
    ("info", &["status", "show"]),
    ("init-run", &["run"]),
    ("kill", &["stop"]),
    ("lint", &["plan", "validate"]),
    ("list", &["tree", "runs"]),
    ("ls", &["runs", "tree"]),
    ("merge", &["land"]),
    ("new", &["run"]),
    ("next", &["step", "select"]),
    ("pr", &["land"]),
    ("prune", &["clean"]),
    ("quit", &["stop"]),
    ("remove", &["clean"]),
    ("reply", &["answer"]),
    ("reset", &["fork"]),
    ("restart", &["loop"]),
    ("revert", &["fork"]),
    ("rm", &["clean"]),
    ("rollback", &["fork"]),
    ("serve", &["ui"]),
    ("set", &["config"]),
    ("settings", &["config"]),
    ("setup", &["init"]),
    ("tail", &["watch"]),
    ("task", &["node", "tree"]),
    ("tasks", &["tree"]),
    ("todo", &["tree"]),
    ("undo", &["fork"]),
    ("web", &["ui"]),
    ("work", &["loop"]),
];

/// Suggests the commands that a word of another tool means, in the place of those that are spelled like it.
pub(super) fn suggest_meant(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    let meant = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::InvalidSubcommand => {
            commands_for(word, args)
        }
        Some(_) | None => None,
    };
    if let Some(commands) = meant {
        let names = commands.iter().map(|&name| name.to_owned()).collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
    error
}

/// None for a word behind a command: it belongs to that one.
fn commands_for(word: &str, args: &[OsString]) -> Option<&'static [&'static str]> {
    let is_command =
        |arg: &OsString| GROUPS.iter().flat_map(|group| group.commands).any(|row| arg == row.name);
    let mut before = args.iter().take_while(|arg| *arg != word);
    if before.any(is_command) {
        return None;
    }
    OTHER_WORDS.iter().find(|(other, _)| *other == word).map(|(_, commands)| *commands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    fn usage_error(line: &str) -> String {
        let args: Vec<OsString> =
            std::iter::once("runner").chain(line.split(' ')).map(OsString::from).collect();
        parse(&args).unwrap_err().to_string()
    }

    #[test]
    fn words_of_other_tools_name_commands_that_exist() {
        let names: Vec<&str> = GROUPS.iter().flat_map(|group| group.commands).map(|row| row.name).collect();
        for (word, commands) in OTHER_WORDS {
            assert!(!names.contains(word) && !commands.is_empty(), "{word}");
            assert!(commands.iter().all(|command| names.contains(command)), "{word}: {commands:?}");
        }
        assert!(OTHER_WORDS.is_sorted_by_key(|(word, _)| *word), "{OTHER_WORDS:?}");
    }

    #[test]
    fn unknown_commands_are_suggested_by_meaning_first_and_then_by_spelling() {
        for (line, suggestion) in [
            ("list", "some similar subcommands exist: 'tree', 'runs'"),
            ("undo 3", "a similar subcommand exists: 'fork'"),
            ("-C . merge --json", "a similar subcommand exists: 'land'"),
            ("cancel", "a similar subcommand exists: 'stop'"),
            ("statsu", "'status'"),
        ] {
            let error = usage_error(line);
            assert!(error.contains(suggestion), "{line}: {error}");
        }
        assert!(!usage_error("node list").contains("'tree'"), "{}", usage_error("node list"));
    }
}
