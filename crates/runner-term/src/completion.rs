//! Completion of command lines: the shells' scripts call the program itself, which knows its options and, through the
//! caller, the runs, tasks and iterations of the repository.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Command};

/// The first argument with which a completion script calls a program. Behind it are the words typed so far, the last of
/// which is to be completed.
pub const COMPLETE_ARG: &str = "__complete";

/// A word that can stand where the cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub word: String,
    pub help: String,
}

impl Candidate {
    pub fn new(word: impl Into<String>, help: impl Into<String>) -> Self {
        Self { word: word.into(), help: help.into() }
    }
}

/// The words of a command line behind the program's name, if a completion script called the program.
pub fn requested_words(args: &[OsString]) -> Option<Vec<String>> {
    let (first, words) = args.get(1..)?.split_first()?;
    (first == COMPLETE_ARG)
        .then(|| words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
}

/// The folder that `-C` names in the words, or else the current one.
pub fn folder_in(words: &[String]) -> PathBuf {
    let value = words.windows(2).rev().find_map(|pair| match pair {
        [option, value] if option == "-C" || option == "--project-dir" => Some(value),
        _ => None,
    });
    value.map_or_else(|| ".".into(), PathBuf::from)
}

/// The candidates as the scripts read them: one line each, with a tab before the help.
pub fn lines(candidates: &[Candidate]) -> String {
    let line = |candidate: &Candidate| {
        format!("{}\t{}\n", candidate.word, runner_core::text::one_line(&candidate.help))
    };
    candidates.iter().map(line).collect()
}

/// The words that can stand at the end of a command line. `values` lists the words for a value by its name in the usage
/// line, such as RUN or NODE.
pub fn candidates(
    program: Command,
    words: &[String],
    values: &dyn Fn(&str) -> Vec<Candidate>,
) -> Vec<Candidate> {
    let mut program = program;
    program.build();
    let Some((current, before)) = words.split_last() else { return Vec::new() };
    let place = CursorPlace::after(&program, before);
    let current = if current == "=" { "" } else { current };
    let mut found = match (place.option, current.split_once('=')) {
        (Some(option), _) => values_of(option, values),
        (None, Some((name, _))) if name.starts_with("--") && !place.is_behind_dashes => {
            let option = place.command.get_arguments().find(|arg| arg.get_long() == name.get(2..));
            let of_option = option.map(|option| values_of(option, values)).unwrap_or_default();
            of_option
                .into_iter()
                .map(|value| Candidate::new(format!("{name}={}", value.word), value.help))
                .collect()
        }
        (None, _) if current.starts_with('-') && !place.is_behind_dashes => options_of(place.command),
        (None, _) => place.words(values),
    };
    found.retain(|candidate| candidate.word.starts_with(current));
    found
}

/// Where in a command line the cursor is.
struct CursorPlace<'c> {
    command: &'c Command,
    /// The option whose value comes next.
    option: Option<&'c Arg>,
    /// How many positional arguments come before it.
    positionals: usize,
    is_behind_dashes: bool,
}

impl<'c> CursorPlace<'c> {
    fn after(program: &'c Command, words: &[String]) -> Self {
        let mut place = Self { command: program, option: None, positionals: 0, is_behind_dashes: false };
        for word in words {
            place.pass(word);
        }
        place
    }

    fn pass(&mut self, word: &str) {
        if word == "=" {
            // Bash makes a word of its own of the sign between an option and its value.
        } else if self.option.take().is_some() {
            // The value of an option.
        } else if self.is_behind_dashes {
            self.positionals += 1;
        } else if word == "--" {
            self.is_behind_dashes = true;
        } else if word.starts_with('-') && word.len() > 1 {
            self.option = self.command.get_arguments().find(|arg| is_named(arg, word) && needs_value(arg));
        } else if let Some(command) = self.command.find_subcommand(word).filter(|_| self.positionals == 0) {
            self.command = command;
        } else {
            self.positionals += 1;
        }
    }

