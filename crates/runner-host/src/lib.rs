//! What touches the world: files, the lock, git, programs.
//!
//! The host reads once, asks the core what to do, and writes once. It decides nothing about runs, and it never
//! talks to people: errors are values, worded by the command line.

pub mod blame;
pub mod clock;
pub mod conformance;
pub mod doctor;
mod error;
pub mod executor;
mod failpoint;
pub mod fence;
pub mod fork;
pub mod git;
mod history;
pub mod init;
pub mod inspect;
mod journal;
mod lock;
pub mod looking;
mod moving;
pub mod pager;
mod paths;
pub mod pausing;
mod pins;
pub mod process;
pub mod programs;
pub mod reading;
pub mod record;
pub mod replay;
pub mod rerun;
mod sandbox;
pub mod scratch;
pub mod script;
pub mod signals;
pub mod start;
pub mod steer;
mod store;
pub mod terminal;
pub mod verify;
pub mod workshop;
mod worktree;

pub use error::{Error, UserError};
pub use history::RunSelector;
pub use moving::RecoveredPublish;
