//! `[checks]`: what the runner does with the acceptance commands of tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{read_keys, read_optional_keys};
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
    /// A folder outside of the repository with checks that no session can read: `<node-id>/checks.toml` with its files, or
    /// `root/` for the whole plan. Agents learn the names of those that fail, and nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/home/me/heldout/shop"]))]
    pub heldout: Option<String>,
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
        Self { vacuous: VacuousPolicy::Annotate, regression_tasks: BoundedInt::fixed::<3>(), heldout: None }
    }
}

impl ChecksConfig {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut checks = Self::default();
        read_keys!(table, checks: vacuous, regression_tasks);
        read_optional_keys!(table, checks: heldout);
        checks
    }
}
