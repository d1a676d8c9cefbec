//! Shortened text, so that events stay small: beginning and end, and how much is missing. Also the readers of JSON fields
//! that shorten what they read.

use serde_json::Value;

use crate::text::{head, tail};

/// The longest message of an agent to keep.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The longest output of a command or a tool to keep.
pub(super) const OUTPUT_BYTES_MAX: usize = 16 << 10;
/// The longest name, path or query to keep.
pub(super) const NAME_BYTES_MAX: usize = 4 << 10;

/// At most `bytes_max` bytes of the text, with a line in between that counts the missing ones.
pub(super) fn bounded(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let first = head(text, bytes_max / 4 * 3);
    let last = tail(text, bytes_max / 4);
    let missing = text.len() - first.len() - last.len();
    format!("{first}\n… {missing} bytes omitted …\n{last}")
}

/// A message of the agent.
pub(super) fn message(text: &str) -> String {
    bounded(text, MESSAGE_BYTES_MAX)
}

/// The output of a command or a tool.
pub(super) fn output(text: &str) -> String {
    bounded(text, OUTPUT_BYTES_MAX)
}

/// A name, a path or a query.
pub(super) fn name(text: &str) -> String {
    bounded(text, NAME_BYTES_MAX)
}

/// The value unchanged, or as shortened text if it is too long.
pub(super) fn raw(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= OUTPUT_BYTES_MAX { value.clone() } else { Value::String(output(&text)) }
}

/// The text under a key; empty if there is none.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The text under a key, if it is not empty.
pub(super) fn some_text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(name)
}

/// The whole number under a key.
pub(super) fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_end() {
        assert_eq!(bounded("short", 8), "short");
        let cut = bounded(&format!("begin{}end", "x".repeat(1_000)), 100);
        assert!(
            cut.starts_with("begin") && cut.ends_with("end") && cut.contains("908 bytes omitted"),
            "{cut}"
        );
    }

    #[test]
    fn a_value_is_unchanged_unless_it_is_too_long() {
        let longest = Value::from("x".repeat(OUTPUT_BYTES_MAX - 2));
        for value in [serde_json::json!({ "type": "new", "of": [1, null] }), longest] {
            assert_eq!(raw(&value), value);
        }
        let long = Value::from("x".repeat(OUTPUT_BYTES_MAX - 1));
        assert_eq!(raw(&long), Value::from(output(&long.to_string())));
    }
}
