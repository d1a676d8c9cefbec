//! `runner completions` and `runner man`

use clap::CommandFactory;
use clap_complete::Shell;
use runner_term::CommandError;
use runner_term::cli_docs::{self, GeneratedText};

use crate::args::{CompletionsArgs, ManArgs, RunnerCli};

pub(crate) fn completions(args: &CompletionsArgs) -> GeneratedText {
    cli_docs::completions(RunnerCli::command(), args.shell).followed_by(eval_completions(args.shell))
}

/// Delegates `runner eval` to the completion of `runner-eval`, whose commands this program does not know.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other shells cannot delegate")]
fn eval_completions(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("../../completions/eval.bash"),
        Shell::Zsh => include_str!("../../completions/eval.zsh"),
        Shell::Fish => include_str!("../../completions/eval.fish"),
        _ => "",
    }
}

pub(crate) fn man(args: &ManArgs) -> Result<GeneratedText, CommandError> {
    cli_docs::man(RunnerCli::command(), args.dir.as_deref())
}
