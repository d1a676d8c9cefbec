//! The `[[ladder]]` tables: further agents, used after failed attempts or when a usage limit is reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Executor, ExecutorKind};
use crate::strict::{BoundedInt, TomlTable};
use crate::text::{head, one_line};

/// One rung of the ladder above `[executor]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Rung {
    /// Used after N failed attempts at a task. Without it, only used instead of an agent that has reached its usage
    /// limit.
    #[schemars(extend("examples" = [2]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_attempts: Option<BoundedInt<1, 1_000_000>>,
    /// The agent. Without `kind`, the keys here override those of `[executor]`.
    #[serde(flatten)]
    pub executor: Executor,
}

/// What to do when an agent has reached its usage limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OnUsageLimit {
    Wait,
    Next,
}

/// The longest model or command in an agent's label.
const LABEL_BYTES_MAX: usize = 120;

impl Executor {
    /// The agent's label in every output: its kind, and its model, command or scenario.
    pub fn label(&self) -> String {
        let detail = match self.kind {
            ExecutorKind::Codex | ExecutorKind::Claude => self.model.clone(),
            ExecutorKind::Command | ExecutorKind::Acp => self.command_label(),
            ExecutorKind::Script => self.scenario.clone(),
        };
        match detail {
            Some(detail) => {
                format!("{}:{}", self.kind.as_str(), head(&one_line(&detail), LABEL_BYTES_MAX))
            }
            None => self.kind.as_str().to_owned(),
        }
    }

    fn command_label(&self) -> Option<String> {
        if let Some(command) = &self.command {
            return Some(command.words().join(" "));
        }
        let name = self.preset?.name();
        Some(match &self.model {
            Some(model) => format!("{name}/{model}"),
            None => name.to_owned(),
        })
    }

    /// The agent's key in `[prices]`.
    pub fn priced_as(&self) -> &str {
        self.model.as_deref().unwrap_or(self.kind.as_str())
    }
}

impl Rung {
    pub(super) fn take(table: &mut TomlTable<'_>, first: &Executor) -> Self {
        let after_attempts = table.optional("after_attempts");
        let base = if table.has("kind") { Executor::default() } else { first.clone() };
        Self { after_attempts, executor: Executor::take(table, base) }
    }
}
