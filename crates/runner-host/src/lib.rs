//! What touches the world: files, the lock, git, programs.
//!
//! The host reads once, asks the core what to do, and writes once. It decides nothing about runs, and it never
//! talks to people: errors are values, worded by the command line.

pub mod agent;
pub mod clock;
mod error;

mod failpoint;
mod fs;
pub mod git;
pub mod iteration;
pub mod ops;

pub mod repo;

pub mod view;

pub use error::{Error, UserError};
pub use repo::publish::RecoveredPublish;
pub use repo::run_history::RunSelector;