    /// Subcommands and values of positional arguments.
    fn words(&self, values: &dyn Fn(&str) -> Vec<Candidate>) -> Vec<Candidate> {
        let mut found = Vec::new();
        if self.positionals == 0 && !self.is_behind_dashes {
            let shown = self.command.get_subcommands().filter(|command| !command.is_hide_set());
            found.extend(shown.map(|command| {
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                Candidate::new(command.get_name(), about)
            }));
        }
        let mut positionals =
            self.command.get_positionals().filter(|arg| arg.is_last_set() == self.is_behind_dashes);
        let last = self.command.get_positionals().last().filter(|arg| takes_many(arg));
        let arg = positionals.nth(self.positionals).or(last);
        found.extend(arg.map(|arg| values_of(arg, values)).unwrap_or_default());
        found
    }
}

fn is_named(arg: &Arg, word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some() && word.chars().last() == arg.get_short(),
    }
}

fn needs_value(arg: &Arg) -> bool {
    arg.get_action().takes_values() && arg.get_num_args().is_none_or(|range| range.min_values() > 0)
}

fn takes_many(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.max_values() > 1)
}

fn options_of(command: &Command) -> Vec<Candidate> {
    let named = command.get_arguments().filter(|arg| !arg.is_hide_set());
    named
        .filter_map(|arg| {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            Some(Candidate::new(format!("--{}", arg.get_long()?), help))
        })
        .collect()
}

/// The fixed values of an argument, or those that the caller knows.
fn values_of(arg: &Arg, values: &dyn Fn(&str) -> Vec<Candidate>) -> Vec<Candidate> {
    let fixed = arg.get_possible_values();
    if !fixed.is_empty() {
        let help = |value: &clap::builder::PossibleValue| {
            value.get_help().map(ToString::to_string).unwrap_or_default()
        };
        return fixed.iter().map(|value| Candidate::new(value.get_name(), help(value))).collect();
    }
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().flat_map(|name| name.split('|')).flat_map(values).collect()
}

#[cfg(test)]
mod tests {
    use clap::{ArgAction, value_parser};

    use super::*;

    fn program() -> Command {
        let quiet = Arg::new("quiet").short('q').long("quiet").action(ArgAction::SetTrue).global(true);
        let run = Arg::new("run").long("run").value_name("RUN");
        let level = Arg::new("level").long("level").value_parser(["low", "high"]);
        let target = Arg::new("target").value_name("ITER|NODE");
        let count = Arg::new("count").value_name("N").value_parser(value_parser!(u32));
        let log = Command::new("log").about("List").arg(run).arg(level).arg(target).arg(count);
        Command::new("x").arg(quiet).subcommand(log).subcommand(Command::new("lint"))
    }

    fn completed(line: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let values = |name: &str| match name {
            "RUN" => vec![Candidate::new("nightly", ""), Candidate::new("other", "")],
            "NODE" => vec![Candidate::new("root", "")],
            "ITER" => vec![Candidate::new("12", "")],
            _ => Vec::new(),
        };
        candidates(program(), &words, &values).into_iter().map(|candidate| candidate.word).collect()
    }

    #[test]
    fn commands_options_and_values_are_completed_where_they_can_stand() {
        for (line, words) in [
            ("l", &["log", "lint"][..]),
            ("log --r", &["--run"]),
            ("log --run ", &["nightly", "other"]),
            ("log --run n", &["nightly"]),
            ("log --run = n", &["nightly"]),
            ("log --run=o", &["--run=other"]),
            ("log --level ", &["low", "high"]),
            ("log ", &["12", "root"]),
            ("-q log r", &["root"]),
            ("log --run nightly r", &["root"]),
            ("log root ", &[]),
            ("log root 1 ", &[]),
            ("unknown r", &[]),
        ] {
            assert_eq!(completed(line), words, "{line}");
        }
        assert!(completed("").contains(&"log".to_owned()));
        assert_eq!(candidates(program(), &[], &|_| Vec::new()), []);
    }

    #[test]
    fn the_folder_is_taken_from_the_words() {
        let words: Vec<String> = ["-C", "../app", "log", ""].map(str::to_owned).into();
        assert_eq!(folder_in(&words), PathBuf::from("../app"));
        assert_eq!(folder_in(&[]), PathBuf::from("."));
    }
}
