//! What `runner`, `runner-ui` and `runner-eval` share at a terminal: how an answer and an error are told, in which
//! colours and glyphs, and the words for what agents do and how nodes stand.
//!
//! One module prints ([`Out`]), one words errors ([`Report`]). Nothing here knows what any command does.

pub mod agent;
mod manner;
pub mod numbers;
mod out;
pub mod paper;
mod pen;
pub mod progress;
mod reply;
mod report;
pub mod state;

pub use manner::{ColorChoice, GlobalArgs};
pub use out::{StatusLine, Ui, tell_clap};
pub use pen::{Glyph, Styler, TextRole};
pub use reply::{CommandExit, CommandOutput, KeyValueLine};
pub use report::{CommandError, explain_graft};
