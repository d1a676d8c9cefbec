//! `runner completions` and `runner man`

use runner_term::CommandError;
use runner_term::cli_docs::{self, GeneratedText};

use crate::args::{CompletionsArgs, ManArgs, definition};

/// The programs whose command lines one script completes. `runner eval` and `runner ui` need nothing of their own.
const PROGRAMS: [&str; 3] = ["runner", "runner-ui", "runner-eval"];

pub(crate) fn completions(args: &CompletionsArgs) -> GeneratedText {
    cli_docs::completions(definition(), &PROGRAMS, args.shell)
}

pub(crate) fn man(args: &ManArgs) -> Result<GeneratedText, CommandError> {
    cli_docs::man(definition(), args.dir.as_deref())
}
