//! How things look.

pub(crate) mod agent;
pub(crate) mod event;
pub(crate) mod progress;
pub(crate) mod recovered;
pub(crate) mod spending;
pub(crate) mod state;
pub(crate) mod summary;
pub(crate) mod tree;
pub(crate) mod waiting;

/// Text from a file or an agent, safe for a terminal and on one line.
pub(crate) fn clean(text: &str) -> String {
    runner_core::text::one_line(text)
}
