//! The table of Claude Code: every flag and variable that a session of it is started with.

use std::ffi::OsString;
use std::path::Path;

use serde_json::json;

use super::launch::{CommandLine, CommandSandbox, LaunchContext, SetupFile, agent_schema, key_names};
use super::{AgentFacts, AgentKind};
use crate::config::Executor;
use crate::model::tools::{ToolName, Tools};

pub(super) const FACTS: AgentFacts = AgentFacts {
    program: "claude",
    package: "@anthropic-ai/claude-code",
    tested: &["2.1.197"],
    login: "claude auth login",
    keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    variables: &["ANTHROPIC_BASE_URL"],
    home: ("CLAUDE_CONFIG_DIR", ".claude"),
    login_file: ".credentials.json",
};

/// A fresh session that prints its events, keeps nothing and asks nobody. Without setting sources neither the
/// repository's nor the user's hooks run, and no CLAUDE.md is read: the prompt is the whole of what an agent is
/// told. The tools that are denied would outlive the session, leave the work tree, or wait for a person.
const FLAGS: [&str; 10] = [
    "--print",
    "--output-format",
    "stream-json",
    "--verbose",
    "--permission-mode",
    "bypassPermissions",
    "--no-session-persistence",
    "--setting-sources",
    "",
    "--strict-mcp-config",
];

const DENIED: [&str; 7] = [
    "AskUserQuestion",
    "CronCreate",
    "CronDelete",
    "CronList",
    "ScheduleWakeup",
    "EnterWorktree",
    "ExitWorktree",
];

/// The tools that use the network.
const WEB: [&str; 2] = ["WebFetch", "WebSearch"];

/// The tools that change files in its own process.
const FILE_TOOLS: &str = "Edit|MultiEdit|NotebookEdit|Write";

/// No compaction: a session whose context is full ends. No traffic but to the provider.
const VARIABLES: [(&str, &str); 2] =
    [("DISABLE_AUTO_COMPACT", "1"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];

pub(super) fn complete(
    line: &mut CommandLine,
    executor: &Executor,
    tools: &Tools,
    places: &LaunchContext<'_>,
) {
    line.args(FLAGS);
    permissions(line, tools, places);
    line.arg("--json-schema");
    line.arg(agent_schema(places.schema_bytes).unwrap_or_default());
    if let Some(model) = &executor.model {
        line.args(["--model", model]);
    }
    if let Some(effort) = executor.effort {
        line.args(["--effort", effort.as_str()]);
    }
    for (name, value) in VARIABLES {
        line.set(name, value);
    }
    if places.is_root {
        // Without this word it refuses to work without questions as root.
        line.set("IS_SANDBOX", "1");
    }
    if let Some(base_url) = &executor.base_url {
        line.set("ANTHROPIC_BASE_URL", base_url);
    }
    let key = executor.key_env.as_ref().and_then(|name| places.user.get(std::ffi::OsStr::new(name)));
    if let Some(key) = key.cloned() {
        line.set("ANTHROPIC_API_KEY", key);
    }
    if let Some(retries) = executor.retries {
        line.set("CLAUDE_CODE_MAX_RETRIES", retries.get().to_string());
    }
    commands(line, executor, places);
}

/// What it may use. The list of allowed tools is the whole of what it is given; with questions switched off, the flag
/// of that name would allow nothing less.
fn permissions(line: &mut CommandLine, tools: &Tools, places: &LaunchContext<'_>) {
    if let Some(allowed) = &tools.allow {
        let names: Vec<&str> = allowed.iter().map(ToolName::as_str).collect();
        line.args(["--tools", &names.join(",")]);
    }
    let web: &[&str] = if tools.network == Some(false) { &WEB } else { &[] };
    let denied: Vec<&str> =
        DENIED.iter().chain(web).copied().chain(tools.deny.iter().map(ToolName::as_str)).collect();
    line.args(["--disallowedTools", &denied.join(",")]);
    for folder in &places.writable {
        line.arg("--add-dir");
        line.arg(folder);
    }
    if let Some(CommandSandbox { before_files, .. }) = &places.fence {
        // Any other failure of a hook, such as its program being gone, would let the change through.
        let command = shell_words(before_files) + " || exit 2";
        let hook = json!({ "type": "command", "command": command });
        let settings = json!({ "hooks": { "PreToolUse": [{ "matcher": FILE_TOOLS, "hooks": [hook] }] } });
        line.args(["--settings", &settings.to_string()]);
    }
}

/// Claude Code has no filter for what its commands see, but starts them through a program of one's choice: one that
/// takes the keys away, and puts the command into the sandbox. (Its own scrubbing forces questions, needs more programs,
/// and litters the work tree.)
fn commands(line: &mut CommandLine, executor: &Executor, places: &LaunchContext<'_>) {
    let path = places.settings.join("claude-shell");
    if !can_be_started_through(&path) {
        return;
    }
    let keys = key_names(AgentKind::Claude, executor).join(" ");
    let fence =
        places.fence.as_ref().map(|fence| shell_words(&fence.around_commands) + " ").unwrap_or_default();
    let text = format!(
        "#!/bin/sh\n\
         # Starts a command of the agent without the keys of the agent.\n\
         unset {keys} CLAUDE_CODE_SHELL_PREFIX\n\
         case ${{SHELL:-}} in\n\
         */bash | */zsh) exec {fence}\"$SHELL\" -c \"$1\" ;;\n\
         *) exec {fence}bash -c \"$1\" ;;\n\
         esac\n"
    );
    line.set("CLAUDE_CODE_SHELL_PREFIX", &path);
    line.files.push(SetupFile { path, text, is_program: true });
}

/// Claude Code splits the name of such a program at the last ` -`, and takes it for text.
pub fn can_be_started_through(path: &Path) -> bool {
    path.to_str().is_some_and(|path| !path.contains(" -"))
}

/// Words as a shell reads them back.
fn shell_words(words: &[OsString]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}
