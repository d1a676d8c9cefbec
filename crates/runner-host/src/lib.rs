//! The outside world of a run: files, the lock, git, agents and guards as processes.
//!
//! The host reads the state once, lets `runner-core` decide, and writes the result once. It makes no decisions about runs and
//! prints nothing: errors are values, and `runner-term` adds hints for people.

pub mod agent;
pub mod clock;
mod error;
mod failpoint;
mod fs;
pub mod git;
pub mod iteration;
pub mod ops;
mod paths;
mod recorder;
pub mod redaction;
pub mod repo;
mod room;
pub mod sleep_inhibitor;
pub mod view;

pub use error::{Error, UserError};
pub use repo::publish::RecoveredPublish;
pub use repo::run_history::RunSelector;
