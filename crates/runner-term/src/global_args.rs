//! The global options, which every command of every program accepts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Run as if started in DIR
    #[arg(
        short = 'C',
        long,
        global = true,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    pub project_dir: PathBuf,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Print nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more detail on standard error
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Do not use a pager for long output
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

impl GlobalArgs {
    /// The same options as arguments for another program, except for the directory.
    pub fn to_args(&self) -> Vec<OsString> {
        let flags = [
            (self.json, "--json"),
            (self.quiet, "--quiet"),
            (self.verbose, "--verbose"),
            (self.no_pager, "--no-pager"),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.into());
        flags.chain(self.color.to_args()).collect()
    }
}

/// `auto` uses colour on a terminal, unless NO_COLOR is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorChoice {
    /// The same choice as arguments for another program; none for the default.
    pub fn to_args(self) -> Vec<OsString> {
        match self {
            Self::Auto => Vec::new(),
            Self::Always => vec!["--color".into(), "always".into()],
            Self::Never => vec!["--color".into(), "never".into()],
        }
    }

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
