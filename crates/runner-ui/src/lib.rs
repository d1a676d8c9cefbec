//! A local, read-only view of runs: a server with its page, and a terminal UI.
//!
//! It reads what the runner leaves in a repository. It never writes there, takes no lock and starts no agent; the runner
//! does not know of it. Neither clients (`server::access`) nor the files that agents may have written
//! (`read::confined_fs`) are trusted.

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
pub use server::routes::ROUTES;
