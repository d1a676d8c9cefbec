//! The name of an evaluation run. It is a folder name and the first part of the names of results and workspaces.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

const NAME_BYTES_MAX: usize = 128;

/// Parsed once from the command line or from plan.json.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct EvalRunName(String);

/// Why a text cannot be the name of an evaluation run or of a case.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum NameError {
    #[error("is empty")]
    Empty,
    #[error("is {0} bytes long, more than {NAME_BYTES_MAX}")]
    TooLong(usize),
    #[error("contains {0:?}; only letters, digits, `.`, `_` and `-` are allowed")]
    Character(char),
    #[error("must not begin with `_` or `.`")]
    Reserved,
}

/// Checks a name that becomes the name of a folder of results. Names that begin with `_` or `.` are the evaluation's own.
pub(crate) fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong(name.len()));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some(character) = name.chars().find(|c| !is_allowed(*c)) {
        return Err(NameError::Character(character));
    }
    if name.starts_with(['_', '.']) { Err(NameError::Reserved) } else { Ok(()) }
}

impl EvalRunName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EvalRunName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check_name(text).map(|()| Self(text.to_owned()))
    }
}

impl TryFrom<String> for EvalRunName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<EvalRunName> for String {
    fn from(name: EvalRunName) -> Self {
        name.0
    }
}

impl fmt::Display for EvalRunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_one_visible_path_component() {
        assert_eq!("20261116T050003Z".parse::<EvalRunName>().unwrap().as_str(), "20261116T050003Z");
        for (text, error) in [
            ("", NameError::Empty),
            ("a/b", NameError::Character('/')),
            ("a b", NameError::Character(' ')),
            ("_runs", NameError::Reserved),
            ("..", NameError::Reserved),
        ] {
            assert_eq!(text.parse::<EvalRunName>(), Err(error), "{text}");
        }
        assert!("x".repeat(NAME_BYTES_MAX + 1).parse::<EvalRunName>().is_err());
    }
}
