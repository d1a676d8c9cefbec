//! How an agent is started: a pure function from configuration, places and the user's variables to a command line.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde_json::Value;

use super::{AgentKind, claude_launch, codex_launch};
use crate::config::Executor;
use crate::model::tools::Tools;

/// Variables by name.
pub type Variables = BTreeMap<OsString, OsString>;

/// Variables of the user that every agent sees, so that programs, caches and proxies work as in their own shell. A
/// star at the end stands for any rest. Everything else stays out: what is not there cannot leak.
const INHERITED: [&str; 42] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "NIX_PATH",
    "NIX_PROFILES",
    "DEVELOPER_DIR",
];

/// Where a session finds its things, and who it runs as.
#[derive(Clone, Debug)]
pub struct LaunchContext<'a> {
    /// The file for the answer; nothing is there yet.
    pub answer: PathBuf,
    /// The schema of the answer, as the run has pinned it.
    pub schema: PathBuf,
    /// What is in it.
    pub schema_bytes: &'a [u8],
    /// A file that appears when the agent was stopped because its context is full.
    pub context_full: PathBuf,
    /// A folder for settings that the session alone needs.
    pub settings: PathBuf,
    /// Folders outside of the repository that may be written to.
    pub writable: Vec<PathBuf>,
    /// What keeps an agent in that has no sandbox of its own, if anything does.
    pub fence: Option<CommandSandbox>,
    /// The user's variables.
    pub user: &'a Variables,
    /// Whether the runner is root.
    pub is_root: bool,
}

/// How an agent is kept in whose own process must stay outside, because its login lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSandbox {
    /// The words before a command of the agent's that start it in a sandbox.
    pub around_commands: Vec<OsString>,
    /// A command that is asked before a file is changed, and refuses what lies outside.
    pub before_files: Vec<OsString>,
}

/// A program's arguments and variables, and what must lie ready for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// After the program itself.
    pub arguments: Vec<OsString>,
    /// All variables, but for those of the runner.
    pub environment: Variables,
    /// Files to write first.
    pub files: Vec<SetupFile>,
    /// Folders to make first.
    pub folders: Vec<PathBuf>,
}

/// A file that must lie ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupFile {
    /// Where.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
    /// Whether it is a program.
    pub is_program: bool,
}

impl CommandLine {
    pub(super) fn arg(&mut self, argument: impl Into<OsString>) {
        self.arguments.push(argument.into());
    }

    pub(super) fn args<'w>(&mut self, arguments: impl IntoIterator<Item = &'w str>) {
        self.arguments.extend(arguments.into_iter().map(OsString::from));
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.insert(name.into(), value.into());
    }
}

/// The command line of an agent's session. The prompt comes by standard input.
pub fn command_line(
    agent: AgentKind,
    executor: &Executor,
    tools: &Tools,
    places: &LaunchContext<'_>,
) -> CommandLine {
    let mut line =
        CommandLine { environment: inherited(agent, executor, places.user), ..CommandLine::default() };
    for (name, value) in
        [("TERM", "dumb"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "false"), ("GIT_PAGER", "cat")]
    {
        line.set(name, value);
    }
    match agent {
        AgentKind::Codex => codex_launch::complete(&mut line, executor, tools, places),
        AgentKind::Claude => claude_launch::complete(&mut line, executor, tools, places),
    }
    line
}

/// What an agent sees of the user's variables.
fn inherited(agent: AgentKind, executor: &Executor, user: &Variables) -> Variables {
    let facts = agent.facts();
    let own = facts.keys.iter().chain(facts.variables).chain([&facts.home.0]).copied();
    let asked = executor.env_inherit.iter().map(String::as_str).chain(executor.key_env.as_deref());
    let names: Vec<&str> = INHERITED.into_iter().chain(own).chain(asked).collect();
    let is_meant =
        |name: &OsStr| name.to_str().is_some_and(|name| names.iter().any(|pattern| is_named(name, pattern)));
    user.iter()
        .filter(|(name, _)| is_meant(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn is_named(name: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(name == pattern, |beginning| name.starts_with(beginning))
}

/// Every variable that holds a key of this session.
pub(super) fn key_names(agent: AgentKind, executor: &Executor) -> Vec<&str> {
    let mut names = agent.facts().keys.to_vec();
    names.extend(executor.key_env.as_deref());
    names.sort_unstable();
    names.dedup();
    names
}

/// The schema as agents take it: on one line, and without the name of its dialect, which Claude Code does not
/// know and which makes it pass over the whole schema without a word.
pub fn agent_schema(pinned: &[u8]) -> Option<String> {
    let mut schema: Value = serde_json::from_slice(pinned).ok()?;
    schema.as_object_mut()?.shift_remove("$schema");
    Some(schema.to_string())
}
