//! Programs that are started as a command, with a table each: arguments, variables and settings files.
//!
//! They write their answer into the file that `RUNNER_OUTPUT` names, as the prompt says, and that answer alone
//! decides: several of them exit with 0 whatever happened. Without `base_url` they use the login and the
//! provider of the user; with it, that provider alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::launch::{CommandLine, LaunchContext, SetupFile};
use crate::config::Executor;

/// A program with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Preset {
    Opencode,
    Gemini,
    Qwen,
    Copilot,
    Pi,
}

/// What people need to know of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetSpec {
    /// The program, as it stands on the PATH.
    pub program: &'static str,
    /// The npm package that holds it.
    pub package: &'static str,
    /// The folders under the home in which it keeps its state, and which it must be able to write to.
    pub state: &'static [&'static str],
    /// What a failed session looks like.
    pub failure: &'static str,
}

/// The name under which a provider of the configuration is known to the programs.
const PROVIDER: &str = "runner";

impl Preset {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Opencode, Self::Gemini, Self::Qwen, Self::Copilot, Self::Pi];

    /// What is to be known of it.
    pub fn facts(self) -> PresetSpec {
        match self {
            Self::Opencode => PresetSpec {
                program: "opencode",
                package: "opencode-ai",
                state: &[
                    ".config/opencode",
                    ".local/share/opencode",
                    ".local/state/opencode",
                    ".cache/opencode",
                ],
                failure: "exit 1 and an `error` event when not logged in; silent retries without end when the \
                          provider fails",
            },
            Self::Gemini => PresetSpec {
                program: "gemini",
                package: "@google/gemini-cli",
                state: &[".gemini"],
                failure: "exit 145 when not logged in; long silent retries when the provider fails",
            },
            Self::Qwen => PresetSpec {
                program: "qwen",
                package: "@qwen-code/qwen-code",
                state: &[".qwen"],
                failure: "exit 0 even when not logged in; long silent retries when the provider fails",
            },
            Self::Copilot => PresetSpec {
                program: "copilot",
                package: "@github/copilot",
                state: &[".copilot", ".cache/copilot"],
                failure: "exit 1 after a few tries, whatever failed",
            },
            Self::Pi => PresetSpec {
                program: "pi",
                package: "@mariozechner/pi-coding-agent",
                state: &[".pi"],
                failure: "exit 0 always; `stopReason` is `error` in its events",
            },
        }
    }

    /// The command line. The prompt comes by standard input; variables are added to those of the user.
    pub fn command_line(self, executor: &Executor, places: &LaunchContext<'_>) -> CommandLine {
        let mut line = CommandLine::default();
        match self {
            Self::Opencode => opencode(&mut line, executor, places),
            Self::Gemini => gemini(&mut line, executor, places),
            Self::Qwen => qwen(&mut line, executor, places),
            Self::Copilot => copilot(&mut line, executor, places),
            Self::Pi => pi(&mut line, executor, places),
        }
        line
    }
}

/// The model's name and an option before it, if a model is configured.
fn model(line: &mut CommandLine, option: &str, executor: &Executor) {
    if let Some(model) = &executor.model {
        line.args([option, model]);
    }
}

/// Gives the program the key of the configuration's provider under the name that it looks for.
fn key(line: &mut CommandLine, name: &str, executor: &Executor, places: &LaunchContext<'_>) {
    let key = executor.key_env.as_ref().and_then(|name| places.user.get(std::ffi::OsStr::new(name)));
    if let Some(key) = key {
        line.set(name, key.clone());
    }
}

fn write(
    line: &mut CommandLine,
    places: &LaunchContext<'_>,
    name: &str,
    settings: &Value,
) -> std::path::PathBuf {
    let path = places.settings.join(name);
    line.files.push(SetupFile { path: path.clone(), text: format!("{settings}\n"), is_program: false });
    path
}

fn add(settings: &mut Value, key: &str, value: Value) {
    if let Value::Object(settings) = settings {
        settings.insert(key.to_owned(), value);
    }
}

