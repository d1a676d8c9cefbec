//! Rendering shared by several commands: events, trees, changed files, costs, waits and recoveries.

pub(crate) mod changes;
pub(crate) mod cost;
pub(crate) mod event;
pub(crate) mod iteration;
pub(crate) mod recovery;
pub(crate) mod report;
mod report_html;
pub(crate) mod setup;
pub(crate) mod summary;
pub(crate) mod tree;
pub(crate) mod verdict;
pub(crate) mod wait;

/// The longest part of a foreign text that an error or a row quotes.
const SHORT_BYTES_MAX: usize = 200;

/// Foreign text on one line, cut to the length of a message.
pub(crate) fn short(text: &str) -> String {
    runner_core::text::head(&clean(text), SHORT_BYTES_MAX).to_owned()
}

/// Foreign text on one line, without control characters.
pub(crate) fn clean(text: &str) -> String {
    runner_core::text::one_line(text)
}
