//! The command line of Claude Code: every flag and variable of a session.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::NATIVE;
use crate::agents::launch::{
    CommandLine, CommandSandbox, LaunchRequest, RepositoryAccess, SetupFile, agent_schema, key_names,
};
use crate::agents::preset::insert;
use crate::config::{McpServer, McpTransport};
use crate::model::tools::ToolName;

/// A fresh session that prints its events, stores nothing and asks no questions. Without setting sources, neither the
/// repository's nor the user's hooks run, and no CLAUDE.md is read: the prompt is the agent's only instruction. No skills
/// and no commands.
const FLAGS: [&str; 13] = [
    "--print",
    "--output-format",
    "stream-json",
    "--verbose",
    "--permission-mode",
    "bypassPermissions",
    "--permission-prompts",
    "none",
    "--no-session-persistence",
    "--setting-sources",
    "",
    "--strict-mcp-config",
    "--disable-slash-commands",
];

/// Tools that would outlive the session, leave the work tree, wait for a person, or reach other sessions of the user.
const DENIED: [&str; 15] = [
    "AskUserQuestion",
    "CronCreate",
    "CronDelete",
    "CronList",
    "ScheduleWakeup",
    "EnterWorktree",
    "ExitWorktree",
    "ListAgents",
    "SendMessage",
    "Monitor",
    "PushNotification",
    "RemoteTrigger",
    "ReportFindings",
    "Skill",
    "Workflow",
];

/// Tools that use the network.
const WEB_TOOLS: [&str; 2] = ["WebFetch", "WebSearch"];

/// Tools that change files in the agent's own process.
const FILE_TOOLS: &str = "Edit|MultiEdit|NotebookEdit|Write";