fn opencode(line: &mut CommandLine, executor: &Executor, _: &LaunchContext<'_>) {
    let mut settings = json!({
        "autoupdate": false, "share": "disabled", "compaction": { "auto": false }, "permission": { "*": "allow" },
    });
    line.args(["run", "--format", "json"]);
    for name in
        ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_AUTOCOMPACT", "OPENCODE_DISABLE_LSP_DOWNLOAD"]
    {
        line.set(name, "1");
    }
    match (&executor.base_url, &executor.model) {
        (Some(base_url), Some(model)) => {
            let key = executor.key_env.as_ref().map(|name| format!("{{env:{name}}}")).unwrap_or_default();
            add(
                &mut settings,
                "provider",
                json!({ PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "options": { "baseURL": base_url, "apiKey": key },
                "models": { model: { "tool_call": true } },
            } }),
            );
            line.args(["-m", &format!("{PROVIDER}/{model}")]);
            for name in ["OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_DEFAULT_PLUGINS"] {
                line.set(name, "1");
            }
        }
        (None | Some(_), _) => model(line, "-m", executor),
    }
    line.set("OPENCODE_CONFIG_CONTENT", settings.to_string());
}

fn gemini(line: &mut CommandLine, executor: &Executor, places: &LaunchContext<'_>) {
    let mut settings = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false },
    });
    line.args(["-p", "", "--skip-trust", "--approval-mode", "yolo", "-o", "stream-json"]);
    model(line, "-m", executor);
    if let Some(base_url) = &executor.base_url {
        add(&mut settings, "security", json!({ "auth": { "selectedType": "gemini-api-key" } }));
        line.set("GOOGLE_GEMINI_BASE_URL", base_url);
        key(line, "GEMINI_API_KEY", executor, places);
    }
    let path = write(line, places, "gemini.json", &settings);
    line.set("GEMINI_CLI_SYSTEM_SETTINGS_PATH", path);
}

fn qwen(line: &mut CommandLine, executor: &Executor, places: &LaunchContext<'_>) {
    line.args(["-y", "-o", "stream-json", "--chat-recording", "false"]);
    model(line, "-m", executor);
    if let Some(base_url) = &executor.base_url {
        line.args(["--auth-type", "openai", "--openai-base-url", base_url]);
        key(line, "OPENAI_API_KEY", executor, places);
    }
}

fn copilot(line: &mut CommandLine, executor: &Executor, places: &LaunchContext<'_>) {
    line.args(["--allow-all-tools", "--output-format", "json", "--disable-builtin-mcps", "--no-auto-update"]);
    line.set("COPILOT_AUTO_UPDATE", "false");
    if let Some(model) = &executor.model {
        line.set("COPILOT_MODEL", model);
    }
    if let Some(base_url) = &executor.base_url {
        line.set("COPILOT_OFFLINE", "true");
        line.set("COPILOT_PROVIDER_BASE_URL", base_url);
        key(line, "COPILOT_PROVIDER_API_KEY", executor, places);
    }
}

fn pi(line: &mut CommandLine, executor: &Executor, places: &LaunchContext<'_>) {
    line.args(["-p", "--mode", "json", "--no-session"]);
    line.set("PI_TELEMETRY", "0");
    let Some(base_url) = &executor.base_url else { return model(line, "--model", executor) };
    let models: Vec<Value> = executor.model.iter().map(|model| json!({ "id": model })).collect();
    let settings = json!({ "providers": { PROVIDER: {
        "baseUrl": base_url,
        "api": "openai-completions",
        "apiKey": executor.key_env.clone().unwrap_or_default(),
        "models": models,
    } } });
    line.args(["--offline", "--provider", PROVIDER]);
    model(line, "--model", executor);
    line.set("PI_OFFLINE", "1");
    write(line, places, "pi/models.json", &settings);
    line.set("PI_CODING_AGENT_DIR", places.settings.join("pi"));
}
