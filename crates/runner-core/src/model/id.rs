//! Ids of runs and nodes, and iteration numbers: parsed once, valid from then on.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use super::object_id::BranchName;
use crate::strict::inline_schema;

/// The most bytes of an id.
pub const ID_BYTES_MAX: usize = 128;

/// Why a text is not a valid id.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IdError {
    #[error("is empty")]
    Empty,
    #[error("is {0} bytes long, more than {ID_BYTES_MAX}")]
    TooLong(usize),
    /// A character outside `[A-Za-z0-9._-]`.
    #[error("contains {0:?}; only letters, digits, `.`, `_` and `-` are allowed")]
    Character(char),
    /// `.` and `..` are folders.
    #[error("must not be `.` or `..`")]
    Dots,
    /// Git does not accept it in a branch name.
    #[error("is not valid in a branch name: it {0}")]
    NotABranch(&'static str),
}

fn check_characters(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > ID_BYTES_MAX {
        return Err(IdError::TooLong(text.len()));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if text.bytes().all(allowed) {
        return Ok(());
    }
    let invalid = text.chars().find(|c| !u8::try_from(*c).is_ok_and(allowed));
    invalid.map_or(Ok(()), |c| Err(IdError::Character(c)))
}

/// The id of a node: unique in its tree, and used as a folder name and in commit messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct NodeId(Box<str>);

impl NodeId {
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, IdError> {
        let text = text.into();
        Self::check(&text).map(|()| Self(text))
    }

    /// The same without a copy. Returns the text with the error.
    pub(crate) fn from_string(text: String) -> Result<Self, (String, IdError)> {
        match Self::check(&text) {
            Ok(()) => Ok(Self(text.into())),
            Err(error) => Err((text, error)),
        }
    }

    fn check(text: &str) -> Result<(), IdError> {
        check_characters(text)?;
        if matches!(text, "." | "..") { Err(IdError::Dots) } else { Ok(()) }
    }

    /// The id of the root in a new tree.
    pub fn root() -> Self {
        Self("root".into())
    }

    /// A placeholder for an invalid id, so that the rest of a document can still be checked.
    pub(crate) fn invalid() -> Self {
        Self("".into())
    }

    pub(crate) fn is_invalid(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_string(text).map_err(|(text, error)| serde::de::Error::custom(format!("{text:?} {error}")))
    }
}

inline_schema!(NodeId, {
    "type": "string",
    "pattern": "^[A-Za-z0-9._-]{1,128}$",
    "not": { "enum": [".", ".."] },
});

/// The id of a run: `id` in GOAL.md, and `runner/<id>` as its branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct RunId(Box<str>);

/// The prefix of the branches of runs.
pub const BRANCH_PREFIX: &str = "runner/";

impl RunId {
    /// The rules are those of git for one component of a branch name, restricted to the characters of an id.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, IdError> {
        let text = text.into();
        check_characters(&text)?;
        if matches!(&*text, "." | "..") {
            return Err(IdError::Dots);
        }
        let why = if text.starts_with('.') {
            Some("starts with `.`")
        } else if text.ends_with('.') {
            Some("ends with `.`")
        } else if text.ends_with(".lock") {
            Some("ends with `.lock`")
        } else if text.contains("..") {
            Some("contains `..`")
        } else {
            None
        };
        why.map_or_else(|| Ok(Self(text)), |why| Err(IdError::NotABranch(why)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The run's branch, `runner/<id>`.
    pub fn branch(&self) -> BranchName {
        BranchName::new(format!("{BRANCH_PREFIX}{}", self.0))
    }

    /// The id in a branch name, if it is the branch of a run.
    pub fn of_branch(branch: &str) -> Option<Self> {
        branch.strip_prefix(BRANCH_PREFIX).and_then(|id| Self::new(id).ok())
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text.as_str()).map_err(|error| serde::de::Error::custom(format!("{text:?} {error}")))
    }
}

inline_schema!(RunId, {
    "type": "string",
    "pattern": "^[A-Za-z0-9._-]{1,128}$",
    // With its type: a pattern alone would also match null, which an optional id may be.
    "not": { "type": "string", "pattern": r"^\.|\.\.|\.$|\.lock$" },
});

/// The number of an iteration within its run, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct IterationNumber(NonZeroU32);

impl IterationNumber {
    /// The first iteration of a run.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// The number, if it is not 0.
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    pub fn get(self) -> u32 {
        self.0.get()
    }

    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// At least four digits, as in folder names and commit messages.
impl fmt::Display for IterationNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}", self.0)
    }
}

