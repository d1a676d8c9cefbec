//! The command line of Codex: every flag, setting and variable of a session.

use std::path::{Path, PathBuf};

use super::{NATIVE, SWITCHES, WEB_SEARCH_OFF};
use crate::agents::launch::{CommandLine, LaunchRequest, RepositoryAccess, SetupLink, key_names};
use crate::config::{McpServer, McpTransport, SandboxMode};
use crate::model::tools::ToolName;

/// A fresh session that prints its events, and ignores settings and rules of the user and of the repository. It records
/// itself in its own home, from which the runner reads its usage.
const FLAGS: [&str; 7] =
    ["exec", "--json", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules", "--color", "never"];

/// Features that bring something into the session besides the prompt (memories, plugins, the user's apps and connectors,
/// skills, the functions of the user's shell), that reach beyond the work tree (browsers, other programs), or that wait for a person or for time. Without the
/// last one, Codex waits forever for a provider that refuses the connection.
///
/// They are settings and not `--disable`, which fails for a feature that another version of Codex does not know.
const FEATURES_OFF: [&str; 32] = [
    "apps",
    "auth_elicitation",
    "browser_annotation_api",
    "browser_use",
    "browser_use_external",
    "browser_use_full_cdp_access",
    "computer_use",
    "daemon_auto_start",
    "default_mode_request_user_input",
    "goals",
    "image_generation",
    "in_app_browser",
    "in_app_chat",
    "in_app_local_automation",
    "in_app_updates",
    "memories",
    "multi_agent",
    "plugin_discovery_prefetch",
    "plugin_sharing",
    "plugins",
    "remote_plugin",
    "request_permissions_tool",
    "send_message_to_user_async",
    "shell_snapshot",
    "shell_snapshot_v2",
    "skill_mcp_dependency_install",
    "skill_search",
    "sleep_tool",
    "tool_call_mcp_elicitation",
    "tool_suggest",
    "workspace_dependencies",
    "unbounded_connection_retries",
];

/// No metrics. No AGENTS.md and no skills, because the prompt is the agent's only instruction. No sub-agents and no
/// questions, which some models get without the features above. Commands run in a shell that reads no profile, which would
/// reset PATH, and see the agent's variables except those that [`hide_variables`] excludes.
const SETTINGS: [(&str, &str); 8] = [
    ("analytics.enabled", "false"),
    ("project_doc_max_bytes", "0"),
    ("skills.include_instructions", "false"),
    ("agents.enabled", "false"),
    ("tools.experimental_request_user_input.enabled", "false"),
    ("allow_login_shell", "false"),
    ("shell_environment_policy.inherit", "\"all\""),
    ("shell_environment_policy.ignore_default_excludes", "true"),
];

/// The session's own CODEX_HOME, in the session's private folder.
const HOME: &str = "codex";

/// Names the file that the hook below writes to.
const CONTEXT_FULL: &str = "RUNNER_CONTEXT_FULL";

/// A hook that ends the session before auto-compaction, which cannot be switched off: the runner prefers a fresh
/// session to a compacted one. Codex runs only hooks that are trusted by hash, so the hash of exactly this hook is
/// passed along; trusting all hooks would also run those in the user's home.
const COMPACTION_HOOK: [(&str, &str); 2] = [
    (
        "hooks.PreCompact",
        r#"[{hooks=[{type="command",command="cat > \"$RUNNER_CONTEXT_FULL\"; echo '{\"continue\":false}'"}]}]"#,
    ),
    (
        "hooks.state",
        r#"{"/<session-flags>/config.toml:pre_compact:0:0"={trusted_hash="sha256:025a90bf7f50d537157265675530d2163224276d5a5ae1fca95cf5d2a7eea50d"}}"#,
    ),
];

/// The name that Codex gets for the provider in `base_url`.
const PROVIDER: &str = "runner";

pub(super) fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let executor = request.executor;
    line.args(FLAGS);
    add_sandbox(line, request);
    add_denied_tools(line, request);
    if let Some(model) = &executor.model {
        line.args(["--model", model]);
    }
    for feature in FEATURES_OFF {
        setting(line, &format!("features.{feature}"), "false");
    }
    for (key, value) in SETTINGS.into_iter().chain(COMPACTION_HOOK) {
        setting(line, key, value);
    }
    if let Some(effort) = executor.effort {
        setting(line, "model_reasoning_effort", effort.as_str());
    }
    if let Some(tokens) = executor.context_budget_tokens {
        setting(line, "model_auto_compact_token_limit", &tokens.get().to_string());
    }
    add_mcp_servers(line, request);
    add_provider(line, request);
    add_recorder(line, request);
    hide_variables(line, request);
    line.arg("--output-schema");
    line.arg(&request.context.answer.schema);
    line.arg("--output-last-message");
    line.arg(&request.context.answer.path);
    line.args(["-"]);
    line.set(CONTEXT_FULL, &request.context.context_full);
    use_own_home(line, request);
}

