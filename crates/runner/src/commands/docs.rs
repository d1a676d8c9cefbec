//! `runner completions` and `runner man`

use clap::CommandFactory;
use clap_complete::Shell;
use runner_term::CommandError;
use runner_term::cli_docs::{self, GeneratedText};

use crate::args::{CompletionsArgs, ManArgs, RunnerCli};

/// The programs whose command lines one script completes. `runner eval` and `runner ui` need nothing of their own.
const PROGRAMS: [&str; 3] = ["runner", "runner-ui", "runner-eval"];

pub(crate) fn completions(args: &CompletionsArgs) -> GeneratedText {
    // In zsh, a file holds the completion of one program.
    let programs = if args.shell == Shell::Zsh { &PROGRAMS[..1] } else { &PROGRAMS };
    cli_docs::completions(RunnerCli::command(), programs, args.shell)
}

pub(crate) fn man(args: &ManArgs) -> Result<GeneratedText, CommandError> {
    cli_docs::man(RunnerCli::command(), args.dir.as_deref())
}
