//! Where a guard ran, and on which files.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::{GuardConfig, IgnoredFiles, RoomMode};
use crate::model::object_id::TreeId;

/// Where a guard ran, and on which files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardPlace {
    pub room: RoomLevel,
    /// The tree that the guard saw: the one that is committed, with the runner's documents as they were before.
    pub candidate: TreeId,
}

impl GuardPlace {
    pub fn in_place(candidate: TreeId) -> Self {
        Self { room: RoomLevel::InPlace, candidate }
    }
}

/// How far the files of a guard run are separated from everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub enum RoomLevel {
    /// The guard ran in the work tree, without a sandbox.
    InPlace,
    /// The guard ran in a checkout of the candidate, in a sandbox.
    Bubblewrap { ignored: IgnoredFiles },
}

const IN_PLACE: &str = "in-place";
const BUBBLEWRAP: &str = "bubblewrap ignored=";

impl RoomLevel {
    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        if text == IN_PLACE {
            return Some(Self::InPlace);
        }
        let policies = [IgnoredFiles::Room, IgnoredFiles::Worktree, IgnoredFiles::None];
        let ignored = text.strip_prefix(BUBBLEWRAP)?;
        policies
            .into_iter()
            .find(|policy| policy.as_str() == ignored)
            .map(|ignored| Self::Bubblewrap { ignored })
    }

    /// Whether a configuration allows a guard to run at this level.
    pub fn is_allowed(self, guard: &GuardConfig) -> bool {
        match self {
            Self::InPlace => guard.room != RoomMode::Require,
            Self::Bubblewrap { ignored } => guard.room != RoomMode::InPlace && ignored == guard.ignored,
        }
    }
}

impl fmt::Display for RoomLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InPlace => f.write_str(IN_PLACE),
            Self::Bubblewrap { ignored } => write!(f, "{BUBBLEWRAP}{ignored}"),
        }
    }
}

impl Serialize for RoomLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RoomLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected where a guard ran"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_parsed_as_it_is_written() {
        let policies = [IgnoredFiles::Room, IgnoredFiles::Worktree, IgnoredFiles::None];
        let rooms = policies.map(|ignored| RoomLevel::Bubblewrap { ignored });
        for level in rooms.into_iter().chain([RoomLevel::InPlace]) {
            assert_eq!(RoomLevel::parse(&level.to_string()), Some(level));
        }
        assert_eq!(RoomLevel::parse("bubblewrap"), None);
    }

    #[test]
    fn the_configuration_decides_which_levels_are_allowed() {
        let config = |room| GuardConfig { room, ..GuardConfig::default() };
        let room = RoomLevel::Bubblewrap { ignored: IgnoredFiles::Room };
        let other = RoomLevel::Bubblewrap { ignored: IgnoredFiles::None };
        let allowed = |mode| [RoomLevel::InPlace, room, other].map(|level| level.is_allowed(&config(mode)));
        assert_eq!(allowed(RoomMode::Auto), [true, true, false]);
        assert_eq!(allowed(RoomMode::Require), [false, true, false]);
        assert_eq!(allowed(RoomMode::InPlace), [true, false, false]);
    }
}