/// Codex's built-in sandbox, unless the user switched it off.
fn add_sandbox(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    if request.executor.sandbox == SandboxMode::Off {
        return line.args(["--sandbox", "danger-full-access"]);
    }
    if request.context.access == RepositoryAccess::ReadOnly {
        return line.args(["--sandbox", "read-only"]);
    }
    line.args(["--sandbox", "workspace-write"]);
    if let Some(network) = request.tools.network {
        setting(line, "sandbox_workspace_write.network_access", if network { "true" } else { "false" });
    }
    let writable = &request.context.writable;
    if !writable.is_empty() {
        let roots: Vec<String> = writable.iter().map(|folder| toml_text(&folder.to_string_lossy())).collect();
        setting(line, "sandbox_workspace_write.writable_roots", &format!("[{}]", roots.join(",")));
    }
}

/// Switches denied tools off. Web search goes through the provider, so it is also off without network.
fn add_denied_tools(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    for switch in &SWITCHES {
        let is_denied = request.tools.deny.iter().map(ToolName::as_str).any(|name| name == switch.tool);
        let needs_network = switch.off == WEB_SEARCH_OFF;
        if is_denied || needs_network && request.has_no_web() {
            line.args(switch.off);
        }
    }
}

fn add_mcp_servers(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    for McpServer { name, transport } in request.mcp_servers() {
        let server = match transport {
            McpTransport::Url(url) => format!("{{url={}}}", toml_text(url)),
            McpTransport::Program { program, arguments } => {
                let arguments: Vec<String> = arguments.into_iter().map(toml_text).collect();
                format!("{{command={},args=[{}]}}", toml_text(program), arguments.join(","))
            }
        };
        setting(line, &format!("mcp_servers.{name}"), &server);
    }
}

fn setting(line: &mut CommandLine, key: &str, value: &str) {
    line.args(["-c", &format!("{key}={value}")]);
}

/// A provider other than Codex's own. It must speak the Responses API, the only one that Codex still has.
fn add_provider(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let executor = request.executor;
    let Some(base_url) = &executor.base_url else { return };
    let mut fields = vec![
        format!("name={}", toml_text(PROVIDER)),
        format!("base_url={}", toml_text(base_url)),
        "wire_api=\"responses\"".to_owned(),
    ];
    if let Some(name) = &executor.key_env {
        fields.push(format!("env_key={}", toml_text(name)));
    }
    if let Some(retries) = executor.retries {
        fields.push(format!("request_max_retries={0},stream_max_retries={0}", retries.get()));
    }
    setting(line, "model_provider", &toml_text(PROVIDER));
    setting(line, &format!("model_providers.{PROVIDER}"), &format!("{{{}}}", fields.join(",")));
}

/// Features that would keep requests from being recorded as text.
const UNRECORDED: [&str; 3] =
    ["enable_request_compression", "responses_websockets", "responses_websockets_v2"];

/// Points Codex's own provider to the recorder, whatever the login is, and makes requests readable.
fn add_recorder(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let Some(url) = request.context.recorder else { return };
    for feature in UNRECORDED {
        setting(line, &format!("features.{feature}"), "false");
    }
    if request.executor.base_url.is_none() {
        setting(line, "openai_base_url", &toml_text(url));
    }
}

/// Hides keys and the runner's own variables from the agent's commands.
///
/// Codex runs in UTC, because it reports the end of a usage limit on the local clock without naming the time zone. Its
/// commands get the user's time zone back.
fn hide_variables(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let mut hidden: Vec<String> = key_names(&NATIVE, request.executor).into_iter().map(toml_text).collect();
    hidden.extend([CONTEXT_FULL, "TZ"].map(toml_text));
    setting(line, "shell_environment_policy.exclude", &format!("[{}]", hidden.join(",")));
    let zone = request.user_variable("TZ").and_then(|zone| zone.to_str());
    if let Some(zone) = zone {
        setting(line, "shell_environment_policy.set", &format!("{{TZ={}}}", toml_text(zone)));
    }
    line.set("TZ", "UTC");
}

/// Gives the session a CODEX_HOME of its own. Instructions, skills, hooks and memories in the user's are read whatever the
/// flags say. The login is a link, so that Codex renews it in the user's home. A provider of the configuration needs none.
///
/// Moves TMPDIR if the new home lies below it: Codex would make no sandbox then, and every command would fail.
fn use_own_home(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let path = |name: &str| request.user_variable(name).map(PathBuf::from);
    let login = &NATIVE.login;
    let users_home = path(login.home_variable).or_else(|| path("HOME").map(|home| home.join(login.home_dir)));
    let home = request.context.settings_dir.join(HOME);
    if let Some(users_home) = users_home.filter(|_| request.executor.base_url.is_none()) {
        line.links.push(SetupLink { path: home.join(login.file), target: users_home.join(login.file) });
    }
    let temporary = path("TMPDIR").unwrap_or_else(|| Path::new("/tmp").to_owned());
    if home.starts_with(&temporary) {
        let folder = home.join("runner-tmp");
        line.set("TMPDIR", &folder);
        line.folders.push(folder);
    }
    line.set(login.home_variable, &home);
    line.usage_logs = Some(home.join("sessions"));
    line.folders.push(home);
}

/// A TOML string. JSON's form is the same, except for one character that TOML wants escaped.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
