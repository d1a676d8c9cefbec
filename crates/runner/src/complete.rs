//! Completion of `runner` command lines with the names that the repository has.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use runner_core::agents::AGENTS;
use runner_core::config::Config;
use runner_host::view::known_names::{KnownName, iteration_names, node_names, run_names};
use runner_term::completion::{COMPLETE_ARG, Candidate, candidates, folder_in, lines};
use runner_term::{GlobalArgs, Ui};
use supervise::executables::exec_sibling;

use crate::args;

/// Prints what can stand at the end of these words.
pub(crate) fn complete(words: &[String]) -> ExitCode {
    if let Some(args) = sibling_words(words, "eval") {
        // Without the program there is nothing to complete.
        let _ = exec_sibling("runner-eval", &args);
        return ExitCode::SUCCESS;
    }
    if let Some(args) = sibling_words(words, "ui") {
        let _ = exec_sibling("runner-ui", &args);
        return ExitCode::SUCCESS;
    }
    let folder = folder_in(words);
    let found = candidates(args::command(), words, &|name| values(&folder, name));
    Ui::new(&GlobalArgs::default()).raw(&lines(&found));
    ExitCode::SUCCESS
}

/// The arguments for the program that a command hands over to.
fn sibling_words(words: &[String], command: &str) -> Option<Vec<OsString>> {
    let (first, rest) = words.split_first()?;
    let is_typed = first == command && !rest.is_empty();
    is_typed.then(|| {
        std::iter::once(COMPLETE_ARG).chain(rest.iter().map(String::as_str)).map(Into::into).collect()
    })
}

fn values(folder: &Path, name: &str) -> Vec<Candidate> {
    let named = |names: Vec<KnownName>| {
        names.into_iter().map(|known| Candidate::new(known.name, known.meaning)).collect()
    };
    match name {
        "RUN" => named(run_names(folder)),
        "NODE" | "PARENT" => named(node_names(folder)),
        "ITER" => named(iteration_names(folder)),
        "KEY" | "KEY VALUE" => {
            Config::all_keys().into_iter().map(|key| Candidate::new(key.name, "")).collect()
        }
        "AGENT" => AGENTS.iter().map(|agent| Candidate::new(agent.name, "")).collect(),
        _ => Vec::new(),
    }
}
