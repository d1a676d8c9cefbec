//! What a command has to say, in the three forms in which it can be told.

use serde_json::Value;

use crate::style::Styler;

/// An exit code, the same in every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandExit(pub u8);

impl CommandExit {
    /// It worked.
    pub const SUCCESS: Self = Self(0);
    /// Something failed.
    pub const FAILURE: Self = Self(1);
    /// Wrong usage or invalid input.
    pub const REFUSED: Self = Self(2);
    /// A leaf has no attempts left.
    pub const STUCK: Self = Self(3);
    /// A limit was reached.
    pub const LIMIT: Self = Self(4);
}

/// An answer.
pub trait CommandOutput {
    /// For programs: one document.
    fn json(&self) -> Value;

    /// For scripts: stable lines of `key=value`.
    fn key_values(&self) -> Vec<KeyValueLine>;

    /// For people at a terminal.
    fn human(&self, pen: &Styler) -> String;

    /// The exit code.
    fn exit(&self) -> CommandExit {
        CommandExit::SUCCESS
    }

    /// Whether it may be longer than a screen, and deserves a pager.
    fn is_long(&self) -> bool {
        false
    }

    /// Whether it is the last of many answers, each of which is one line of JSON.
    fn ends_lines(&self) -> bool {
        false
    }
}

/// One line of `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValueLine(String);

impl KeyValueLine {
    /// Begins a line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pair; a value that is more than one plain word is quoted.
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

    /// A line that is not made of pairs.
    pub fn verbatim(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The line as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_quoted_only_where_it_must_be() {
        let line = KeyValueLine::new()
            .with("a", 1)
            .with("b", "two words")
            .with("c", "")
            .with("d", "x=\"y\"")
            .with("e", "ü/ö");
        assert_eq!(line.as_str(), r#"a=1 b="two words" c="" d="x=\"y\"" e=ü/ö"#);
    }
}
