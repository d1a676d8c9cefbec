//! The sandbox for agents that have none of their own: bubblewrap.
//!
//! Inside, the whole file system is read-only but for the repository, a temporary folder of the session's own, and the
//! folders that the configuration names. Read-only in the repository are git's folder and everything under the runner's
//! folder that is not for agents, and the guard's own files. Processes outside cannot be seen, and services
//! that would start something outside cannot be reached. The network is as ever, unless it is denied.
//!
//! Nothing here trusts the agent's own copy of bubblewrap, and nothing here decides whether a sandbox is needed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_core::agents::{AgentSandbox, AgentSpec, can_launch_commands_through};
use runner_core::config::ProtectPolicy;
use runner_core::layout::Doc;
use runner_core::step::Job;
use serde::{Deserialize, Serialize};

use crate::agent::command::PreparedCommand;
use crate::error::Error;
use crate::git::{Git, PathSet, path_of};
use crate::repo::paths::RUNNER_FOLDERS;
use supervise::ExitReason;
use supervise::executables;

/// What kept a session in, for the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxKind {
    /// Nothing.
    #[default]
    None,
    /// The agent's own sandbox, which its commands run in.
    Own,
    /// Bubblewrap: around the agent, or around its commands where its login must stay within its reach.
    Bubblewrap,
}

/// How the agent ended, from how the sandbox around it did, which tells a signal by its exit code, as a shell does.
pub(crate) fn unwrapped(how: ExitReason) -> ExitReason {
    if let ExitReason::Exited(code @ 129..=192) = how { ExitReason::Signalled(code - 128) } else { how }
}

/// How to get the sandbox.
pub(crate) const SANDBOX_FIX: &str = "install bubblewrap: apt-get install bubblewrap";

/// Why an agent of this kind cannot be put into a bubblewrap that works, in this repository, and what mends it. Claude Code starts its
/// commands through a program of the runner's, if it can take that program's path.
pub(crate) fn obstacle(git: &Git, agent: Option<&AgentSpec>) -> Option<(String, &'static str)> {
    let native = agent.and_then(AgentSpec::native);
    let is_odd = native.is_some_and(|native| native.sandbox == AgentSandbox::AroundCommands)
        && !can_launch_commands_through(&git.paths().session());
    let why = "Claude Code starts no command through a path that holds ` -` or is not UTF-8";
    is_odd.then(|| (why.to_owned(), "move the repository to a plainer path"))
}

/// A bubblewrap that works.
#[derive(Clone, Debug)]
pub(crate) struct Bubblewrap {
    program: PathBuf,
}

/// What a session finds inside.
#[derive(Clone, Debug)]
pub(crate) struct SandboxSpec {
    pub(crate) root: PathBuf,
    /// What becomes `/tmp`; without it, that is as outside.
    pub(crate) temporary: Option<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    /// Where the answer goes and what lies ready for the session, which is inside of what is read-only.
    pub(crate) own: Vec<PathBuf>,
    pub(crate) has_network: bool,
}

/// The program's name.
const NAME: &str = "bwrap";

/// In every sandbox. As root, too, the agent has no rights beyond those of the owner of its files.
const ALWAYS: [&str; 13] = [
    "--die-with-parent",
    "--unshare-user-try",
    "--unshare-pid",
    "--unshare-ipc",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
];

/// What everything temporary goes to, and where the session's own folder is put.
const TEMPORARY: &str = "/tmp";
/// Where files of the machine are not seen inside.
const COVERED: [&str; 2] = [TEMPORARY, "/dev/shm"];
/// The variables that name a folder for temporary files.
const TEMPORARY_VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Services that start programs for whoever asks, outside of any sandbox: sockets, and folders of sockets.
const SERVICES: [&str; 5] = [
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
];
const SERVICE_FOLDER: &str = "/run/user";

/// The most protected files that are read-only one by one; what is beyond is put back after the session, as ever.
const PROTECTED_MAX: usize = 100;

impl Bubblewrap {
    /// Finds it outside of the repository and tries it out, or says why it cannot be used.
    pub(crate) fn find(repository: &Path) -> Result<Self, String> {
        let program = executables::find(NAME, Some(repository)).ok_or("`bwrap` is not on the PATH")?;
        let nothing = executables::find("true", Some(repository)).ok_or("`true` is not on the PATH")?;
        let mut args: Vec<OsString> = ALWAYS.map(OsString::from).into();
        args.extend(["--tmpfs", TEMPORARY, "--"].map(OsString::from));
        args.push(nothing.into());
        executables::probe(&program, &args)
            .map(|()| Self { program })
            .map_err(|why| runner_core::text::one_line(&why))
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// A program inside a room.
    pub(crate) fn around(&self, mut program: PreparedCommand, room: &SandboxSpec) -> PreparedCommand {
        let argv = std::mem::take(&mut program.argv);
        let needed = still_needed(&argv, &program.environment, &room.root);
        let mut line = self.line_for(room, &needed);
        line.words(&["--chdir"]).0.push(room.root.clone().into());
        line.words(&["--"]).0.extend(argv);
        for (name, value) in &mut program.environment {
            if TEMPORARY_VARIABLES.iter().any(|variable| name == variable) {
                *value = TEMPORARY.into();
            }
        }
        program.argv = line.0;
        program
    }

    /// What stands before a command that is to run inside a room, in the folder that it is started in.
    pub(crate) fn before_commands(&self, room: &SandboxSpec) -> Vec<OsString> {
        let mut line = self.line_for(room, &[]);
        line.words(&["--"]);
        line.0
    }

    fn line_for(&self, room: &SandboxSpec, needed: &[PathBuf]) -> ArgvBuilder {
        let mut line = ArgvBuilder(vec![self.program.clone().into()]);
        line.words(&ALWAYS);
        if !room.has_network {
            line.words(&["--unshare-net"]);
        }
        line.hide_services();
        if let Some(temporary) = &room.temporary {
            line.mount("--bind", temporary, Path::new(TEMPORARY));
        }
        for path in needed {
            line.mount("--ro-bind", path, path);
        }
        for path in std::iter::once(&room.root).chain(&room.writable) {
            line.mount("--bind", path, path);
        }
        for path in &room.read_only {
            line.mount("--ro-bind", path, path);
        }
        for path in &room.own {
            line.mount("--bind", path, path);
        }
        line
    }
}

/// The words of a command.
struct ArgvBuilder(Vec<OsString>);

impl ArgvBuilder {
    fn words(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(OsString::from));
        self
    }

