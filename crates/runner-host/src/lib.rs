//! What touches the world: files, the lock, git, programs.
//!
//! The host reads once, asks the core what to do, and writes once. It decides nothing about runs, and it never
//! talks to people: errors are values, worded by the command line.

mod atomic;
pub mod blame;
pub mod claude_file_hook;
pub mod clock;
pub mod command;
pub mod conformance;
pub mod demo_repo;
pub mod doctor;
pub mod edit;
mod error;
pub mod executables;
mod failpoint;
pub mod fork;
pub mod git;
pub mod guard_rerun;
pub mod init;
pub mod inspect;
pub mod iteration;
pub mod iteration_dir;
mod journal;
mod lock;
pub mod pager;
mod paths;
pub mod pause;
pub mod process;
mod publish;
pub mod readonly_repo;
pub mod replay;
mod repo_guard;
mod run_history;
pub mod run_view;
mod sandbox;
pub mod scripted_agent;
pub mod signals;
pub mod start;
pub mod terminal;
pub mod verify;
mod worktree;

pub use error::{Error, UserError};
pub use publish::RecoveredPublish;
pub use run_history::RunSelector;
