//! Text of any length, cut to one that can be kept and shown: its beginning and its end, and how much is missing.

use serde_json::Value;

use crate::text::{head, tail};

/// The most that is kept of what an agent wrote.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 10;
/// The most that is kept of what a command or a tool gave back.
pub(super) const OUTPUT_BYTES_MAX: usize = 16 << 10;
/// The most that is kept of a name, a path, a query.
pub(super) const NAME_BYTES_MAX: usize = 4 << 10;

/// At most so many bytes of the text, and a line that says what is missing.
pub(super) fn bounded(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let (first, last) = (head(text, bytes_max / 4 * 3), tail(text, bytes_max / 4));
    let missing = text.len() - first.len() - last.len();
    format!("{first}\n… {missing} bytes left out …\n{last}")
}

/// What an agent wrote.
pub(super) fn said(text: &str) -> String {
    bounded(text, TEXT_BYTES_MAX)
}

/// What a command gave back.
pub(super) fn output(text: &str) -> String {
    bounded(text, OUTPUT_BYTES_MAX)
}

/// A name, a path, a query.
pub(super) fn name(text: &str) -> String {
    bounded(text, NAME_BYTES_MAX)
}

/// A value as it came, or its text if it is too long to be kept whole.
pub(super) fn raw(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= OUTPUT_BYTES_MAX { value.clone() } else { Value::String(output(&text)) }
}

/// The text under a key; empty if there is none.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The text under a key, if there is any.
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
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(bounded("short", 8), "short");
        let cut = bounded(&format!("begin{}end", "x".repeat(1_000)), 100);
        assert!(
            cut.starts_with("begin") && cut.ends_with("end") && cut.contains("908 bytes left out"),
            "{cut}"
        );
    }

    #[test]
    fn a_value_is_kept_as_it_came_unless_it_is_too_long() {
        let longest = Value::from("x".repeat(OUTPUT_BYTES_MAX - 2));
        for value in [serde_json::json!({ "type": "new", "of": [1, null] }), longest] {
            assert_eq!(raw(&value), value);
        }
        let long = Value::from("x".repeat(OUTPUT_BYTES_MAX - 1));
        assert_eq!(raw(&long), Value::from(output(&long.to_string())));
    }
}
