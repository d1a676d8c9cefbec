//! Options that every command takes: where it works, and how it answers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Where a command works, and how it answers.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Options of every command")]
pub struct GlobalArgs {
    /// Work in this folder instead of the current one
    #[arg(short = 'C', global = true, value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub directory: PathBuf,
    /// Answer with one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Never show anything through a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub color: ColorChoice,
}

impl GlobalArgs {
    /// What to type for the same manner of another command, its folder left out.
    pub fn words(&self) -> Vec<OsString> {
        let flags = [
            (self.json, "--json"),
            (self.quiet, "--quiet"),
            (self.verbose, "--verbose"),
            (self.no_pager, "--no-pager"),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.into());
        flags.chain(self.color.words()).collect()
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorChoice {
    /// What to type for the same; nothing for what is usual.
    pub fn words(self) -> Vec<OsString> {
        match self {
            Self::Auto => Vec::new(),
            Self::Always => vec!["--color".into(), "always".into()],
            Self::Never => vec!["--color".into(), "never".into()],
        }
    }

    /// Whether to use colour, here and now.
    pub(crate) fn is_used(self, on_terminal: bool) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if is_set("NO_COLOR") => false,
            Self::Auto if is_set("CLICOLOR_FORCE") => true,
            Self::Auto => on_terminal && !is_dumb,
        }
    }
}
