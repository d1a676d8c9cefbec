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

pub use manner::{Color, Manner};
pub use out::{Out, UnderWay, tell_clap};
pub use pen::{Glyph, Ink, Pen};
pub use reply::{Exit, Line, Reply};
pub use report::{Report, explain_graft};
