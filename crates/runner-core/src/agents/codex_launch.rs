//! The table of Codex: every flag, setting and variable that a session of it is started with.

use std::path::{Path, PathBuf};

use super::launch::{CommandLine, LaunchContext, key_names};
use super::{AgentFacts, AgentKind};
use crate::config::{Executor, SandboxMode};
use crate::model::tools::{ToolName, Tools};

pub(super) const FACTS: AgentFacts = AgentFacts {
    program: "codex",
    package: "@openai/codex",
    tested: &["0.166.0"],
    login: "codex login",
    keys: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    variables: &[],
    home: ("CODEX_HOME", ".codex"),
    login_file: "auth.json",
};

/// A fresh session that prints its events, keeps nothing, and takes no settings or rules of the user or of the
/// repository. Without the two features switched off it asks hosts of its own for plugins, and waits for ever for a
/// provider that refuses the connection.
const FLAGS: [&str; 12] = [
    "exec",
    "--json",
    "--ephemeral",
    "--skip-git-repo-check",
    "--ignore-user-config",
    "--ignore-rules",
    "--color",
    "never",
    "--disable",
    "plugins",
    "--disable",
    "unbounded_connection_retries",
];

/// No metrics; no AGENTS.md, because the prompt is the whole of what an agent is told; commands see the agent's
/// variables, but for those that are taken out below.
const SETTINGS: [(&str, &str); 4] = [
    ("analytics.enabled", "false"),
    ("project_doc_max_bytes", "0"),
    ("shell_environment_policy.inherit", "\"all\""),
    ("shell_environment_policy.ignore_default_excludes", "true"),
];

/// The file that the hook below writes to.
const CONTEXT_FULL: &str = "RUNNER_CONTEXT_FULL";

/// Compaction cannot be switched off, but a hook before it can end the session, which is what a run of fresh
/// sessions wants. Codex runs no hook that is not trusted by its fingerprint, so the fingerprint of exactly this hook
/// goes with it; trusting all hooks instead would run those in the user's home, too.
const HOOK: [(&str, &str); 2] = [
    (
        "hooks.PreCompact",
        r#"[{hooks=[{type="command",command="cat > \"$RUNNER_CONTEXT_FULL\"; echo '{\"continue\":false}'"}]}]"#,
    ),
    (
        "hooks.state",
        r#"{"/<session-flags>/config.toml:pre_compact:0:0"={trusted_hash="sha256:025a90bf7f50d537157265675530d2163224276d5a5ae1fca95cf5d2a7eea50d"}}"#,
    ),
];

/// The name of the provider that stands in the configuration.
const PROVIDER: &str = "runner";

/// A tool that Codex can do without, by the name under which tools.json denies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodexToolSwitch {
    /// The tool.
    pub tool: &'static str,
    off: [&'static str; 2],
}

/// All of them. The others cannot be taken from it.
pub const SWITCHES: [CodexToolSwitch; 5] = [
    CodexToolSwitch { tool: "shell", off: ["--disable", "shell_tool"] },
    CodexToolSwitch { tool: "web_search", off: NO_SEARCH },
    CodexToolSwitch { tool: "view_image", off: ["--disable", "view_image"] },
    CodexToolSwitch { tool: "multi_agent", off: ["--disable", "multi_agent"] },
    CodexToolSwitch { tool: "goals", off: ["--disable", "goals"] },
];

const NO_SEARCH: [&str; 2] = ["-c", "web_search=\"disabled\""];

pub(super) fn complete(
    line: &mut CommandLine,
    executor: &Executor,
    tools: &Tools,
    places: &LaunchContext<'_>,
) {
    line.args(FLAGS);
    confinement(line, executor, tools, places);
    denied(line, tools);
    if let Some(model) = &executor.model {
        line.args(["--model", model]);
    }
    for (key, value) in SETTINGS.into_iter().chain(HOOK) {
        setting(line, key, value);
    }
    if let Some(effort) = executor.effort {
        setting(line, "model_reasoning_effort", effort.as_str());
    }
    if let Some(tokens) = executor.context_budget_tokens {
        setting(line, "model_auto_compact_token_limit", &tokens.get().to_string());
    }
    provider(line, executor);
    commands(line, executor, places);
    line.arg("--output-schema");
    line.arg(&places.schema);
    line.arg("--output-last-message");
    line.arg(&places.answer);
    line.args(["-"]);
    line.set(CONTEXT_FULL, &places.context_full);
    temporary_folder(line, places);
}

