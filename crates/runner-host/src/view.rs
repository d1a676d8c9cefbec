//! Read-only views of a run for the commands that show it.

pub mod checks;
pub mod inspect;
pub mod known_names;
pub mod newest_events;
pub mod run_folder;
pub mod run_view;
