//! The description of one agent: the fields that each agent's file fills in.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::launch::{CommandLine, LaunchContext, LaunchRequest, reach_recorder, session_environment};
use super::provider_error::FailureClassifier;
use super::transcript::LineParser;
use crate::config::{Executor, ExecutorKind, ReasoningEffort};
use crate::model::tools::Tools;

/// All the runner knows about one agent program.
#[derive(Debug)]
pub struct AgentSpec {
    /// The agent's name in the configuration (`kind` or `preset`), on the command line and in evaluations.
    pub name: &'static str,
    /// The program to look up on the PATH.
    pub program: &'static str,
    /// The npm package that installs the program.
    pub package: &'static str,
    /// Where the package has the program: a glob pattern under `node_modules`. `scripts/tool` installs agents for the
    /// tests and links to this file, which is the program itself and not npm's launcher wherever there is one.
    pub npm_program: &'static str,
    /// The versions that the command line and the parser were tested with. `scripts/tool` installs the first.
    pub tested_versions: &'static [&'static str],
    /// What the program needs and finds around it.
    pub surroundings: Surroundings,
    /// What the runner knows beyond that about an agent with an executor kind of its own. None for a preset.
    pub native: Option<NativeAgent>,
    /// Adds the arguments, variables and files of a session to the command line.
    pub(super) complete: fn(&mut CommandLine, &LaunchRequest<'_>),
    /// What it reports about its usage.
    pub reports: ReportedUsage,
    /// How to read what it prints.
    pub output: OutputFormat,
}

impl AgentSpec {
    /// The folders in the user's home where the agent keeps its state and its login.
    pub fn state_folders(&self) -> BTreeSet<&'static Path> {
        let native = self.native.as_ref().map(|native| Path::new(native.login.home_dir));
        let Surroundings { state_dirs, login, .. } = &self.surroundings;
        let logins = login.files.iter().filter_map(|file| Path::new(file).parent());
        state_dirs.iter().map(Path::new).chain(logins).chain(native).collect()
    }

    /// The files in the user's home that hold the login and the choice of the provider. A trial of an evaluation gets copies of
    /// these, and nothing else of the state.
    pub fn login_files(&self) -> BTreeSet<String> {
        let native = self
            .native
            .as_ref()
            .map(|NativeAgent { login, .. }| format!("{}/{}", login.home_dir, login.file));
        let PresetLogin { files, renewed_files, read_files, .. } = &self.surroundings.login;
        let preset = files.iter().chain(*renewed_files).chain(*read_files).map(|file| (*file).to_owned());
        preset.chain(native).collect()
    }
}

/// The files in the user's home that a login shell of bash reads, or that a program reads for it. zsh looks for its own in the folder
/// of the session that `ZDOTDIR` names.
pub const SHELL_STARTUP_FILES: [&str; 4] = [".bash_profile", ".bash_login", ".profile", ".bashrc"];

/// What a program needs from the machine, and what it would load from home and repository.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Where a preset's login is.
    pub login: PresetLogin,
    /// Folders in the user's home where the program keeps state. In a sandbox, a session has empty ones in their place: what
    /// it leaves there would be loaded by the user's own sessions.
    pub state_dirs: &'static [&'static str],
    /// The oldest major version of Node that runs the program; none if it brings what it needs, or if any will do.
    pub node_min: Option<u32>,
    /// Files and folders in the user's home that a sandbox hides: the program loads them and has no switch for it.
    pub hidden_in_home: &'static [&'static str],
    /// The same in the repository.
    pub hidden_in_repository: &'static [&'static str],
}

impl Surroundings {
    /// A program that needs nothing and has a switch for everything.
    pub(super) const NONE: Self = Self {
        login: PresetLogin::NONE,
        state_dirs: &[],
        node_min: None,
        hidden_in_home: &[],
        hidden_in_repository: &[],
    };
}

