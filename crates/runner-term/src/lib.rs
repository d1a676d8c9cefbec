//! What `runner`, `runner-ui` and `runner-eval` share at a terminal: how an answer and an error are told, in which
//! colours and glyphs, and the words for what agents do and how nodes stand.
//!
//! One module prints ([`Out`]), one words errors ([`Report`]). Nothing here knows what any command does.

pub mod agent_event_line;
pub mod cli_docs;
mod error;
mod global_args;
mod output;
pub mod pager;
pub mod progress;
mod style;
pub mod terminal;
mod ui;

pub use runner_core::format;

pub use error::{CommandError, insert_error_hints};
pub use global_args::{ColorChoice, GlobalArgs};
pub use output::{CommandExit, CommandOutput, KeyValueLine};
pub use style::{Glyph, Styler, TextRole};
pub use ui::{StatusLine, Ui, print_clap_error};
