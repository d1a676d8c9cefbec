//! Arguments of `runner eval completions` and `runner eval man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval completions bash \\
    > ~/.local/share/bash-completion/completions/runner-eval
  runner eval completions fish > ~/.config/fish/completions/runner-eval.fish")]
pub(crate) struct EvalCompletionsArgs {
    /// Shell to generate completions for
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one page per command
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval man | man -l -
  runner eval man --dir ~/.local/share/man/man1")]
pub(crate) struct EvalManArgs {
    /// Directory to write the pages to
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
