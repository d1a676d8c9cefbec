//! The table of Claude Code: every flag and variable that a session of it is started with.

use super::launch::{CommandLine, Places, Ready, agent_schema, key_names};
use super::{Agent, Facts};
use crate::config::Executor;

pub(super) const FACTS: Facts = Facts {
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
const FLAGS: [&str; 13] = [
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
    "--disallowedTools",
    "AskUserQuestion,CronCreate,CronDelete,CronList,ScheduleWakeup,EnterWorktree,ExitWorktree",
    "--json-schema",
];

/// No compaction: a session whose context is full ends. No traffic but to the provider.
const VARIABLES: [(&str, &str); 2] =
    [("DISABLE_AUTO_COMPACT", "1"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")];

pub(super) fn complete(line: &mut CommandLine, executor: &Executor, places: &Places<'_>) {
    line.args(FLAGS);
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

/// Claude Code has no filter for what its commands see, but starts them through a program of one's choice: one that
/// takes the keys away. (Its own scrubbing forces questions, needs more programs, and litters the work tree.)
fn commands(line: &mut CommandLine, executor: &Executor, places: &Places<'_>) {
    let path = places.settings.join("claude-shell");
    // Its value is split at the last ` -`.
    if path.to_string_lossy().contains(" -") {
        return;
    }
    let keys = key_names(Agent::Claude, executor).join(" ");
    let text = format!(
        "#!/bin/sh\n\
         # Starts a command of the agent without the keys of the agent.\n\
         unset {keys} CLAUDE_CODE_SHELL_PREFIX\n\
         case ${{SHELL:-}} in\n\
         */bash | */zsh) exec \"$SHELL\" -c \"$1\" ;;\n\
         *) exec bash -c \"$1\" ;;\n\
         esac\n"
    );
    line.set("CLAUDE_CODE_SHELL_PREFIX", &path);
    line.files.push(Ready { path, text, is_program: true });
}
