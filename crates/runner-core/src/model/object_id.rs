//! The names of git objects and branches: parsed where git's output is read, trusted from then on.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// A text that is not the full name of a git object.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a git object id: expected 40 or 64 lower-case hexadecimal digits")]
pub struct ObjectIdError(String);

fn check(text: &str) -> Result<(), ObjectIdError> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_full = matches!(text.len(), 40 | 64) && text.bytes().all(is_digit);
    if is_full { Ok(()) } else { Err(ObjectIdError(text.to_owned())) }
}

macro_rules! object_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Box<str>);

        impl $name {
            pub fn new(text: impl Into<Box<str>>) -> Result<Self, ObjectIdError> {
                let text = text.into();
                check(&text).map(|()| Self(text))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

object_id! {
    /// The id of a commit.
    CommitId
}

object_id! {
    /// The id of a tree object: the files of a commit.
    TreeId
}

impl TreeId {
    /// The id that no tree has, for a place where a tree is missing.
    pub fn none() -> Self {
        Self("0".repeat(40).into())
    }
}

impl CommitId {
    /// The first digits, for names and for people.
    pub fn prefix(&self, digits: usize) -> &str {
        self.0.get(..digits).unwrap_or(&self.0)
    }
}

/// The short name of a branch: `runner/x`, not `refs/heads/runner/x`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BranchName(Box<str>);

impl BranchName {
    /// A name that git listed, or that the caller built from a valid [`RunId`](super::id::RunId).
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The full name of the reference.
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_lower_case_ids_are_accepted() {
        for good in ["0123456789abcdef0123456789abcdef01234567".to_owned(), "f".repeat(64)] {
            assert_eq!(CommitId::new(good.as_str()).unwrap().as_str(), good);
            let json = format!("\"{good}\"");
            assert_eq!(serde_json::from_str::<TreeId>(&json).unwrap().to_string(), good);
        }
        for bad in ["", "HEAD", "abc", &"A".repeat(40), &"g".repeat(40), &"0".repeat(41), &"é".repeat(20)] {
            assert!(CommitId::new(bad).is_err(), "{bad}");
            assert!(serde_json::from_str::<CommitId>(&format!("\"{bad}\"")).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_prefix_is_never_longer_than_the_id() {
        let id = CommitId::new("0123456789abcdef0123456789abcdef01234567").unwrap();
        assert_eq!(id.prefix(8), "01234567");
        assert_eq!(id.prefix(100), id.as_str());
    }
}
