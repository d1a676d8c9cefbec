//! Read-only views of a run for the commands that show it.

pub mod inspect;
pub mod run_view;
