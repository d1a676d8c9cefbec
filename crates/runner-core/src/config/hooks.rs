//! The `[hooks]` table: commands that run when a task passes, a run stops, a wait begins or an agent asks a question.

use schemars::JsonSchema;
use serde::Serialize;

use super::{CommandArgv, read_keys, read_optional_keys};
use crate::strict::{BoundedInt, TomlTable};

/// The time limit of a hook in seconds.
pub type HookSeconds = BoundedInt<1, 300>;

/// Notification commands. Each gets one JSON document on standard input. A hook cannot stop or fail a run: if it fails or
/// takes too long, the runner reports that and continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct HooksConfig {
    /// Run after the commit with which a task passes.
    #[schemars(extend("examples" = [["/home/me/bin/notify"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_pass: Option<CommandArgv>,
    /// Run when the loop stops because a task is stuck.
    #[schemars(extend("examples" = [["/home/me/bin/notify"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_stuck: Option<CommandArgv>,
    /// Run when the goal is reached.
    #[schemars(extend("examples" = [["/home/me/bin/notify"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_complete: Option<CommandArgv>,
    /// Run when the loop stops for any other reason, and also when it is stuck or complete if that has no hook.
    #[schemars(extend("examples" = [["/home/me/bin/notify"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_stop: Option<CommandArgv>,
    /// Run when the loop begins to wait for a rate limit, an outage or a usage limit; once for all waits in a row.
    #[schemars(extend("examples" = [["/home/me/bin/notify"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_wait: Option<CommandArgv>,
    /// Run after the commit with which an agent asked a question.
    #[schemars(extend("examples" = [["/home/me/bin/notify"]]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_question: Option<CommandArgv>,
    /// Time limit for each hook; the runner kills it after that.
    pub timeout_secs: HookSeconds,
}

impl Default for HooksConfig {
    fn default() -> Self {
        Self {
            on_pass: None,
            on_stuck: None,
            on_complete: None,
            on_stop: None,
            on_wait: None,
            on_question: None,
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
            ("on_wait", &self.on_wait),
            ("on_question", &self.on_question),
        ];
        all.into_iter().filter_map(|(key, argv)| Some((key, argv.as_ref()?)))
    }

    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut hooks = Self::default();
        read_optional_keys!(table, hooks: on_pass, on_stuck, on_complete, on_stop, on_wait, on_question);
        read_keys!(table, hooks: timeout_secs);
        hooks
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn configured_lists_only_configured_hooks() {
        let text = "[hooks]\non_stop = [\"mail\", \"me\"]\non_pass = [\"beep\"]\n";
        let hooks = Config::decode(text.as_bytes()).unwrap().hooks;
        let configured: Vec<_> =
            hooks.configured().map(|(key, argv)| (key, argv.words().join(" "))).collect();
        assert_eq!(configured, [("on_pass", "beep".to_owned()), ("on_stop", "mail me".to_owned())]);
    }
}