/// Where the login of a preset is. Presets support many providers, so a missing login proves nothing. Files are named by their
/// usual place in the user's home.
#[derive(Clone, Copy, Debug)]
pub struct PresetLogin {
    /// Variables that hold keys. A session sees them, unless the configuration names another provider.
    pub key_variables: &'static [&'static str],
    /// Other variables that choose the account or the provider. A session sees them under the same condition.
    pub variables: &'static [&'static str],
    /// The program's folder, if a variable can move it.
    pub folder: Option<MovableFolder>,
    /// Files that exist after a login.
    pub files: &'static [&'static str],
    /// What such a file contains only after a login, if it exists before.
    pub file_text: Option<&'static str>,
    /// Files that the program writes when it renews the login. A sandboxed session may write to these, and to nothing beside
    /// them.
    pub renewed_files: &'static [&'static str],
    /// Files of which a session gets only what is needed to log in.
    pub read_files: &'static [&'static str],
    /// The command that logs in.
    pub command: &'static str,
}

/// A folder that is somewhere else if the user has set a variable.
#[derive(Clone, Copy, Debug)]
pub struct MovableFolder {
    pub variable: &'static str,
    /// Its usual place in the home.
    pub in_home: &'static str,
}

/// The folders of the XDG specification.
const XDG_FOLDERS: [MovableFolder; 3] = [
    MovableFolder { variable: "XDG_DATA_HOME", in_home: ".local/share" },
    MovableFolder { variable: "XDG_STATE_HOME", in_home: ".local/state" },
    MovableFolder { variable: "XDG_CACHE_HOME", in_home: ".cache" },
];

impl PresetLogin {
    pub(super) const NONE: Self = Self {
        key_variables: &[],
        variables: &[],
        folder: None,
        files: &[],
        file_text: None,
        renewed_files: &[],
        read_files: &[],
        command: "",
    };

    /// Where a file or folder of the program is, with these variables of the user.
    pub fn place(&self, path: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let value = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let moved = self.folder.iter().chain(&XDG_FOLDERS).find_map(|folder| {
            let below = Path::new(path).strip_prefix(folder.in_home).ok()?;
            Some(value(folder.variable)?.join(below))
        });
        moved.or_else(|| Some(value("HOME")?.join(path)))
    }
}

/// How to read the output of a session.
#[derive(Debug)]
pub struct OutputFormat {
    /// Makes a parser for the output of one session.
    pub(super) parser: fn() -> Box<dyn LineParser>,
    /// Classifies a failure that the agent reported.
    pub(super) classify: FailureClassifier,
    /// Whether a session without a final event has failed. The answer of a preset is a file, and only that decides.
    pub(super) ends_with_event: bool,
}

/// What the sessions of an agent report about their usage. A limit on anything else cannot be enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedUsage {
    Nothing,
    Tokens,
    TokensAndCost,
}

/// An agent with an executor kind of its own (`kind = "codex"`), as opposed to a preset. It sees a selection of the
/// user's variables, answers through its own channel and is validated by schema.
#[derive(Debug)]
pub struct NativeAgent {
    /// The value of `[executor] kind`.
    pub kind: ExecutorKind,
    /// The product's name, for messages.
    pub title: &'static str,
    /// Where its credentials are.
    pub login: AgentLogin,
    /// Where requests go without `base_url`.
    pub provider: AgentProvider,
    /// Other variables that configure it. It sees them if the user has set them.
    pub variables: &'static [&'static str],
    /// How a session is sandboxed.
    pub sandbox: AgentSandbox,
    pub features: NativeFeatures,
}

/// Where the provider of a native agent is, for a recorder in between.
#[derive(Clone, Copy, Debug)]
pub struct AgentProvider {
    /// The variable with which the user chooses another one.
    pub variable: Option<&'static str>,
    /// The path of its addresses, after which the agent appends its own.
    pub path: &'static str,
    /// The addresses for each kind of login.
    pub routes: &'static [ProviderRoute],
}

/// One address of a provider. A request goes to the first whose header it has.
#[derive(Clone, Copy, Debug)]
pub struct ProviderRoute {
    /// None if every request may go there.
    pub header: Option<&'static str>,
    pub url: &'static str,
}

