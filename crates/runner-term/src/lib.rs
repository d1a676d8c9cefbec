//! Terminal output shared by `runner`, `runner-ui` and `runner-eval`: the printer, command output in three formats,
//! errors, styles, global options and help pages.
//!
//! Only [`Ui`] prints, and only [`CommandError`] words errors. Nothing here knows what a command does.

pub mod agent_event_line;
pub mod cli_docs;
pub mod completion;
pub mod editor;
mod error;
pub mod explain;
mod global_args;
pub mod help_pages;
mod output;
pub mod pager;
pub mod progress;
mod style;
pub mod terminal;
mod ui;

pub use runner_core::format;

pub use error::{CommandError, RED_BASELINE};
pub use global_args::{ColorChoice, GlobalArgs};
pub use output::{CommandExit, CommandOutput, KeyValueLine};
pub use style::{Glyph, Styler, TextRole};
pub use ui::{StatusLine, Ui, print_clap_error};
