//! Programs that are told what happens in a run.

use schemars::JsonSchema;
use serde::Serialize;

use super::{CommandArgv, Table};
use crate::strict::BoundedInt;

/// Seconds that a hook may take.
pub type HookSeconds = BoundedInt<1, 300>;

/// Programs that are told what happens. Each gets one JSON document on its standard input. None of them can stop or fail
/// a run: one that fails or takes too long is told in a line, and that is all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct HooksConfig {
    /// Run after the commit that passed a node.
    #[schemars(extend("examples" = [["/home/me/bin/tell"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_pass: Option<CommandArgv>,
    /// Run when the loop stops because a leaf is stuck.
    #[schemars(extend("examples" = [["/home/me/bin/tell"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_stuck: Option<CommandArgv>,
    /// Run when the goal is reached.
    #[schemars(extend("examples" = [["/home/me/bin/tell"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_complete: Option<CommandArgv>,
    /// Run when the loop stops for any other reason, or for one of these two where it has no hook of its own.
    #[schemars(extend("examples" = [["/home/me/bin/tell"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_stop: Option<CommandArgv>,
    /// How long each of them may take; then it is ended.
    pub timeout_secs: HookSeconds,
}

impl Default for HooksConfig {
    fn default() -> Self {
        Self {
            on_pass: None,
            on_stuck: None,
            on_complete: None,
            on_stop: None,
            timeout_secs: BoundedInt::fixed::<10>(),
        }
    }
}

impl HooksConfig {
    /// The hooks that are configured, each with its key.
    pub fn configured(&self) -> impl Iterator<Item = (&'static str, &CommandArgv)> {
        let all = [
            ("on_pass", &self.on_pass),
            ("on_stuck", &self.on_stuck),
            ("on_complete", &self.on_complete),
            ("on_stop", &self.on_stop),
        ];
        all.into_iter().filter_map(|(key, argv)| Some((key, argv.as_ref()?)))
    }

    pub(super) fn take(table: &mut Table<'_>) -> Self {
        let usual = Self::default();
        Self {
            on_pass: table.optional("on_pass"),
            on_stuck: table.optional("on_stuck"),
            on_complete: table.optional("on_complete"),
            on_stop: table.optional("on_stop"),
            timeout_secs: table.optional("timeout_secs").unwrap_or(usual.timeout_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn only_the_hooks_that_are_configured_are_told() {
        let text = "[hooks]\non_stop = [\"mail\", \"me\"]\non_pass = [\"beep\"]\n";
        let hooks = Config::decode(text.as_bytes()).unwrap().hooks;
        let told: Vec<_> = hooks.configured().map(|(key, argv)| (key, argv.words().join(" "))).collect();
        assert_eq!(told, [("on_pass", "beep".to_owned()), ("on_stop", "mail me".to_owned())]);
    }
}
