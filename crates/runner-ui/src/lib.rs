//! A local, read-only view of runs: a server that watches files, and the page it serves.
//!
//! It reads what the runner leaves in a repository and never writes there, takes no lock and starts no agent; the
//! runner does not know of it. Whoever asks is not trusted ([`gate`]), nor is what an agent may have written
//! ([`beneath`]); both are checked before anything else happens.

pub mod api;
mod cli;
mod error;
mod evaluation;
mod export;
mod read;
mod server;
#[cfg(feature = "watch")]
mod tui;
mod watch;

pub use cli::main;
