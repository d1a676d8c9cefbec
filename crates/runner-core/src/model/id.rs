//! The names of things: runs, nodes and iterations, parsed once and trusted after that.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use super::object_id::BranchName;

/// The most bytes an id may have.
pub const ID_BYTES_MAX: usize = 128;

/// Why a text is no id.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IdError {
    /// Nothing there.
    #[error("is empty")]
    Empty,
    /// Longer than [`ID_BYTES_MAX`].
    #[error("is {0} bytes long, more than {ID_BYTES_MAX}")]
    TooLong(usize),
    /// A character outside `[A-Za-z0-9._-]`.
    #[error("contains {0:?}; only letters, digits, `.`, `_` and `-` are allowed")]
    Character(char),
    /// `.` or `..`, which mean folders.
    #[error("must not be `.` or `..`")]
    Dots,
    /// A form that git refuses as a part of a branch name.
    #[error("makes no branch name: git refuses a name that {0}")]
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
    let odd = text.chars().find(|c| !u8::try_from(*c).is_ok_and(allowed));
    odd.map_or(Ok(()), |odd| Err(IdError::Character(odd)))
}

/// The name of a node: unique in its tree, a folder's name, a word in commit messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct NodeId(Box<str>);

impl NodeId {
    /// Checks `text` and takes it.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, IdError> {
        let text = text.into();
        Self::check(&text).map(|()| Self(text))
    }

    /// Takes `text` without a copy, or gives it back with what is wrong with it.
    pub(crate) fn taking(text: String) -> Result<Self, (String, IdError)> {
        match Self::check(&text) {
            Ok(()) => Ok(Self(text.into())),
            Err(fault) => Err((text, fault)),
        }
    }

    fn check(text: &str) -> Result<(), IdError> {
        check_characters(text)?;
        if matches!(text, "." | "..") { Err(IdError::Dots) } else { Ok(()) }
    }

    /// The id of the root that `runner start` makes.
    pub fn root() -> Self {
        Self("root".into())
    }

    /// Stands in for an id that could not be read, so that the rest of a document can still be checked.
    pub(crate) fn unreadable() -> Self {
        Self("".into())
    }

    pub(crate) fn is_unreadable(&self) -> bool {
        self.0.is_empty()
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::taking(text).map_err(|(text, fault)| serde::de::Error::custom(format!("{text:?} {fault}")))
    }
}

impl JsonSchema for NodeId {
    fn schema_name() -> Cow<'static, str> {
        "NodeId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[A-Za-z0-9._-]{1,128}$",
            "not": { "enum": [".", ".."] },
        })
    }
}

/// The name of a run: the `id` in GOAL.md, and `runner/<id>` as its branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct RunId(Box<str>);

/// The folder of branches that belong to runs.
pub const BRANCH_PREFIX: &str = "runner/";

impl RunId {
    /// Checks `text` and takes it. The rules are git's own for one part of a branch name, within the
    /// characters that an id may have.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, IdError> {
        let text = text.into();
        check_characters(&text)?;
        if matches!(&*text, "." | "..") {
            return Err(IdError::Dots);
        }
        let refused = if text.starts_with('.') {
            Some("begins with `.`")
        } else if text.ends_with('.') {
            Some("ends in `.`")
        } else if text.ends_with(".lock") {
            Some("ends in `.lock`")
        } else if text.contains("..") {
            Some("contains `..`")
        } else {
            None
        };
        refused.map_or_else(|| Ok(Self(text)), |why| Err(IdError::NotABranch(why)))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The run's branch, `runner/<id>`.
    pub fn branch(&self) -> BranchName {
        BranchName::new(format!("{BRANCH_PREFIX}{}", self.0))
    }

    /// The id in a branch's name, if it is a run's branch.
    pub fn of_branch(branch: &str) -> Option<Self> {
        branch.strip_prefix(BRANCH_PREFIX).and_then(|id| Self::new(id).ok())
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text.as_str()).map_err(|fault| serde::de::Error::custom(format!("{text:?} {fault}")))
    }
}

impl JsonSchema for RunId {
    fn schema_name() -> Cow<'static, str> {
        "RunId".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[A-Za-z0-9._-]{1,128}$",
            // By its type too: a pattern says nothing of null, which an optional id may be.
            "not": { "type": "string", "pattern": r"^\.|\.\.|\.$|\.lock$" },
        })
    }
}

/// The number of an iteration within its run, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct IterationNumber(NonZeroU32);

impl IterationNumber {
    /// The first iteration of a run.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// Takes a number from 1.
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The one after it.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Four digits or more, as folders and commit messages have it.
impl fmt::Display for IterationNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}", self.0)
    }
}

/// Reads what [`fmt::Display`] writes, and plain numbers.
impl FromStr for IterationNumber {
    type Err = IterationNumberError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        number.and_then(Self::new).ok_or(IterationNumberError)
    }
}

/// A text that is no iteration's number.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("is no iteration; iterations are numbered from 1")]
pub struct IterationNumberError;

impl<'de> Deserialize<'de> for IterationNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = crate::strict::BoundedInt::<1, { u32::MAX as i64 }>::deserialize(deserializer)?;
        u32::try_from(number.get())
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| serde::de::Error::custom(IterationNumberError))
    }
}

impl JsonSchema for IterationNumber {
    fn schema_name() -> Cow<'static, str> {
        "Iteration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX })
    }
}

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
    fn a_node_id_is_short_plain_and_names_a_folder() {
        for good in ["a", "A-1_b.c", "...", "-rf", &"x".repeat(128)] {
            assert_eq!(NodeId::new(good).map(|id| id.to_string()), Ok(good.to_owned()));
        }
        assert_eq!(NodeId::new(""), Err(IdError::Empty));
        assert_eq!(NodeId::new("."), Err(IdError::Dots));
        assert_eq!(NodeId::new(".."), Err(IdError::Dots));
        assert_eq!(NodeId::new("x".repeat(129)), Err(IdError::TooLong(129)));
        for (bad, odd) in [("a/b", '/'), ("a b", ' '), ("ä", 'ä'), ("a\n", '\n')] {
            assert_eq!(NodeId::new(bad), Err(IdError::Character(odd)));
        }
    }

    #[test]
    fn a_run_id_also_makes_a_branch() {
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
    fn a_branch_gives_its_run_back() {
        assert_eq!(RunId::of_branch("runner/x").map(|id| id.to_string()), Some("x".to_owned()));
        assert_eq!(RunId::of_branch("runner/a/b"), None);
        assert_eq!(RunId::of_branch("main"), None);
    }

    #[test]
    fn an_iteration_is_written_with_four_digits_and_read_with_any() {
        assert_eq!(IterationNumber::FIRST.to_string(), "0001");
        assert_eq!(IterationNumber::new(12345).map(|i| i.to_string()), Some("12345".to_owned()));
        assert_eq!("0057".parse(), Ok(IterationNumber::new(57).unwrap()));
        assert_eq!("57".parse::<IterationNumber>().map(IterationNumber::get), Ok(57));
        for bad in ["0", "0000", "", "+1", "-1", "1.0", "99999999999"] {
            assert_eq!(bad.parse::<IterationNumber>(), Err(IterationNumberError), "{bad}");
        }
    }
}
