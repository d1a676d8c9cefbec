//! What a command prints: the [`CommandOutput`] trait with its three formats, exit codes, and `key=value` lines.

use serde_json::Value;

use crate::style::Styler;

/// An exit code, with the same meaning in every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandExit(pub u8);

impl CommandExit {
    pub const SUCCESS: Self = Self(0);
    pub const FAILURE: Self = Self(1);
    /// Usage error or invalid input.
    pub const REFUSED: Self = Self(2);
    /// A leaf has no attempts left.
    pub const STUCK: Self = Self(3);
    /// A limit stopped the run.
    pub const LIMIT: Self = Self(4);
    /// What could be checked holds, but not everything could be checked.
    pub const PARTIAL: Self = Self(5);
}

pub trait CommandOutput {
    /// One JSON document, for `--json`.
    fn json(&self) -> Value;

    /// Stable `key=value` lines, for standard output that is not a terminal.
    fn key_values(&self) -> Vec<KeyValueLine>;

    /// Text for a terminal.
    fn human(&self, styler: &Styler) -> String;

    fn exit(&self) -> CommandExit {
        CommandExit::SUCCESS
    }

    /// Whether it may be longer than a screen and goes through the pager.
    fn is_long(&self) -> bool {
        false
    }

    /// Whether it ends a stream of JSON lines and therefore has to be one line as well.
    fn ends_json_lines(&self) -> bool {
        false
    }
}

/// One line of `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValueLine(String);

impl KeyValueLine {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pair; the value is quoted unless it is one plain word.
    #[expect(clippy::needless_pass_by_value, reason = "values and references read the same at the call")]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        let is_word = !value.is_empty()
            && value.chars().all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\' | '='));
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(key);
        self.0.push('=');
        if is_word {
            self.0.push_str(&value);
        } else {
            self.0.push_str(&Value::from(value).to_string());
        }
        self
    }

    /// A line that does not consist of pairs.
    pub fn verbatim(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_quoted_only_if_it_is_not_one_plain_word() {
        let line = KeyValueLine::new()
            .with("a", 1)
            .with("b", "two words")
            .with("c", "")
            .with("d", "x=\"y\"")
            .with("e", "ü/ö");
        assert_eq!(line.as_str(), r#"a=1 b="two words" c="" d="x=\"y\"" e=ü/ö"#);
    }
}