/// Codex's own sandbox, unless the user wants none.
fn confinement(line: &mut CommandLine, executor: &Executor, tools: &Tools, places: &LaunchContext<'_>) {
    if executor.sandbox == SandboxMode::Off {
        return line.args(["--sandbox", "danger-full-access"]);
    }
    line.args(["--sandbox", "workspace-write"]);
    if let Some(network) = tools.network {
        setting(line, "sandbox_workspace_write.network_access", if network { "true" } else { "false" });
    }
    if !places.writable.is_empty() {
        let roots: Vec<String> =
            places.writable.iter().map(|folder| toml_text(&folder.to_string_lossy())).collect();
        setting(line, "sandbox_workspace_write.writable_roots", &format!("[{}]", roots.join(",")));
    }
}

/// What is switched off. A search goes out through the provider, so it goes with the network.
fn denied(line: &mut CommandLine, tools: &Tools) {
    let is_off = |switch: &&CodexToolSwitch| {
        let without_network = tools.network == Some(false) && switch.off == NO_SEARCH;
        without_network || tools.deny.iter().map(ToolName::as_str).any(|name| name == switch.tool)
    };
    SWITCHES.iter().filter(is_off).for_each(|switch| line.args(switch.off));
}

fn setting(line: &mut CommandLine, key: &str, value: &str) {
    line.args(["-c", &format!("{key}={value}")]);
}

/// Another provider than Codex's own. It speaks the Responses API; nothing else is left in Codex.
fn provider(line: &mut CommandLine, executor: &Executor) {
    let Some(base_url) = &executor.base_url else { return };
    let mut fields = vec![
        format!("name={}", toml_text(PROVIDER)),
        format!("base_url={}", toml_text(base_url)),
        "wire_api=\"responses\"".to_owned(),
    ];
    fields.extend(executor.key_env.iter().map(|name| format!("env_key={}", toml_text(name))));
    fields.extend(
        executor
            .retries
            .map(|retries| format!("request_max_retries={0},stream_max_retries={0}", retries.get())),
    );
    setting(line, "model_provider", &toml_text(PROVIDER));
    setting(line, &format!("model_providers.{PROVIDER}"), &format!("{{{}}}", fields.join(",")));
}

/// What the agent's commands do not see: keys, and the time zone that is the runner's.
///
/// Codex names the end of a limit on the clock of its own zone, without saying which. In UTC it can be understood.
fn commands(line: &mut CommandLine, executor: &Executor, places: &LaunchContext<'_>) {
    let hidden = key_names(AgentKind::Codex, executor).into_iter().chain([CONTEXT_FULL, "TZ"]);
    let hidden: Vec<String> = hidden.map(toml_text).collect();
    setting(line, "shell_environment_policy.exclude", &format!("[{}]", hidden.join(",")));
    let zone = places.user.get(std::ffi::OsStr::new("TZ")).and_then(|zone| zone.to_str());
    if let Some(zone) = zone {
        setting(line, "shell_environment_policy.set", &format!("{{TZ={}}}", toml_text(zone)));
    }
    line.set("TZ", "UTC");
}

/// With its home below the folder for temporary files, Codex makes no sandbox and every command fails. Then there
/// is another such folder.
fn temporary_folder(line: &mut CommandLine, places: &LaunchContext<'_>) {
    let of = |name: &str| places.user.get(std::ffi::OsStr::new(name)).map(PathBuf::from);
    let home = of("CODEX_HOME").or_else(|| of("HOME").map(|home| home.join(FACTS.home.1)));
    let temporary = of("TMPDIR").unwrap_or_else(|| Path::new("/tmp").to_owned());
    if let Some(home) = home.filter(|home| home.starts_with(&temporary)) {
        let folder = home.join("runner-tmp");
        line.set("TMPDIR", &folder);
        line.folders.push(folder);
    }
}

/// A text as TOML has it. JSON's form is the same, but for one character that TOML wants written out.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