/// No auto-compaction: a session whose context is full ends. No traffic except to the provider. No memory, no skills and no
/// instructions besides the prompt; nothing about git, which is the runner's. All tools are offered from the start.
const VARIABLES: [(&str, &str); 10] = [
    ("DISABLE_AUTO_COMPACT", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    ("CLAUDE_CODE_DISABLE_ORG_MEMORY", "1"),
    ("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1"),
    ("CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "1"),
    ("CLAUDE_CODE_DISABLE_WORKFLOWS", "1"),
    ("CLAUDE_CODE_DISABLE_CRON", "1"),
    ("CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS", "1"),
    ("ENABLE_TOOL_SEARCH", "false"),
];

pub(super) fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let executor = request.executor;
    line.args(FLAGS);
    add_permissions(line, request);
    line.arg("--json-schema");
    line.arg(agent_schema(request.context.answer.schema_bytes).unwrap_or_default());
    if let Some(model) = &executor.model {
        line.args(["--model", model]);
    }
    if let Some(effort) = executor.effort {
        line.args(["--effort", effort.as_str()]);
    }
    if let Some(microdollars) = request.context.microdollars {
        let dollars = format!("{}.{:06}", microdollars / 1_000_000, microdollars % 1_000_000);
        line.args(["--max-budget-usd", &dollars]);
    }
    for (name, value) in VARIABLES {
        line.set(name, value);
    }
    if request.context.user.is_root {
        // Without this, it refuses to bypass permissions as root.
        line.set("IS_SANDBOX", "1");
    }
    if let Some(base_url) = executor.base_url.as_deref().or(request.context.recorder) {
        line.set("ANTHROPIC_BASE_URL", base_url);
    }
    if let Some(key) = request.provider_key() {
        line.set("ANTHROPIC_API_KEY", key);
    }
    if let Some(retries) = executor.retries {
        line.set("CLAUDE_CODE_MAX_RETRIES", retries.get().to_string());
    }
    add_command_launcher(line, request);
}

/// Tools, folders and the file hook. `--tools` sets which tools exist; `--allowedTools` would restrict nothing, because
/// permissions are bypassed.
fn add_permissions(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let tools = request.tools;
    if let Some(allowed) = &tools.allow {
        let names: Vec<&str> = allowed.iter().map(ToolName::as_str).collect();
        line.args(["--tools", &names.join(",")]);
    }
    let mut denied: Vec<&str> = DENIED.to_vec();
    if request.has_no_web() {
        denied.extend(WEB_TOOLS);
    }
    if request.context.access == RepositoryAccess::ReadOnly {
        denied.extend(FILE_TOOLS.split('|'));
    }
    denied.extend(tools.deny.iter().map(ToolName::as_str));
    line.args(["--disallowedTools", &denied.join(",")]);
    for folder in &request.context.writable {
        line.arg("--add-dir");
        line.arg(folder);
    }
    line.args(["--settings", &settings(request).to_string()]);
    if !request.executor.mcp.is_empty() {
        let servers: Map<String, Value> = request.mcp_servers().map(mcp_server).collect();
        line.args(["--mcp-config", &json!({ "mcpServers": servers }).to_string()]);
    }
}

/// A server of `--mcp-config`, by name.
fn mcp_server(server: McpServer<'_>) -> (String, Value) {
    let value = match server.transport {
        McpTransport::Url(url) => json!({ "type": "http", "url": url }),
        McpTransport::Program { program, arguments } => {
            json!({ "type": "stdio", "command": program, "args": arguments })
        }
    };
    (server.name.to_owned(), value)
}

/// The session's only settings: it takes no messages of other sessions, and the hook checks its file changes.
fn settings(request: &LaunchRequest<'_>) -> Value {
    let mut settings = json!({ "crossSessionInbound": "refuse" });
    if let Some(CommandSandbox { file_hook, .. }) = &request.context.sandbox {
        // Only exit code 2 blocks the change. Any other failure of the hook, such as a missing program, would allow it.
        let command = shell_words(file_hook) + " || exit 2";
        let hook = json!({ "type": "command", "command": command });
        insert(&mut settings, "hooks", json!({ "PreToolUse": [{ "matcher": FILE_TOOLS, "hooks": [hook] }] }));
    }
    settings
}

/// Makes the agent start its commands through a script that removes the keys and enters the sandbox. Claude Code cannot
/// filter the variables of its commands otherwise: its built-in scrubbing forces permission questions, needs more
/// programs, and leaves files in the work tree.
fn add_command_launcher(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    let shell = CommandShell::of_user(request);
    add_shell(line, request, &shell);
    let path = request.context.settings_dir.join("claude-shell");
    if !can_launch_commands_through(&path) {
        return;
    }
    let keys = key_names(&NATIVE, request.executor).join(" ");
    let shell = shell.start();
    let start = match &request.context.sandbox {
        Some(sandbox) => in_sandbox(&sandbox.command_prefix, &shell),
        None => format!("exec {shell} -c \"$1\"\n"),
    };
    let text = format!(
        "#!/bin/sh\n\
         # Runs a command of the agent without the agent's keys.\n\
         unset {keys} CLAUDE_CODE_SHELL_PREFIX CLAUDE_CODE_SHELL\n\
         {start}"
    );
    line.set("CLAUDE_CODE_SHELL_PREFIX", &path);
    line.files.push(SetupFile { path, text, is_program: true });
}

/// Starts a command in the sandbox. Its words are from the beginning of the session: a socket that is gone by now need not be
/// hidden, and bubblewrap would fail, because it cannot create the file.
fn in_sandbox(prefix: &[OsString], shell: &str) -> String {
    let words = shell_words(prefix);
    format!(
        "command=$1\n\
         set -- {words}\n\
         left=$#\n\
         while [ \"$left\" -gt 0 ]; do\n\
         if [ \"$1 $2\" = \"--ro-bind /dev/null\" ] && [ ! -e \"$3\" ]; then\n\
         shift 3\n\
         left=$((left - 3))\n\
         elif [ \"$1\" = --tmpfs ] && [ ! -d \"$2\" ]; then\n\
         shift 2\n\
         left=$((left - 2))\n\
         else\n\
         set -- \"$@\" \"$1\"\n\
         shift\n\
         left=$((left - 1))\n\
         fi\n\
         done\n\
         exec \"$@\" {shell} -c \"$command\"\n"
    )
}

/// The shell of the agent's commands.
struct CommandShell {
    name: &'static str,
    /// The user's own, if it is this one.
    program: OsString,
}

impl CommandShell {
    /// The user's shell if it is zsh, and else bash: Claude Code supports no other.
    fn of_user(request: &LaunchRequest<'_>) -> Self {
        let users = request.user_variable("SHELL").filter(|shell| Path::new(shell).is_absolute());
        let is_named =
            |name: &str| users.is_some_and(|shell| Path::new(shell).file_name() == Some(name.as_ref()));
        let name = if is_named("zsh") { "zsh" } else { "bash" };
        let program = users.filter(|_| is_named(name)).cloned().unwrap_or_else(|| name.into());
        Self { name, program }
    }

    /// Starts it without start-up files.
    fn start(&self) -> String {
        let options = if self.name == "zsh" { "-f" } else { "--noprofile --norc" };
        format!("{} {options}", shell_words(std::slice::from_ref(&self.program)))
    }
}

/// Makes the agent start a shell that reads none of the user's start-up files. Before its first command, Claude Code starts a login
/// shell, lets it read `.bashrc` or `.zshrc`, and keeps the functions and aliases for all commands.
fn add_shell(line: &mut CommandLine, request: &LaunchRequest<'_>, shell: &CommandShell) {
    let path = request.context.settings_dir.join(format!("claude-{}", shell.name));
    let without_source = if shell.name == "zsh" { "disable source ." } else { "enable -n source ." };
    let start = shell.start();
    let text = format!(
        "#!/bin/sh\n\
         # Starts the shell without the user's start-up files.\n\
         if [ \"${{2:-}}\" = -l ]; then\n\
         shift 2\n\
         set -- -c \"{without_source}; $1\"\n\
         fi\n\
         exec {start} \"$@\"\n"
    );
    line.set("CLAUDE_CODE_SHELL", &path);
    line.files.push(SetupFile { path, text, is_program: true });
}

/// Whether Claude Code can start its commands through a program at this path. It splits the path at the last ` -`, and
/// treats it as text.
pub fn can_launch_commands_through(path: &Path) -> bool {
    path.to_str().is_some_and(|path| !path.contains(" -"))
}

/// Arguments quoted for a shell.
fn shell_words(words: &[OsString]) -> String {
    let quoted = words.iter().map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}
