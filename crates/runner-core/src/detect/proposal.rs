//! The configuration that is proposed for a repository: the documented file with the detected settings in it.

use serde_json::{Value, json};

use super::agents::AgentPresence;
use super::packages::{DetectedGuard, detect_guard};
use super::{LoginState, RepoListing, Stack};
use crate::agents::{AgentSpec, agent_named};
use crate::config::{Config, Executor, KeyEdit, SetKeyError, edit_keys};

/// What the user asked for on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigRequest {
    pub agent: Option<AgentRequest>,
    pub model: Option<String>,
    /// The words of the guard.
    pub guard: Option<Vec<String>>,
    /// Whether to propose the settings for an unattended run.
    pub is_for_night: bool,
}

/// An agent as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    Known(&'static AgentSpec),
    /// A program and its arguments.
    Command(Vec<String>),
}

impl AgentRequest {
    /// The name of a known agent, or else a command line.
    pub fn parse(text: &str) -> Self {
        match agent_named(text.trim()) {
            Some(agent) => Self::Known(agent),
            None => Self::Command(super::guard_words(text)),
        }
    }

    fn settings(&self) -> Vec<ProposedSetting> {
        match self {
            Self::Known(agent) => agent_settings(agent),
            Self::Command(words) => vec![
                ProposedSetting::new("executor.kind", json!("command")),
                ProposedSetting::new("executor.command", json!(words)),
            ],
        }
    }
}

/// One key and the value that is proposed for it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedSetting {
    pub key: &'static str,
    pub value: Value,
}

impl ProposedSetting {
    fn new(key: &'static str, value: Value) -> Self {
        Self { key, value }
    }
}

/// A proposed configuration, and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedConfig {
    /// The text of config.toml.
    pub text: String,
    pub config: Config,
    pub stacks: Vec<Stack>,
    /// Whether the guard is the user's own or was found, and not only the default.
    pub has_guard: bool,
    /// Where the guard was found; empty if it is the default or the user's own.
    pub guard_sources: Vec<String>,
    /// The installed agent that was chosen.
    pub agent: Option<AgentPresence>,
    pub notes: Vec<String>,
}

/// The settings of a night: a task that times out is tried again, and a stuck one does not stop the others.
const NIGHT: [(&str, &str); 2] = [("on_timeout", "retry"), ("on_stuck", "skip")];

pub fn night_settings() -> Vec<ProposedSetting> {
    NIGHT.iter().map(|(key, value)| ProposedSetting::new(key, json!(value))).collect()
}

/// The configuration for a repository. `base` is a configuration of the user's that only what they asked for changes;
/// without one, everything is detected.
pub fn propose_config(
    listing: &RepoListing,
    installed: &[AgentPresence],
    request: &ConfigRequest,
    base: Option<&str>,
) -> Result<ProposedConfig, SetKeyError> {
    let detected = if base.is_some() || request.guard.is_some() { None } else { detect_guard(listing) };
    let agent = super::choose_agent(installed);
    let mut settings = Vec::new();
    let mut notes = Vec::new();
    if let Some(guard) = &detected {
        settings.extend(guard_settings(guard));
        notes.extend(guard.notes.iter().cloned());
    } else if base.is_none() && request.guard.is_none() {
        notes.push("no test command found: set one with --guard, or guard.command".to_owned());
    }
    if let Some(words) = &request.guard {
        settings.push(ProposedSetting::new("guard.command", json!(words)));
    }
    match (&request.agent, agent) {
        (Some(agent), _) => settings.extend(agent.settings()),
        (None, Some(presence)) if base.is_none() => settings.extend(agent_settings(presence.agent)),
        (None, _) => {}
    }
    settings.extend(request.model.as_ref().map(|model| ProposedSetting::new("executor.model", json!(model))));
    let has_guard = detected.is_some() || base.is_some() || request.guard.is_some();
    if base.is_none() && request.is_for_night {
        settings.extend(night_settings());
    }
    let text = applied(&base.map_or_else(Config::documented_file, str::to_owned), &settings)?;
    let config = Config::decode(text.as_bytes()).map_err(SetKeyError::Invalid)?;
    let chosen = config.executor.agent();
    let presence = installed.iter().find(|presence| chosen == Some(presence.agent)).copied();
    if presence.is_some_and(|presence| presence.login == LoginState::Missing) {
        notes.push("no login found for the agent".to_owned());
    }
    let (stacks, guard_sources) = detected.map(|guard| (guard.stacks, guard.sources)).unwrap_or_default();
    Ok(ProposedConfig { text, config, stacks, has_guard, guard_sources, agent: presence, notes })
}

