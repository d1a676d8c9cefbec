//! The `[logs]` table: how long the logs of iterations are kept.

use schemars::JsonSchema;
use serde::Serialize;

use super::read_keys;
use crate::strict::{BoundedInt, TomlTable};

/// How long to keep the logs of iterations. The commits of a run, and `meta.json`, `output.json` and `session.json` of every
/// iteration, always stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct LogsConfig {
    /// Keep all logs of the newest N iterations of a run.
    pub keep_iterations: BoundedInt<1, 1_000_000>,
    /// Of older iterations, keep all logs of the newest N that failed.
    pub keep_failed_iterations: BoundedInt<0, 1_000_000>,
}

impl Default for LogsConfig {
    fn default() -> Self {
        Self {
            keep_iterations: BoundedInt::fixed::<200>(),
            keep_failed_iterations: BoundedInt::fixed::<1_000>(),
        }
    }
}

impl LogsConfig {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut logs = Self::default();
        read_keys!(table, logs: keep_iterations, keep_failed_iterations);
        logs
    }
}
