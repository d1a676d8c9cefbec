//! Detection: what a repository is built with, and the configuration that follows from it.
//!
//! Pure: the host lists the files, reads the manifests ([`is_manifest`]) and looks up programs. `runner init` and `runner
//! run` write what is proposed here into the configuration, and show it.

mod agents;
mod guard_words;
mod node;
mod packages;
mod proposal;
mod python;
mod task_runner;
mod toolchain;

use std::collections::{BTreeMap, BTreeSet};

pub use agents::{AgentPresence, LoginPlaces, LoginState, choose_agent, login_places};
pub use guard_words::{command_line, guard_words};
pub use proposal::{
    AgentRequest, ConfigRequest, ProposedConfig, ProposedSetting, night_settings, propose_config,
};

/// Names of the files that detection reads.
const MANIFESTS: [&str; 16] = [
    "justfile",
    ".justfile",
    "Justfile",
    "GNUmakefile",
    "makefile",
    "Makefile",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "Pipfile",
    "go.mod",
    "go.work",
];

/// Ignored folders that a guard may need.
pub const LOCAL_FOLDERS: [&str; 3] = [".venv", "venv", "node_modules"];

/// How deep packages of a monorepo are looked for: `packages/api` has depth 2.
pub const DEPTH_MAX: usize = 2;

/// Whether detection reads the file at this path.
pub fn is_manifest(path: &str) -> bool {
    let (folder, name) = split_path(path);
    MANIFESTS.contains(&name) && folder.split('/').filter(|part| !part.is_empty()).count() <= DEPTH_MAX
}

/// What detection knows about a repository and the machine.
#[derive(Clone, Debug, Default)]
pub struct RepoListing {
    /// Every file that git tracks.
    pub paths: BTreeSet<String>,
    /// The content of the manifests.
    pub manifests: BTreeMap<String, String>,
    /// The folders named in [`LOCAL_FOLDERS`] that exist, with their parents: `web/node_modules`.
    pub local_folders: BTreeSet<String>,
    /// The programs on the PATH, of those that detection may propose ([`PROGRAMS`]).
    pub programs: BTreeSet<String>,
}

/// The programs that a proposal may start.
pub const PROGRAMS: [&str; 17] = [
    "just",
    "make",
    "cargo",
    "cargo-nextest",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "node",
    "python3",
    "python",
    "uv",
    "poetry",
    "pipenv",
    "go",
    "mvn",
    "gradle",
];

impl RepoListing {
    fn has(&self, folder: &str, name: &str) -> bool {
        self.paths.contains(&join(folder, name))
    }

    fn text(&self, folder: &str, name: &str) -> Option<&str> {
        self.manifests.get(&join(folder, name)).map(String::as_str)
    }

    fn has_local(&self, folder: &str, name: &str) -> bool {
        self.local_folders.contains(&join(folder, name))
    }

    fn has_program(&self, program: &str) -> bool {
        self.programs.contains(program)
    }

    /// Whether a command can start here: its program is on the PATH, or a file of the repository.
    fn can_run(&self, folder: &str, program: &str) -> bool {
        match program.strip_prefix("./").or_else(|| program.contains('/').then_some(program)) {
            Some(path) => {
                let venv = path.split('/').next().unwrap_or_default();
                self.has(folder, path) || self.has_local(folder, venv)
            }
            None => self.has_program(program),
        }
    }

    /// The tracked files below a folder, with paths relative to it.
    fn files_below<'l>(&'l self, folder: &'l str) -> impl Iterator<Item = &'l str> {
        self.paths.iter().filter_map(move |path| {
            if folder.is_empty() { Some(path.as_str()) } else { path.strip_prefix(folder)?.strip_prefix('/') }
        })
    }
}

/// What a package is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stack {
    Just,
    Make,
    Cargo,
    Node,
    Python,
    Go,
    Maven,
    Gradle,
}

impl Stack {
    pub fn name(self) -> &'static str {
        match self {
            Self::Just => "just",
            Self::Make => "make",
            Self::Cargo => "Cargo",
            Self::Node => "Node.js",
            Self::Python => "Python",
            Self::Go => "Go",
            Self::Maven => "Maven",
            Self::Gradle => "Gradle",
        }
    }

    /// Whether it runs commands of other tools, so that its command covers them.
    fn is_task_runner(self) -> bool {
        matches!(self, Self::Just | Self::Make)
    }
}

/// The test command of one package, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackageCheck {
    pub(crate) stack: Stack,
    /// Where it was found, for people: `package.json, pnpm`.
    pub(crate) source: String,
    /// Empty for a package without tests.
    pub(crate) command: Vec<String>,
    pub(crate) setup: Option<Vec<String>>,
    /// Files whose change makes the setup run again, relative to the package.
    pub(crate) setup_inputs: Vec<String>,
    /// Ignored folders that the command needs, relative to the package.
    pub(crate) keep: Vec<String>,
}

impl PackageCheck {
    fn new(stack: Stack, source: impl Into<String>, command: &[&str]) -> Self {
        Self {
            stack,
            source: source.into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            setup: None,
            setup_inputs: Vec::new(),
            keep: Vec::new(),
        }
    }

    fn with_setup(mut self, command: &[&str], inputs: &[&str]) -> Self {
        self.setup = Some(command.iter().map(|word| (*word).to_owned()).collect());
        self.setup_inputs = inputs.iter().map(|input| (*input).to_owned()).collect();
        self
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The folder and the name of a path.
fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

#[cfg(test)]
pub(crate) mod sample {
    use super::RepoListing;

    /// A repository with these files, on a machine with all programs.
    pub(crate) fn listing(files: &[(&str, &str)]) -> RepoListing {
        let manifests = files.iter().filter(|(path, _)| super::is_manifest(path));
        RepoListing {
            paths: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
            manifests: manifests.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
            local_folders: std::collections::BTreeSet::new(),
            programs: super::PROGRAMS.iter().map(|program| (*program).to_owned()).collect(),
        }
    }
}