/// The protected files are no setting: without a list, they follow from the command.
fn guard_settings(guard: &DetectedGuard) -> Vec<ProposedSetting> {
    let mut settings = vec![ProposedSetting::new("guard.command", json!(guard.command))];
    if let Some(setup) = &guard.setup {
        settings.push(ProposedSetting::new("guard.setup", json!(setup)));
        settings.push(ProposedSetting::new("guard.setup_inputs", json!(guard.setup_inputs)));
    }
    if !guard.keep.is_empty() {
        settings.push(ProposedSetting::new("guard.keep", json!(guard.keep)));
    }
    settings
}

fn agent_settings(agent: &'static AgentSpec) -> Vec<ProposedSetting> {
    let executor = Executor::for_agent(agent);
    let preset = executor.preset.map(|preset| ProposedSetting::new("executor.preset", json!(preset.name())));
    std::iter::once(ProposedSetting::new("executor.kind", json!(executor.kind.as_str())))
        .chain(preset)
        .collect()
}

fn applied(text: &str, settings: &[ProposedSetting]) -> Result<String, SetKeyError> {
    let edits = settings.iter().map(|setting| KeyEdit::from_value(setting.key, &setting.value));
    edit_keys(text, &edits.collect::<Result<Vec<_>, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ExecutorKind, OnStuck, OnTimeout};
    use crate::detect::sample::listing;

    fn propose(files: &[(&str, &str)], request: &ConfigRequest, base: Option<&str>) -> ProposedConfig {
        let claude = AgentPresence { agent: agent_named("claude").unwrap(), login: LoginState::Found };
        propose_config(&listing(files), &[claude], request, base).unwrap()
    }

    #[test]
    fn everything_detected_is_in_the_documented_file() {
        let files = [
            ("package.json", r#"{"scripts": {"test": "t"}, "dependencies": {"a": "1"}}"#),
            ("package-lock.json", "{}"),
        ];
        let proposed = propose(&files, &ConfigRequest::default(), None);
        let Config { guard, executor, .. } = &proposed.config;
        assert_eq!(guard.command.words(), ["npm", "test"]);
        assert_eq!(guard.setup.as_ref().unwrap().words(), ["npm", "ci"]);
        assert_eq!(guard.setup_inputs, ["package-lock.json", "package.json"]);
        assert_eq!((executor.kind, proposed.notes.len()), (ExecutorKind::Claude, 0));
        assert_eq!(proposed.text.lines().count(), Config::documented_file().lines().count());
    }

    #[test]
    fn a_repository_without_anything_gets_the_defaults() {
        let proposed = propose_config(&listing(&[]), &[], &ConfigRequest::default(), None).unwrap();
        assert_eq!(proposed.text, Config::documented_file());
        assert_eq!(proposed.notes, ["no test command found: set one with --guard, or guard.command"]);
    }

    #[test]
    fn a_base_changes_only_where_the_user_asks() {
        let base = "# mine\n[guard]\ncommand = [\"make\"]\n";
        let kept = propose(
            &[("Cargo.toml", "")],
            &ConfigRequest { is_for_night: true, ..ConfigRequest::default() },
            Some(base),
        );
        assert_eq!(kept.text, base);
        let request = ConfigRequest {
            agent: Some(AgentRequest::parse("sh agent.sh")),
            guard: Some(vec!["sh".to_owned(), "ci.sh".to_owned()]),
            ..ConfigRequest::default()
        };
        let changed = propose(&[("ci.sh", "")], &request, Some(base)).config;
        assert_eq!(changed.guard.command.words(), ["sh", "ci.sh"]);
        assert_eq!(changed.guard.protected, None);
        assert_eq!(changed.executor.label(), "command:sh agent.sh");
    }

    #[test]
    fn an_agent_can_be_named_with_its_model() {
        let request = ConfigRequest {
            agent: Some(AgentRequest::parse("codex")),
            model: Some("gpt-6.1-sol".to_owned()),
            ..ConfigRequest::default()
        };
        assert_eq!(propose(&[], &request, None).config.executor.label(), "codex:gpt-6.1-sol");
        let preset = ConfigRequest { agent: Some(AgentRequest::parse("gemini")), ..ConfigRequest::default() };
        assert_eq!(propose(&[], &preset, None).config.executor.label(), "command:gemini");
    }

    #[test]
    fn the_configuration_of_a_night_retries_and_skips() {
        let config = |is_for_night| {
            let config =
                propose(&[], &ConfigRequest { is_for_night, ..ConfigRequest::default() }, None).config;
            (config.on_timeout, config.on_stuck)
        };
        assert_eq!(config(true), (OnTimeout::Retry, OnStuck::Skip));
        assert_eq!(config(false), (OnTimeout::Stop, OnStuck::Stop));
    }
}