/// How an agent logs in, and how to recognize that it has.
#[derive(Debug)]
pub struct AgentLogin {
    /// The command that logs in.
    pub command: &'static str,
    /// Variables that hold keys. The agent sees them; the commands that it runs do not.
    pub key_variables: &'static [&'static str],
    /// The variable that names the folder of the login.
    pub home_variable: &'static str,
    /// That folder in the user's home if the variable is not set.
    pub home_dir: &'static str,
    /// The file in that folder that exists after a login, on systems without a key chain.
    pub file: &'static str,
}

/// How sessions of a native agent are sandboxed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentSandbox {
    /// The agent runs its commands in a sandbox of its own.
    BuiltIn,
    /// Bubblewrap around each command, and a hook that checks file changes. The agent's own process stays outside.
    AroundCommands,
}

/// Configuration keys that only some native agents support.
#[derive(Debug)]
pub struct NativeFeatures {
    /// The values of `effort` that it accepts.
    pub efforts: &'static [ReasoningEffort],
    /// Which tools of tools.json it can allow and deny.
    pub tool_control: ToolControl,
    pub has_context_budget: bool,
    /// Whether `retries` works only with `base_url`.
    pub retries_need_base_url: bool,
    /// Whether it reports its version in each session. Otherwise the runner runs `--version` once.
    pub reports_version: bool,
}

/// Which tools of a native agent can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolControl {
    /// Any tool by name: an allow list and a deny list.
    ByName,
    /// Only these tools; there is no allow list.
    Switches(&'static [ToolSwitch]),
}

/// A tool that can be switched off, by the name under which tools.json denies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolSwitch {
    /// The tool's name in `deny`.
    pub tool: &'static str,
    /// The arguments that switch it off.
    pub(super) off: [&'static str; 2],
}

/// Two specs are the same agent if they have the same name: names are unique in the registry.
impl PartialEq for AgentSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for AgentSpec {}

impl AgentSpec {
    /// The description of a native agent; none for a preset.
    pub fn native(&self) -> Option<&NativeAgent> {
        self.native.as_ref()
    }

    /// Whether the agent is a preset of kind `command`.
    pub fn is_preset(&self) -> bool {
        self.native.is_none()
    }

    /// Variables of the user that a session sees besides those that every agent sees: its keys, and what configures it.
    pub(super) fn own_variables(&self, executor: &Executor) -> Vec<&'static str> {
        let login = &self.surroundings.login;
        match &self.native {
            Some(native) => {
                let own = native.login.key_variables.iter().chain(native.variables);
                own.copied().chain([native.login.home_variable]).collect()
            }
            // With another provider, the keys of its usual ones have no business in the session.
            None if executor.base_url.is_some() => Vec::new(),
            None => login.key_variables.iter().chain(login.variables).copied().collect(),
        }
    }

    /// The version in the output of `--version`, if the agent was tested with it.
    pub fn tested_version(&self, output: &str) -> Option<&'static str> {
        let mut words = output.split_whitespace().map(|word| word.trim_end_matches(','));
        words.find_map(|word| self.tested_versions.iter().find(|tested| **tested == word)).copied()
    }

    /// The command line of a session. The prompt comes on standard input. The environment is complete, except for the
    /// `RUNNER_…` variables.
    pub fn command_line(
        &self,
        executor: &Executor,
        tools: &Tools,
        context: &LaunchContext<'_>,
    ) -> CommandLine {
        // A provider of the configuration is behind the recorder.
        let url = context.recorder.filter(|_| executor.base_url.is_some());
        let recorded = url.map(|url| Executor { base_url: Some(url.to_owned()), ..executor.clone() });
        let executor = recorded.as_ref().unwrap_or(executor);
        let environment = session_environment(self, executor, context);
        let mut line = CommandLine { environment, ..CommandLine::default() };
        let request = LaunchRequest { executor, tools, context };
        (self.complete)(&mut line, &request);
        let login = &self.surroundings.login;
        line.state_folders = request.places(login, self.surroundings.state_dirs);
        if executor.base_url.is_none() {
            line.login_files = request.places(login, login.renewed_files);
        }
        if context.recorder.is_some() {
            reach_recorder(&mut line, context.user.variables);
        }
        line
    }
}
