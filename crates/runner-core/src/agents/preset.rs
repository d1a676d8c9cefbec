//! Presets: the agents that `kind = "command"` can start by name.
//!
//! A preset writes its answer to the file in `RUNNER_OUTPUT`, as the prompt asks, and only that answer decides: several
//! of these programs exit with 0 whatever happened. Without `base_url` they use the user's login and provider; with
//! it, only that provider.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::launch::{CommandLine, LaunchRequest, SetupFile, SetupLink};
use super::{AGENTS, AgentSpec, PresetLogin};

use crate::strict::inline_schema;

/// The name under which the programs know the provider of the configuration.
pub(super) const PROVIDER: &str = "runner";

/// A preset of the configuration: an entry of the registry that is not a native agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset(&'static AgentSpec);

impl Preset {
    /// Every preset, in the registry's order.
    pub fn all() -> impl Iterator<Item = Self> {
        AGENTS.into_iter().filter_map(Self::of)
    }

    /// The preset of an agent; none if the agent is native.
    pub fn of(agent: &'static AgentSpec) -> Option<Self> {
        agent.is_preset().then_some(Self(agent))
    }

    /// The agent behind the preset.
    pub fn agent(self) -> &'static AgentSpec {
        self.0
    }

    /// The preset's name in the configuration.
    pub fn name(self) -> &'static str {
        self.0.name
    }
}

impl Serialize for Preset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Preset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::all().find(|preset| preset.name() == name).ok_or_else(|| {
            let known: Vec<String> = Self::all().map(|preset| format!("`{}`", preset.name())).collect();
            serde::de::Error::custom(format!("unknown preset `{name}`, expected one of {}", known.join(", ")))
        })
    }
}

inline_schema!(Preset, { "type": "string", "enum": Preset::all().map(Preset::name).collect::<Vec<_>>() });

/// Adds `option MODEL` if a model is configured.
pub(super) fn add_model(line: &mut CommandLine, option: &str, request: &LaunchRequest<'_>) {
    if let Some(model) = &request.executor.model {
        line.args([option, model]);
    }
}

/// Passes the key of the configured provider under the name that the program expects.
pub(super) fn set_key(line: &mut CommandLine, name: &str, request: &LaunchRequest<'_>) {
    if let Some(key) = request.provider_key() {
        line.set(name, key);
    }
}

/// Gives the session a home of its own, without the user's instructions, settings, skills, sub-agents and MCP servers, and
/// returns its path. The login is a link; a provider of the configuration needs none.
pub(super) fn use_own_home(
    line: &mut CommandLine,
    request: &LaunchRequest<'_>,
    login: &PresetLogin,
) -> PathBuf {
    let own = request.context.settings_dir.join("home");
    let Some(folder) = login.folder else { return own };
    let linked = login.renewed_files.iter().filter(|_| request.executor.base_url.is_none());
    for file in linked {
        let below = Path::new(file).strip_prefix(folder.in_home).unwrap_or(Path::new(file));
        let targets = request.places(login, &[file]).into_iter();
        line.links.extend(targets.map(|target| SetupLink { path: own.join(below), target }));
    }
    line.set(folder.variable, &own);
    line.folders.push(own.clone());
    own
}

/// Adds a settings file to the session's folder, and returns its path.
pub(super) fn add_settings_file(
    line: &mut CommandLine,
    request: &LaunchRequest<'_>,
    name: &str,
    settings: &Value,
) -> PathBuf {
    let path = request.context.settings_dir.join(name);
    line.files.push(SetupFile { path: path.clone(), text: format!("{settings}\n"), is_program: false });
    path
}

/// Adds a key to a JSON object.
pub(super) fn insert(settings: &mut Value, key: &str, value: Value) {
    if let Value::Object(settings) = settings {
        settings.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn presets_have_the_same_name_in_every_format() {
        for preset in Preset::all() {
            assert_eq!(serde_json::to_value(preset).unwrap(), json!(preset.name()));
            assert_eq!(serde_json::from_value::<Preset>(json!(preset.name())).unwrap(), preset);
        }
        assert!(serde_json::from_value::<Preset>(json!("codex")).is_err());
    }
}
