//! How things look.

pub(crate) mod changes;
pub(crate) mod event;
pub(crate) mod recovered;
pub(crate) mod spending;
pub(crate) mod summary;
pub(crate) mod tree;
pub(crate) mod waiting;

/// A line of text from outside, cut to what a message can hold.
pub(crate) fn short(text: &str) -> String {
    runner_core::text::head(&clean(text), 200).to_owned()
}

/// So many things, in words: `1 leaf`, `2 leaves`.
pub(crate) fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Text from a file or an agent, safe for a terminal and on one line.
pub(crate) fn clean(text: &str) -> String {
    runner_core::text::one_line(text)
}
