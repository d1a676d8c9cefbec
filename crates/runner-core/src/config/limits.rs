//! The `[limits]` and `[accept]` tables, and what to do at a time limit: how a run ends that makes no progress, and what
//! counts as progress.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::read_keys;
use crate::strict::{BoundedInt, TomlTable};

/// Limits on a run that makes no progress, and on how far agents may split tasks. What you add yourself is not limited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct LimitsConfig {
    /// Stop after N iterations in a row in which no task passed and no check turned green; 0 disables the limit.
    pub stall_iterations: BoundedInt<0, 1_000_000>,
    /// Levels of the tree to which agents may add tasks, the root included.
    pub max_depth: BoundedInt<1, 32>,
    /// Most children of one task to which agents may add.
    pub max_children: BoundedInt<1, 100_000>,
    /// Most tasks of a tree to which agents may add.
    pub max_nodes: BoundedInt<1, 100_000>,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            stall_iterations: BoundedInt::fixed::<12>(),
            max_depth: BoundedInt::fixed::<10>(),
            max_children: BoundedInt::fixed::<100>(),
            max_nodes: BoundedInt::fixed::<5_000>(),
        }
    }
}

impl LimitsConfig {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut limits = Self::default();
        read_keys!(table, limits: stall_iterations, max_depth, max_children, max_nodes);
        limits
    }
}

/// When an answer is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct AcceptConfig {
    /// What to do when an agent answers `done` and changed no file outside `.runner/`, and the guard succeeds: "confirm" to
    /// let a second, independent session confirm it, "pass" to accept it, or "retry" to count it as a failed attempt.
    pub unchanged: UnchangedPolicy,
}

/// What to do with `done` from a session that changed no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum UnchangedPolicy {
    Confirm,
    Pass,
    Retry,
}

impl Default for AcceptConfig {
    fn default() -> Self {
        Self { unchanged: UnchangedPolicy::Confirm }
    }
}

impl AcceptConfig {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut accept = Self::default();
        read_keys!(table, accept: unchanged);
        accept
    }
}

/// What to do when an iteration reaches a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OnTimeout {
    Stop,
    Retry,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, OnStuck};

    #[test]
    fn the_keys_are_read() {
        let text = "on_timeout = \"retry\"\non_stuck = \"skip\"\n[limits]\nstall_iterations = 0\nmax_depth = 3\n\
            max_children = 4\nmax_nodes = 5\n[accept]\nunchanged = \"pass\"\n";
        let config = Config::decode(text.as_bytes()).unwrap();
        assert_eq!((config.on_timeout, config.on_stuck), (OnTimeout::Retry, OnStuck::Skip));
        let limits = config.limits;
        assert_eq!((limits.stall_iterations.get(), limits.max_depth.get()), (0, 3));
        assert_eq!((limits.max_children.get(), limits.max_nodes.get()), (4, 5));
        assert_eq!(config.accept.unchanged, UnchangedPolicy::Pass);
    }

    #[test]
    fn limits_beyond_those_of_a_tree_are_refused() {
        for text in
            ["[limits]\nmax_depth = 33\n", "[limits]\nmax_nodes = 100001\n", "[limits]\nmax_children = 0\n"]
        {
            assert!(Config::decode(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Config::decode(b"[accept]\nunchanged = \"maybe\"\n").is_err());
    }
}
