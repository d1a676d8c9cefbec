//! A local, read-only view of runs: a server that watches files, and the page it serves.
//!
//! It reads what the runner leaves in a repository and never writes there, takes no lock and starts no agent; the
//! runner does not know of it. Whoever asks is not trusted ([`gate`]), nor is what an agent may have written
//! ([`beneath`]); both are checked before anything else happens.

mod access;
pub mod api;
mod app;
mod assets;
mod cli;
mod confined_fs;
mod diff;
mod error;
mod error_lines;
mod evaluation;
mod export;
mod iterations;
mod log_index;
mod logs;
mod repo_reader;
mod response;
mod routes;
mod run_status;
mod server;
mod snapshot;
mod sse;
mod tree_view;
#[cfg(feature = "watch")]
mod tui;
mod verify;
mod watch;
mod write_timeout;

pub use cli::main;
