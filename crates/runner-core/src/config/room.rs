//! Where the guard runs: values of the keys in `[guard]` about the room.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the guard runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum RoomMode {
    Auto,
    Require,
    InPlace,
}

/// Which ignored files the guard finds in the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum IgnoredFiles {
    /// Those that the guard and its setup made there.
    Room,
    /// Copies of those in the work tree.
    Worktree,
    None,
}

impl IgnoredFiles {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Worktree => "worktree",
            Self::None => "none",
        }
    }
}

impl fmt::Display for IgnoredFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
