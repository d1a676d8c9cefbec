//! The command line of Codex: every flag, setting and variable of a session.

use std::path::{Path, PathBuf};

use super::{NATIVE, SWITCHES, WEB_SEARCH_OFF};
use crate::agents::launch::{CommandLine, LaunchRequest, RepositoryAccess, key_names};
use crate::config::SandboxMode;
use crate::model::tools::ToolName;

/// A fresh session that prints its events, stores nothing, and ignores settings and rules of the user and of the
/// repository. Without the two disabled features, Codex contacts its own hosts for plugins, and waits forever for a
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

/// No metrics. No AGENTS.md, because the prompt is the agent's only instruction. Commands see the agent's variables,
/// except those that [`hide_variables`] excludes.
const SETTINGS: [(&str, &str); 4] = [
    ("analytics.enabled", "false"),
    ("project_doc_max_bytes", "0"),
    ("shell_environment_policy.inherit", "\"all\""),
    ("shell_environment_policy.ignore_default_excludes", "true"),
];

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
    for (key, value) in SETTINGS.into_iter().chain(COMPACTION_HOOK) {
        setting(line, key, value);
    }
    if let Some(effort) = executor.effort {
        setting(line, "model_reasoning_effort", effort.as_str());
    }
    if let Some(tokens) = executor.context_budget_tokens {
        setting(line, "model_auto_compact_token_limit", &tokens.get().to_string());
    }
    add_provider(line, request);
    hide_variables(line, request);
    line.arg("--output-schema");
    line.arg(&request.context.schema);
    line.arg("--output-last-message");
    line.arg(&request.context.answer);
    line.args(["-"]);
    line.set(CONTEXT_FULL, &request.context.context_full);
    move_temporary_folder(line, request);
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
        if is_denied || needs_network && request.tools.network == Some(false) {
            line.args(switch.off);
        }
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

/// Moves TMPDIR if CODEX_HOME lies below it: Codex would make no sandbox then, and every command would fail.
fn move_temporary_folder(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let path = |name: &str| request.user_variable(name).map(PathBuf::from);
    let home = path(NATIVE.login.home_variable)
        .or_else(|| path("HOME").map(|home| home.join(NATIVE.login.home_dir)));
    let temporary = path("TMPDIR").unwrap_or_else(|| Path::new("/tmp").to_owned());
    if let Some(home) = home.filter(|home| home.starts_with(&temporary)) {
        let folder = home.join("runner-tmp");
        line.set("TMPDIR", &folder);
        line.folders.push(folder);
    }
}

/// A TOML string. JSON's form is the same, except for one character that TOML wants escaped.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
