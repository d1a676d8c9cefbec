//! Every command in README, the guides and the explanations of codes is one that this program understands.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::{RunnerCommand, parse};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents whose commands a user types.
fn documents() -> Vec<PathBuf> {
    let in_folder = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect::<Vec<_>>()
    };
    [in_folder("docs/guide"), in_folder("docs"), vec![root().join("README.md")]].concat()
}

/// The fenced blocks of a document in this language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut open: Option<&str> = None;
    for line in text.lines() {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            open = if open.is_none() { Some(fence) } else { None };
            blocks.extend((open == Some(language)).then(String::new));
        } else if open == Some(language) {
            blocks.last_mut().unwrap().push_str(&format!("{line}\n"));
        }
    }
    blocks
}

/// The commands of a line as words: split at `;`, `&&`, `||` and `|`, without comments and redirections.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => commands.last_mut().unwrap().extend(word.take()),
            (None, ';' | '|' | '&') => {
                commands.last_mut().unwrap().extend(word.take());
                commands.push(Vec::new());
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    for command in &mut commands {
        if let Some(end) = command.iter().position(|word| word.starts_with(['>', '<']) || word == "2>") {
            command.truncate(end);
        }
    }
    commands
}

/// The commands of this program in a line.
fn own_commands(line: &str) -> Vec<Vec<String>> {
    let start = |words: Vec<String>| {
        let at = words.iter().position(|word| word == "runner")?;
        Some(words.into_iter().skip(at).collect())
    };
    let is_typed = |words: &Vec<String>| words.first().is_some_and(|word| word == "runner" || word == "ssh");
    commands(line).into_iter().filter(is_typed).filter_map(start).collect()
}

/// Why a command is not understood.
fn usage_error(words: &[String]) -> Option<clap::Error> {
    let typed: Vec<OsString> = words.iter().map(Into::into).collect();
    let cli = match parse(&typed) {
        Ok(cli) => cli,
        Err(error) => return Some(error).filter(clap::Error::use_stderr),
    };
    if let RunnerCommand::Eval(args) = &cli.command {
        let typed = std::iter::once(OsString::from("runner-eval")).chain(args.rest.iter().cloned());
        let parsed = runner_eval::args::command().try_get_matches_from(typed);
        return parsed.err().filter(clap::Error::use_stderr);
    }
    None
}

#[test]
fn every_command_in_the_guides_is_understood() {
    let mut problems = Vec::new();
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for words in blocks(&text, "sh").concat().lines().flat_map(own_commands) {
            count += 1;
            let name = document.file_name().unwrap().to_string_lossy().into_owned();
            problems.extend(usage_error(&words).map(|why| format!("{name}: {}: {why}", words.join(" "))));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 100, "{count}");
}

/// Examples of other files than the configuration begin with one of these.
const OTHER_TABLES: &[&str] = &["[[arm]]", "[case]", "[[check]]", "[[session]]", "[[checks]]"];

#[test]
fn every_configuration_in_the_guides_is_valid() {
    let mut problems = Vec::new();
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for block in blocks(&text, "toml") {
            if block.lines().any(|line| OTHER_TABLES.iter().any(|table| line.starts_with(table))) {
                continue;
            }
            count += 1;
            let decoded = runner_core::config::Config::decode(block.as_bytes());
            problems.extend(decoded.err().map(|why| format!("{}: {why:?}\n{block}", document.display())));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 20, "{count}");
}

/// Whether a command is only named, without its arguments.
fn is_incomplete(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

#[test]
fn every_command_in_the_explanations_is_understood() {
    let pages = [runner_term::explain::error_pages(), runner_term::explain::stop_reason_pages()].concat();
    let mut problems = Vec::new();
    let mut count = 0;
    for page in &pages {
        for line in page.text.split('`').skip(1).step_by(2).filter(|code| code.starts_with("runner ")) {
            count += 1;
            let words = own_commands(line).concat();
            let error = usage_error(&words).filter(|error| !is_incomplete(error));
            problems.extend(error.map(|why| format!("{}: {line}: {why}", page.code)));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 50, "{count}");
}

#[test]
fn quotes_comments_and_pipes_are_understood() {
    let line = "cat x | runner note \"a # b\" --json > out   # comment";
    assert_eq!(own_commands(line), [["runner", "note", "a # b", "--json"]]);
    assert!(usage_error(&["runner", "note", "--nothing"].map(str::to_owned)).is_some());
}
