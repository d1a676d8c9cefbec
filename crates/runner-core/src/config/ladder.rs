//! Further agents: asked when a leaf resists, or when the one before has used up its allowance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Executor, ExecutorKind, Table};
use crate::strict::BoundedInt;
use crate::text::{head, one_line};

/// One rung of the ladder above `[executor]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Rung {
    /// Asked once so many attempts at a leaf are spent; without it, only in the place of an agent that has used up
    /// its allowance.
    #[schemars(extend("examples" = [2]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_attempts: Option<BoundedInt<1, 1_000_000>>,
    /// The agent. Without `kind` it is that of `[executor]`, with the keys that stand here in the place of its own.
    #[serde(flatten)]
    pub executor: Executor,
}

/// What follows when an agent has used up its allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OnUsageLimit {
    Wait,
    Next,
}

/// How much of an agent's model or command stands in its name.
const LABEL_BYTES_MAX: usize = 120;

impl Executor {
    /// A name for the agent, the same wherever it is told of: its kind, and what it is asked for.
    pub fn label(&self) -> String {
        let what = match self.kind {
            ExecutorKind::Codex | ExecutorKind::Claude => self.model.clone(),
            ExecutorKind::Command => {
                self.command.as_ref().map(|command| command.words().join(" ")).or_else(|| {
                    let name = self.preset.map(|preset| preset.facts().program.to_owned());
                    name.map(|name| {
                        name + &self.model.as_ref().map(|model| format!("/{model}")).unwrap_or_default()
                    })
                })
            }
            ExecutorKind::Script => self.scenario.clone(),
        };
        let what = what.map(|what| format!(":{}", head(&one_line(&what), LABEL_BYTES_MAX)));
        format!("{}{}", self.kind.as_str(), what.unwrap_or_default())
    }

    /// The name under which the table of prices has it.
    pub fn priced_as(&self) -> &str {
        self.model.as_deref().unwrap_or(self.kind.as_str())
    }
}

impl Rung {
    pub(super) fn take(table: &mut Table<'_>, first: &Executor) -> Self {
        let after_attempts = table.optional("after_attempts");
        let inherits = !table.has("kind");
        let usual = if inherits { first.clone() } else { Executor::default() };
        Self { after_attempts, executor: Executor::take(table, usual) }
    }
}