/// Parses the output of [`fmt::Display`], and plain numbers.
impl FromStr for IterationNumber {
    type Err = IterationNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = if is_number { text.parse().ok() } else { None };
        number.and_then(Self::new).ok_or(IterationNumberError)
    }
}

/// A text is not an iteration number.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("is not an iteration number: iterations are numbered from 1")]
pub struct IterationNumberError;

impl<'de> Deserialize<'de> for IterationNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = crate::strict::BoundedInt::<1, { u32::MAX as i64 }>::deserialize(deserializer)?;
        Self::new(number.as_u32()).ok_or_else(|| serde::de::Error::custom(IterationNumberError))
    }
}

inline_schema!(IterationNumber, { "type": "integer", "minimum": 1, "maximum": u32::MAX });

macro_rules! text_id {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
    };
}

text_id!(NodeId);
text_id!(RunId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_ids_are_short_and_valid_folder_names() {
        for good in ["a", "A-1_b.c", "...", "-rf", &"x".repeat(128)] {
            assert_eq!(NodeId::new(good).map(|id| id.to_string()), Ok(good.to_owned()));
        }
        assert_eq!(NodeId::new(""), Err(IdError::Empty));
        assert_eq!(NodeId::new("."), Err(IdError::Dots));
        assert_eq!(NodeId::new(".."), Err(IdError::Dots));
        assert_eq!(NodeId::new("x".repeat(129)), Err(IdError::TooLong(129)));
        for (bad, invalid) in [("a/b", '/'), ("a b", ' '), ("ä", 'ä'), ("a\n", '\n')] {
            assert_eq!(NodeId::new(bad), Err(IdError::Character(invalid)));
        }
    }

    #[test]
    fn run_ids_are_also_valid_branch_names() {
        for good in ["run-1a2b3c4d", "v1.2", "-x", "a.lock.b", &"x".repeat(128)] {
            assert_eq!(RunId::new(good).map(|id| id.branch().to_string()), Ok(format!("runner/{good}")));
        }
        for bad in [".a", "a.", "a.lock", "a..b"] {
            assert!(matches!(RunId::new(bad), Err(IdError::NotABranch(_))), "{bad}");
        }
        assert_eq!(RunId::new("."), Err(IdError::Dots));
        assert_eq!(RunId::new("a b"), Err(IdError::Character(' ')));
    }

    #[test]
    fn a_branch_name_has_the_id_of_its_run() {
        assert_eq!(RunId::of_branch("runner/x").map(|id| id.to_string()), Some("x".to_owned()));
        assert_eq!(RunId::of_branch("runner/a/b"), None);
        assert_eq!(RunId::of_branch("main"), None);
    }

    #[test]
    fn iteration_numbers_are_written_with_four_digits_and_parsed_with_any() {
        assert_eq!(IterationNumber::FIRST.to_string(), "0001");
        assert_eq!(IterationNumber::new(12345).map(|i| i.to_string()), Some("12345".to_owned()));
        assert_eq!("0057".parse(), Ok(IterationNumber::new(57).unwrap()));
        assert_eq!("57".parse::<IterationNumber>().map(IterationNumber::get), Ok(57));
        for bad in ["0", "0000", "", "+1", "-1", "1.0", "99999999999"] {
            assert_eq!(bad.parse::<IterationNumber>(), Err(IterationNumberError), "{bad}");
        }
    }
}
