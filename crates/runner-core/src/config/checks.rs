//! `[checks]`: what the runner does with the acceptance commands of tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::read_keys;
use crate::strict::{BoundedInt, TomlTable};

/// How the runner treats the checks of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct ChecksConfig {
    /// What to do with a check that must fail before the work begins and does not: "annotate" the task as unproven and go
    /// on, or "stop" the run.
    pub vacuous: VacuousPolicy,
    /// How many tasks the runner adds for checks of passed tasks that fail again. After that, the run stops.
    pub regression_tasks: BoundedInt<0, 1_000>,
}

/// What to do with a check that proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum VacuousPolicy {
    Annotate,
    Stop,
}

impl Default for ChecksConfig {
    fn default() -> Self {
        Self { vacuous: VacuousPolicy::Annotate, regression_tasks: BoundedInt::fixed::<3>() }
    }
}

impl ChecksConfig {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut checks = Self::default();
        read_keys!(table, checks: vacuous, regression_tasks);
        checks
    }
}
