//! Operations of the user on a run: start, fork, edit, import a plan.

pub mod edit;
pub mod fork;
pub mod identity;
pub mod import;
pub mod start;
