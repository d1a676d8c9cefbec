//! `runner completions` and `runner man`

use clap::CommandFactory;
use runner_term::CommandError;
use runner_term::cli_docs::{self, GeneratedText};

use crate::args::{CompletionsArgs, ManArgs, RunnerCli};

pub(crate) fn completions(args: &CompletionsArgs) -> GeneratedText {
    cli_docs::completions(RunnerCli::command(), args.shell)
}

pub(crate) fn man(args: &ManArgs) -> Result<GeneratedText, CommandError> {
    cli_docs::man(RunnerCli::command(), args.dir.as_deref())
}
