//! Arguments of `runner completions` and `runner man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print a completion script for a shell
///
/// Completes runs, tasks, iterations and configuration keys too, also after `runner eval` and `runner ui`. The script is
/// for runner-ui and runner-eval as well. bash and fish find a script by the name of the program, so those two need links to it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner completions bash > ~/.local/share/bash-completion/completions/runner
  ln -s runner ~/.local/share/bash-completion/completions/runner-ui
  ln -s runner ~/.local/share/bash-completion/completions/runner-eval
  runner completions zsh > ~/.zfunc/_runner   # a folder of $fpath; no links
  runner completions fish > ~/.config/fish/completions/runner.fish
  ln -s runner.fish ~/.config/fish/completions/runner-ui.fish
  ln -s runner.fish ~/.config/fish/completions/runner-eval.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to generate completions for
    pub(crate) shell: Shell,
}

/// Print the manual page, or write one page per command
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner man | man -l -
  runner man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Directory to write the pages to
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
