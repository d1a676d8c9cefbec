//! The command line of a session: a pure function from configuration, paths and the user's variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde_json::Value;

use super::{AgentSpec, NativeAgent, PresetLogin};
use crate::config::{Executor, McpServer, NetworkAccess};
use crate::model::tools::Tools;

/// Environment variables by name.
pub type Variables = BTreeMap<OsString, OsString>;

/// Variables of the user that every agent of the registry sees, so that programs, caches and proxies work as in the user's
/// shell. `*` at the end matches any suffix. All others are withheld: a variable that is not there cannot leak.
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

/// Variables that keep programs from prompting, paging or drawing. A bash of the first level reads the user's `.bashrc` even
/// for a single command, if its input is a socket.
const UNATTENDED: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("SHLVL", "2"),
];

/// The folder in which zsh looks for its start-up files; it reads `.zshenv` for every command.
const ZSH_FOLDER: &str = "ZDOTDIR";

/// The paths and permissions of one session.
#[derive(Clone, Debug)]
pub struct LaunchContext<'a> {
    pub answer: AnswerFiles<'a>,
    /// A file that appears if the agent was stopped because its context was full.
    pub context_full: PathBuf,
    /// The session's private folder, for settings files.
    pub settings_dir: PathBuf,
    /// Folders outside the repository that the session may write to.
    pub writable: Vec<PathBuf>,
    /// Whether the session may change the repository.
    pub access: RepositoryAccess,
    /// The sandbox around commands, for an agent without one of its own.
    pub sandbox: Option<CommandSandbox>,
    /// The millionths of a dollar that the session may cost.
    pub microdollars: Option<u64>,
    pub user: LaunchUser<'a>,
    /// The address of the recorder in the place of the provider's, if requests are recorded.
    pub recorder: Option<&'a str>,
}

/// The user whose login a session has.
#[derive(Clone, Copy, Debug)]
pub struct LaunchUser<'a> {
    pub variables: &'a Variables,
    /// The content of [`PresetLogin::read_files`], as far as they exist.
    ///
    /// [`PresetLogin::read_files`]: super::PresetLogin::read_files
    pub login_files: &'a BTreeMap<&'static str, String>,
    /// Whether the runner runs as root.
    pub is_root: bool,
}

/// The answer of a session, and what it must look like.
#[derive(Clone, Debug)]
pub struct AnswerFiles<'a> {
    /// Where a native agent writes its answer. Does not exist yet.
    pub path: PathBuf,
    /// The schema of the answer that the run has pinned.
    pub schema: PathBuf,
    /// The content of that file.
    pub schema_bytes: &'a [u8],
}

/// Whether a session may change the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositoryAccess {
    Writable,
    ReadOnly,
}

/// The sandbox of an agent whose own process must stay outside, because it renews its login there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSandbox {
    /// Arguments to put before each command so that it runs sandboxed.
    pub command_prefix: Vec<OsString>,
    /// A command to run before each file change. It fails for a path outside the repository.
    pub file_hook: Vec<OsString>,
}

/// Everything a command line depends on.
pub(super) struct LaunchRequest<'a> {
    pub(super) executor: &'a Executor,
    pub(super) tools: &'a Tools,
    pub(super) context: &'a LaunchContext<'a>,
}

impl LaunchRequest<'_> {
    /// The user's variable of this name.
    pub(super) fn user_variable(&self, name: &str) -> Option<&OsString> {
        self.context.user.variables.get(OsStr::new(name))
    }

    /// The content of one of the user's login files.
    pub(super) fn login_file(&self, path: &str) -> Option<&str> {
        self.context.user.login_files.get(path).map(String::as_str)
    }

    /// Where files or folders of a program are.
    pub(super) fn places(&self, login: &PresetLogin, paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().filter_map(|path| login.place(path, &|name| self.user_variable(name).cloned())).collect()
    }

    /// Whether the agent's web tools are off: it has no network, or only for package managers.
    pub(super) fn has_no_web(&self) -> bool {
        self.tools.network == Some(false) || self.executor.network == Some(NetworkAccess::Registries)
    }

    /// The MCP servers of the configuration.
    pub(super) fn mcp_servers(&self) -> impl Iterator<Item = McpServer<'_>> {
        self.executor.mcp.iter().filter_map(|entry| McpServer::parse(entry))
    }

    /// The key that `key_env` names, if the user has set it.
    pub(super) fn provider_key(&self) -> Option<OsString> {
        self.user_variable(self.executor.key_env.as_deref()?).cloned()
    }
}

