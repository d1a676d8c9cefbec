//! How things look.

pub(crate) mod changes;
pub(crate) mod cost;
pub(crate) mod event;
pub(crate) mod recovery;
pub(crate) mod summary;
pub(crate) mod tree;
pub(crate) mod wait;

/// A line of text from outside, cut to what a message can hold.
pub(crate) fn short(text: &str) -> String {
    runner_core::text::head(&clean(text), 200).to_owned()
}

/// Text from a file or an agent, safe for a terminal and on one line.
pub(crate) fn clean(text: &str) -> String {
    runner_core::text::one_line(text)
}
