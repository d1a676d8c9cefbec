//! A local, read-only view of runs: a server that watches files, and the page it serves.
//!
//! It reads what the runner leaves in a repository and never writes there, takes no lock and starts no agent; the
//! runner does not know of it. Whoever asks is not trusted ([`gate`]), nor is what an agent may have written
//! ([`beneath`]); both are checked before anything else happens.

pub mod api;
mod beneath;
mod cli;
mod connection;
mod diff;
mod error;
mod evaluation;
mod export;
mod failure;
mod feed;
mod gate;
mod history;
mod log;
mod log_index;
mod page;
mod project;
mod reply;
mod routes;
mod server;
mod site;
mod snapshot;
mod standing;
#[cfg(feature = "watch")]
mod terminal;
mod tree_view;
mod verify;
mod watch;

pub use cli::main;
