//! The `[notify]` table: messages to the user, without a script of their own.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{read_keys, read_optional_keys};
use crate::strict::{BoundedInt, TomlTable};

/// The time limit of a notification in seconds.
pub type NotifySeconds = BoundedInt<1, 60>;

/// Messages to you: what happened, why, and what to type next. A notification cannot stop or fail a run: if it cannot be
/// delivered, the runner reports that and continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct NotifyConfig {
    /// Show a notification on this desktop, with notify-send or osascript.
    pub desktop: bool,
    /// Send a JSON document to this address with POST. "$NAME" takes the address from a variable of the environment.
    #[schemars(extend("examples" = ["https://example.org/runner"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<NotifyUrl>,
    /// Send a short text to this topic of an ntfy server with POST. "$NAME" takes the address from a variable of the
    /// environment.
    #[schemars(extend("examples" = ["https://ntfy.sh/my-topic"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntfy: Option<NotifyUrl>,
    /// What to report: "complete", "stuck", "stopped" for every other stop, "waiting" at the beginning of a wait, and
    /// "question" for a question of an agent.
    pub events: Vec<NotifyEvent>,
    /// Time limit for each notification.
    pub timeout_secs: NotifySeconds,
}

/// What can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum NotifyEvent {
    Complete,
    Stuck,
    Stopped,
    Waiting,
    Question,
}

impl NotifyEvent {
    pub const ALL: [Self; 5] = [Self::Complete, Self::Stuck, Self::Stopped, Self::Waiting, Self::Question];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Stuck => "stuck",
            Self::Stopped => "stopped",
            Self::Waiting => "waiting",
            Self::Question => "question",
        }
    }
}

/// An address for notifications: http or https, or the name of a variable that holds one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct NotifyUrl(
    #[schemars(regex(pattern = r#"^(https?://[^\s"\\]+|\$[A-Za-z_][A-Za-z0-9_]*)$"#))]
    String,
);

impl NotifyUrl {
    pub fn new(text: String) -> Option<Self> {
        let is_variable = text.strip_prefix('$').is_some_and(is_name);
        (is_variable || is_address(&text)).then_some(Self(text))
    }

    /// The variable of the environment that holds the address, if it is not written here.
    pub fn variable(&self) -> Option<&str> {
        self.0.strip_prefix('$')
    }

    /// The address, or the variable with its dollar sign.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a text is an address that can be written into a quoted string as it is.
pub fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\');
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_plain))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl<'de> Deserialize<'de> for NotifyUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "expected an address with http:// or https://, or $NAME";
        Self::new(String::deserialize(deserializer)?).ok_or_else(|| serde::de::Error::custom(expected))
    }
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            desktop: false,
            webhook: None,
            ntfy: None,
            events: NotifyEvent::ALL.to_vec(),
            timeout_secs: BoundedInt::fixed::<5>(),
        }
    }
}

impl NotifyConfig {
    /// Whether an event is reported to anyone.
    pub fn reports(&self, event: NotifyEvent) -> bool {
        self.events.contains(&event) && (self.desktop || self.webhook.is_some() || self.ntfy.is_some())
    }

    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut notify = Self::default();
        read_keys!(table, notify: desktop, events, timeout_secs);
        read_optional_keys!(table, notify: webhook, ntfy);
        notify
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_keys_are_read_and_events_need_a_receiver() {
        let text = "[notify]\nwebhook = \"http://127.0.0.1:1/x\"\nntfy = \"$NTFY\"\nevents = [\"stuck\"]\n";
        let notify = Config::decode(text.as_bytes()).unwrap().notify;
        assert_eq!(notify.webhook.as_ref().map(NotifyUrl::as_str), Some("http://127.0.0.1:1/x"));
        assert_eq!(notify.ntfy.as_ref().and_then(NotifyUrl::variable), Some("NTFY"));
        assert!(notify.reports(NotifyEvent::Stuck) && !notify.reports(NotifyEvent::Complete));
        assert!(NotifyEvent::ALL.iter().all(|event| !NotifyConfig::default().reports(*event)));
    }

    #[test]
    fn an_address_cannot_end_the_string_that_it_is_written_into() {
        for bad in
            ["", "ftp://x", "http://", "http://a b", "http://a\"\noutput=x", "http://a\\", "$", "$1x", "$a-b"]
        {
            assert_eq!(NotifyUrl::new(bad.to_owned()), None, "{bad}");
        }
    }

    #[test]
    fn every_event_is_serialized_as_its_name() {
        for event in NotifyEvent::ALL {
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
    }
}