/// Arguments and environment of a program, and the files to write before it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The arguments, without the program.
    pub arguments: Vec<OsString>,
    /// The environment, without the `RUNNER_…` variables.
    pub environment: Variables,
    /// Files to write before the start.
    pub files: Vec<SetupFile>,
    /// Folders to create before the start.
    pub folders: Vec<PathBuf>,
    /// Links to make before the start, as far as their targets exist.
    pub links: Vec<SetupLink>,
    /// Folders of the user in whose place a sandboxed session has empty ones.
    pub state_folders: Vec<PathBuf>,
    /// Files of the user that a sandboxed session may write to: the login that the program renews.
    pub login_files: Vec<PathBuf>,
    /// A folder in which the agent records its usage while it works, as lines of JSON.
    pub usage_logs: Option<PathBuf>,
}

/// A file to write before the agent starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupFile {
    pub path: PathBuf,
    pub text: String,
    /// Whether to make it executable.
    pub is_program: bool,
}

/// A link to make before the agent starts, to a file of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupLink {
    pub path: PathBuf,
    pub target: PathBuf,
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

/// The environment of a session: a selection of the user's variables, and those of unattended work. Shells find none of the
/// user's start-up files, which export keys.
pub(super) fn session_environment(
    agent: &AgentSpec,
    executor: &Executor,
    context: &LaunchContext<'_>,
) -> Variables {
    let mut patterns: Vec<&str> = INHERITED.to_vec();
    patterns.extend(agent.own_variables(executor));
    patterns.extend(executor.env_inherit.iter().map(String::as_str));
    patterns.extend(executor.key_env.as_deref());

    let mut environment = Variables::new();
    for (name, value) in context.user.variables {
        let is_inherited =
            name.to_str().is_some_and(|name| patterns.iter().any(|pattern| matches_pattern(name, pattern)));
        if is_inherited {
            environment.insert(name.clone(), value.clone());
        }
    }
    environment.extend(UNATTENDED.map(|(name, value)| (name.into(), value.into())));
    let empty = || context.settings_dir.join("zsh").into();
    environment.entry(ZSH_FOLDER.into()).or_insert_with(empty);
    environment
}

/// Keeps a proxy of the user's from between an agent and its recorder, which is on this machine.
pub(super) fn reach_recorder(line: &mut CommandLine, user: &Variables) {
    for name in ["NO_PROXY", "no_proxy"] {
        let others = user.get(OsStr::new(name)).map(|others| others.to_string_lossy().into_owned());
        let others =
            others.filter(|others| !others.is_empty()).map(|others| others + ",").unwrap_or_default();
        line.set(name, format!("{others}127.0.0.1"));
    }
}

fn matches_pattern(name: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(name == pattern, |prefix| name.starts_with(prefix))
}

/// Every variable that holds a key in this session.
pub(super) fn key_names<'a>(agent: &NativeAgent, executor: &'a Executor) -> Vec<&'a str> {
    let mut names: Vec<&str> = agent.login.key_variables.to_vec();
    names.extend(executor.key_env.as_deref());
    names.sort_unstable();
    names.dedup();
    names
}

/// The schema of the answer as agents accept it: on one line, and without `$schema`. Claude Code does not know that
/// dialect, and would silently ignore the whole schema because of it.
pub fn agent_schema(pinned: &[u8]) -> Option<String> {
    let mut schema: Value = serde_json::from_slice(pinned).ok()?;
    schema.as_object_mut()?.shift_remove("$schema");
    Some(schema.to_string())
}