    fn mount(&mut self, how: &str, from: &Path, to: &Path) {
        self.0.extend([how.into(), from.into(), to.into()]);
    }

    fn hide_services(&mut self) {
        for socket in SERVICES.iter().filter(|socket| Path::new(socket).exists()) {
            self.words(&["--ro-bind", "/dev/null", socket]);
        }
        if Path::new(SERVICE_FOLDER).exists() {
            self.words(&["--tmpfs", SERVICE_FOLDER]);
        }
    }
}

/// What would be covered and is needed all the same: a program or script of the command line, the home folder.
fn still_needed(argv: &[OsString], environment: &[(OsString, OsString)], root: &Path) -> Vec<PathBuf> {
    let home = environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value);
    let is_covered = |path: &PathBuf| {
        COVERED.iter().any(|folder| path.starts_with(folder) && path != Path::new(folder))
            && !path.starts_with(root)
    };
    let named = argv.iter().chain(home).map(Path::new).filter(|path| path.is_absolute());
    named.filter_map(|path| path.canonicalize().ok()).filter(is_covered).collect()
}

impl SandboxSpec {
    /// What a session of this job finds.
    pub(crate) fn of(git: &Git, job: &Job, protected: &PathSet) -> Result<Self, Error> {
        let paths = git.paths();
        // With `flag`, the user lets such changes pass.
        let protected_max = if job.protect == ProtectPolicy::Flag { 0 } else { PROTECTED_MAX };
        let docs = Doc::ALL.into_iter().filter(|doc| !doc.is_for_agents()).map(|doc| paths.doc(doc));
        let read_only = [git.root().join(".git"), git.git_dir().to_owned(), git.common_dir().to_owned()]
            .into_iter()
            .chain([paths.iterations()])
            .chain(docs)
            .chain(protected.iter().take(protected_max).map(|path| git.root().join(path_of(path))));
        // A folder that something is mounted on cannot be moved away, and what is read-only inside it stays in its place.
        let in_place = RUNNER_FOLDERS.iter().map(|folder| git.root().join(folder));
        let named = folders_of(job);
        let state = state_of(job)?;
        Ok(Self {
            root: real(git.root()),
            temporary: Some(real(&paths.private()).join(paths.temporary().file_name().unwrap_or_default())),
            writable: in_place.chain(named).chain(state).map(|path| real(&path)).collect(),
            read_only: read_only.filter(|path| is_plain(path)).map(|path| real(&path)).collect(),
            own: [paths.answers(), paths.session()]
                .iter()
                .filter(|path| is_plain(path))
                .map(|path| real(path))
                .collect(),
            has_network: job.tools.network != Some(false),
        })
    }

    /// The same for the commands of an agent that itself stays outside: temporary files are shared with it, and what is
    /// laid ready for it is none of their business.
    pub(crate) fn for_commands(git: &Git, job: &Job, protected: &PathSet) -> Result<Self, Error> {
        let mut room = Self::of(git, job, protected)?;
        room.own.clear();
        room.temporary = None;
        room.writable.extend(shared_temporary());
        Ok(room)
    }
}

/// Where temporary files go outside.
pub(crate) fn shared_temporary() -> Vec<PathBuf> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from);
    let all = named.into_iter().chain([PathBuf::from(TEMPORARY)]);
    all.filter(|path| path.is_dir()).map(|path| real(&path)).collect()
}

/// The folders outside of the repository that a job's agent may write to, those of them that are there.
pub(crate) fn folders_of(job: &Job) -> Vec<PathBuf> {
    let of_node = job.tools.writable.iter().flatten().map(|folder| PathBuf::from(folder.as_str()));
    let configured = job.executor.writable.iter().filter_map(|path| in_home(path));
    configured.chain(of_node).filter(|path| path.exists()).collect()
}

/// A path without links in it: a link means something else inside.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Only files and folders can be made read-only; links are put back after the session, as ever.
fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_dir())
}

/// Where a preset keeps its state, which it makes by itself where there is no sandbox.
fn state_of(job: &Job) -> Result<Vec<PathBuf>, Error> {
    let (Some(preset), Some(home)) = (job.executor.preset, std::env::var_os("HOME")) else {
        return Ok(Vec::new());
    };
    let folders: Vec<PathBuf> =
        preset.agent().state_dirs.iter().map(|folder| Path::new(&home).join(folder)).collect();
    for folder in &folders {
        std::fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
    }
    Ok(folders)
}

/// A folder of the configuration.
fn in_home(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(Path::new(&std::env::var_os("HOME")?).join(rest)),
        None => Some(PathBuf::from(path)),
    }
}
