//! Documents about the checks of tasks.

use runner_core::model::checks::{CheckRecord, RedKind};
use runner_host::view::checks::CheckState;
use schemars::JsonSchema;
use serde::Serialize;

/// A check of a task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TaskCheckView {
    pub name: String,
    /// As one types it.
    pub command: String,
    /// The acceptance criteria that it decides, from 1; empty if it decides all of them.
    pub covers: Vec<usize>,
    /// How it ended before the work; null if it has not run.
    pub red: Option<RedKind>,
    pub state: CheckStateName,
}

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStateName {
    HeldBack,
    Red,
    Vacuous,
    Green,
}

impl From<CheckState> for CheckStateName {
    fn from(state: CheckState) -> Self {
        match state {
            CheckState::HeldBack => Self::HeldBack,
            CheckState::Red => Self::Red,
            CheckState::Vacuous => Self::Vacuous,
            CheckState::Green => Self::Green,
        }
    }
}

/// A check in one iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckResultView {
    pub name: String,
    /// How it ended before the work.
    pub red: RedKind,
    /// How it ended after the session, `0` for success; null if it did not run then.
    pub exit: Option<String>,
    pub is_green: bool,
}

impl From<&CheckRecord> for CheckResultView {
    fn from(record: &CheckRecord) -> Self {
        Self {
            name: record.name.to_string(),
            red: record.red,
            exit: record.exit.map(|exit| exit.to_string()),
            is_green: record.exit.is_some_and(runner_core::model::checks::CheckExit::is_green),
        }
    }
}
