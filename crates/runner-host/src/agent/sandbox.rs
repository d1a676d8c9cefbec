//! The bubblewrap sandbox, for agents without a sandbox of their own. `iteration/sandboxing.rs` decides whether to use it.
//!
//! Inside, the file system is read-only except for the repository, a temporary folder of the session, and the folders in the
//! configuration. In the repository, the git folder, the files under `.runner/` that are not for agents, and the guard's own
//! files are read-only. Outside processes are invisible, and services that could start a program outside are unreachable. The
//! network is available unless it is denied.
//!
//! Only the system's bubblewrap is used, never a copy that an agent ships or that is in the repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use runner_core::agents::{AgentSandbox, AgentSpec, RepositoryAccess, can_launch_commands_through};
use runner_core::config::{Executor, NetworkAccess, ProtectPolicy};
use runner_core::layout::Doc;
use runner_core::step::Job;

use crate::agent::command::PreparedCommand;
use crate::agent::hidden_paths::{self, HiddenPath};
use crate::agent::sandbox_argv::{ArgvBuilder, HIDDEN_FOLDERS, TEMP_DIR};
use crate::agent::sandbox_program::NoSandbox;
use crate::error::Error;
use crate::git::{Git, PathSet, path_of};
use crate::paths::RUNNER_FOLDERS;
use crate::room::{CandidateView, users_caches};
use supervise::{ExitReason, executables, socket_scope};

/// How the agent inside the sandbox ended. Bubblewrap reports a signal as exit code 128 + n, as a shell does.
pub(crate) fn exit_inside_sandbox(exit: ExitReason) -> ExitReason {
    if let ExitReason::Exited(code @ 129..=192) = exit { ExitReason::Signalled(code - 128) } else { exit }
}

/// What to do about a bubblewrap that cannot be used for this reason.
pub(crate) fn bubblewrap_fix(why: &str) -> &'static str {
    if why.ends_with("is not on PATH") {
        return "install bubblewrap: apt-get install bubblewrap";
    }
    "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 (Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0; \
     in a container: run it with --security-opt seccomp=unconfined)"
}

/// Why a working bubblewrap cannot be used for this agent in this repository, and the fix. Claude Code starts its commands
/// through a program of the runner, and does not accept every path for it.
pub(crate) fn obstacle(git: &Git, agent: Option<&AgentSpec>) -> Option<NoSandbox> {
    let sandbox = agent.and_then(AgentSpec::native).map(|native| native.sandbox);
    let is_unsupported =
        sandbox == Some(AgentSandbox::AroundCommands) && !can_launch_commands_through(&git.paths().session());
    let why = "Claude Code cannot run commands through a path that contains ` -` or is not UTF-8";
    let fix = "move the repository to a path without ` -`, in UTF-8";
    is_unsupported.then(|| NoSandbox { why: why.to_owned(), fix })
}

/// An installed bubblewrap that works.
#[derive(Clone, Debug)]
pub(crate) struct Bubblewrap {
    program: PathBuf,
    scope: SocketScope,
}

/// Whether what runs in a sandbox is kept from abstract sockets outside of it.
#[derive(Clone, Debug)]
pub(crate) enum SocketScope {
    /// These words before a command line do so.
    Launcher(Vec<OsString>),
    Missing {
        why: String,
    },
}

impl SocketScope {
    pub(crate) fn find() -> Self {
        match socket_scope::launcher() {
            Ok(words) => Self::Launcher(words),
            Err(why) => Self::Missing { why },
        }
    }

    pub(crate) fn words(&self) -> Vec<OsString> {
        match self {
            Self::Launcher(words) => words.clone(),
            Self::Missing { .. } => Vec::new(),
        }
    }

    /// What a sandbox does not cover. A network of its own has abstract sockets of its own.
    pub(crate) fn gap(&self, has_network: bool) -> Option<String> {
        match self {
            Self::Missing { why } if has_network => Some(format!("abstract sockets are reachable: {why}")),
            Self::Missing { .. } | Self::Launcher(_) => None,
        }
    }
}

/// What is mounted in the sandbox, and how.
#[derive(Clone, Debug)]
pub(crate) struct SandboxSpec {
    pub(crate) root: PathBuf,
    pub(crate) repository: RepositoryMount,
    /// The folder that becomes `/tmp`; without one, `/tmp` is empty.
    pub(crate) temporary: Option<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    /// Writable folders of the session inside of read-only ones: its answer and its setup files.
    pub(crate) session_files: Vec<PathBuf>,
    /// Folders of the session in the place of the user's, and the user's login in them.
    pub(crate) state: Vec<StateMount>,
    /// Files and folders of home and repository that the agent's program would load.
    pub(crate) hidden: Vec<HiddenPath>,
    pub(crate) has_network: bool,
    /// The folder of held-out checks, as the configuration names it.
    pub(crate) heldout: Option<String>,
}

/// What is at the path of the repository.
#[derive(Clone, Debug)]
pub(crate) enum RepositoryMount {
    WorkTree(RepositoryAccess),
    /// What a reviewer sees: a checkout of the files to commit, read-only.
    Candidate(CandidateView),
}

impl RepositoryMount {
    pub(crate) fn access(&self) -> RepositoryAccess {
        match self {
            Self::WorkTree(access) => *access,
            Self::Candidate(_) => RepositoryAccess::ReadOnly,
        }
    }
}

/// A writable file or folder at a path in the user's home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateMount {
    pub(crate) source: PathBuf,
    /// Where it is inside.
    pub(crate) path: PathBuf,
}

const NAME: &str = "bwrap";

/// The flags of every sandbox. Without capabilities, root has no more rights than the owner of its files.
const ALWAYS: [&str; 16] = [
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
    // As root, a program could otherwise set what the kernel runs outside when a process crashes.
    "--ro-bind",
    "/proc/sys",
    "/proc/sys",
];

/// The ones that worked, without a gap, when this process tried them. What failed may work later, so it is not remembered.
static WORKING: Mutex<Vec<Bubblewrap>> = Mutex::new(Vec::new());

/// How many protected files are mounted read-only. The runner restores changes to the others after the session.
const PROTECTED_MAX: usize = 100;

impl Bubblewrap {
    /// Finds it outside of the repository and runs it once per process; `Err` has why it cannot be used.
    pub(crate) fn find(repository: &Path) -> Result<Self, String> {
        let program = executables::find(NAME, Some(repository)).ok_or("`bwrap` is not on PATH")?;
        let mut working = WORKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = working.iter().find(|known| known.program == program) {
            return Ok(known.clone());
        }
        let found = Self::try_out(program, repository)?;
        if found.scope.gap(true).is_none() {
            working.push(found.clone());
        }
        Ok(found)
    }

    fn try_out(program: PathBuf, repository: &Path) -> Result<Self, String> {
        let true_program = executables::find("true", Some(repository)).ok_or("`true` is not on PATH")?;
        let scoped = Self { program: program.clone(), scope: SocketScope::find() };
        let Err(why) = scoped.probe(&true_program) else { return Ok(scoped) };
        if scoped.scope.words().is_empty() {
            return Err(why);
        }
        // A bubblewrap that needs its set-uid bit works only without the scope.
        let unscoped = Self { program, scope: SocketScope::Missing { why } };
        unscoped.probe(&true_program).map(|()| unscoped)
    }

    fn probe(&self, true_program: &Path) -> Result<(), String> {
        let mut argv = ArgvBuilder(self.scope.words());
        argv.0.push(self.program.clone().into());
        argv.words(&ALWAYS).words(&["--tmpfs", TEMP_DIR, "--"]).0.push(true_program.into());
        let Some((program, args)) = argv.0.split_first() else { return Ok(()) };
        executables::probe(Path::new(program), args).map_err(|why| runner_core::text::one_line(&why))
    }

    pub(crate) fn scope(&self) -> &SocketScope {
        &self.scope
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Wraps a whole command.
    pub(crate) fn wrap(&self, mut command: PreparedCommand, spec: &SandboxSpec) -> PreparedCommand {
        let inner = std::mem::take(&mut command.argv);
        let needed = hidden_but_needed(&inner, &command.environment, &spec.root);
        let argv = self.sandbox_argv(spec, &needed);
        command.argv = inner;
        argv.finish(&mut command, &spec.root);
        command
    }

    /// The words to put before a command to run it in the sandbox, in the current folder.
    pub(crate) fn command_prefix(&self, spec: &SandboxSpec) -> Vec<OsString> {
        let mut argv = self.sandbox_argv(spec, &hidden_folders_of_user(&spec.root));
        argv.words(&["--"]);
        argv.0
    }

    /// The beginning of every sandbox: a read-only file system, without other processes and without services but the allowed
    /// ones.
    pub(crate) fn base_argv(&self, has_network: bool, sockets: &[String]) -> ArgvBuilder {
        let mut argv = ArgvBuilder(self.scope.words());
        argv.0.push(self.program.clone().into());
        argv.words(&ALWAYS);
        if !has_network {
            argv.words(&["--unshare-net"]);
        }
        argv.hide_services(sockets);
        argv
    }

    fn sandbox_argv(&self, spec: &SandboxSpec, needed: &[PathBuf]) -> ArgvBuilder {
        let mut argv = self.base_argv(spec.has_network, &[]);
        match &spec.temporary {
            Some(temporary) => argv.mount("--bind", temporary, Path::new(TEMP_DIR)),
            None => argv.empty_folder(Path::new(TEMP_DIR)),
        }
        for path in needed.iter().chain(&hidden_own_program(&spec.root)) {
            argv.mount("--ro-bind", path, path);
        }
        argv.hide_user_sockets(&spec.root, &[]);
        match &spec.repository {
            RepositoryMount::Candidate(view) => view.mount(&mut argv, &spec.root),
            RepositoryMount::WorkTree(RepositoryAccess::Writable) => {
                argv.mount("--bind", &spec.root, &spec.root);
            }
            RepositoryMount::WorkTree(RepositoryAccess::ReadOnly) => {
                argv.mount("--ro-bind", &spec.root, &spec.root);
            }
        }
        for StateMount { source, path } in &spec.state {
            argv.mount("--bind", source, path);
        }
        for path in &spec.writable {
            argv.mount("--bind", path, path);
        }
        for path in &spec.read_only {
            argv.mount("--ro-bind", path, path);
        }
        for path in &spec.session_files {
            argv.mount("--bind", path, path);
        }
        argv.hide(&spec.hidden);
        if let RepositoryMount::Candidate(view) = &spec.repository {
            view.seal(&mut argv, &spec.root);
        }
        argv.hide_heldout(spec.heldout.as_deref());
        argv
    }

    /// Wraps a command so that it finds the files of a candidate in the place of the repository. Everything else but the folder of
    /// held-out checks is as it is outside.
    pub(crate) fn wrap_view(
        &self,
        mut command: PreparedCommand,
        spec: &SandboxSpec,
        view: &CandidateView,
    ) -> PreparedCommand {
        let mut argv = self.outside_argv();
        view.mount(&mut argv, &spec.root);
        for path in &spec.read_only {
            argv.mount("--ro-bind", path, path);
        }
        let temporary = spec.temporary.iter().filter(|path| path.is_dir());
        for path in spec.session_files.iter().chain(temporary) {
            argv.mount("--bind", path, path);
        }
        view.seal(&mut argv, &spec.root);
        argv.hide_heldout(spec.heldout.as_deref());
        argv.run_in(&mut command, &spec.root);
        command
    }

    /// Wraps a command so that it cannot read the folder of held-out checks. Everything else is as it is outside.
    pub(crate) fn wrap_hidden(
        &self,
        mut command: PreparedCommand,
        root: &Path,
        heldout: &str,
    ) -> PreparedCommand {
        let mut argv = self.outside_argv();
        argv.hide_heldout(Some(heldout));
        argv.run_in(&mut command, root);
        command
    }

    /// The beginning of a mount namespace in which everything is as it is outside.
    pub(super) fn outside_argv(&self) -> ArgvBuilder {
        let mut argv = ArgvBuilder(vec![self.program.clone().into()]);
        argv.words(&["--die-with-parent", "--unshare-user-try", "--dev-bind", "/", "/"]);
        argv
    }
}

/// Paths in hidden folders that a program in the room needs: itself and its script, and the folders of PATH.
pub(crate) fn hidden_programs(command: &PreparedCommand, root: &Path) -> Vec<PathBuf> {
    let path = command.environment.iter().find(|(name, _)| name == "PATH");
    let folders = path.map(|(_, value)| std::env::split_paths(value).collect::<Vec<_>>()).unwrap_or_default();
    let words: Vec<OsString> = folders.into_iter().map(whole_environment).map(OsString::from).collect();
    let mut paths = hidden_but_needed(&command.argv, &[], root);
    paths.extend(hidden_but_needed(&words, &[], root));
    paths
}

/// This program, if it is in a hidden folder: an agent may run it as a hook.
pub(super) fn hidden_own_program(root: &Path) -> Vec<PathBuf> {
    let program = std::env::current_exe().map(OsString::from);
    program.map_or_else(|_| Vec::new(), |program| hidden_but_needed(&[program], &[], root))
}

/// The user's home and the folders of PATH, as far as they are in hidden folders.
pub(super) fn hidden_folders_of_user(root: &Path) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).map(whole_environment);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let words: Vec<OsString> = home.into_iter().chain(folders).map(OsString::from).collect();
    hidden_but_needed(&words, &[], root)
}

/// The virtual environment of Python that a folder of programs belongs to, or else the folder: the programs need its packages.
fn whole_environment(folder: PathBuf) -> PathBuf {
    match folder.parent() {
        Some(parent) if parent.join("pyvenv.cfg").is_file() => parent.to_owned(),
        Some(_) | None => folder,
    }
}

/// Paths in hidden folders that the command needs: a program or script on its command line, the home folder.
pub(super) fn hidden_but_needed(
    argv: &[OsString],
    environment: &[(OsString, OsString)],
    root: &Path,
) -> Vec<PathBuf> {
    let home = environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value);
    let is_hidden = |path: &PathBuf| {
        HIDDEN_FOLDERS.iter().any(|folder| path.starts_with(folder) && path != Path::new(folder))
            && !path.starts_with(root)
    };
    let absolute = argv.iter().chain(home).map(Path::new).filter(|path| path.is_absolute());
    absolute.filter_map(|path| path.canonicalize().ok()).filter(is_hidden).collect()
}

impl SandboxSpec {
    /// The sandbox around the agent of a job.
    pub(crate) fn for_agent(git: &Git, job: &Job, protected: &PathSet) -> Result<Self, Error> {
        let paths = git.paths();
        // With `flag`, changes to protected files are allowed.
        let protected_max = if job.guard.protect == ProtectPolicy::Flag { 0 } else { PROTECTED_MAX };
        let docs = Doc::ALL.into_iter().filter(|doc| !doc.is_for_agents()).map(|doc| paths.doc(doc));
        let read_only = [git.root().join(".git"), git.git_dir().to_owned(), git.common_dir().to_owned()]
            .into_iter()
            .chain([paths.iterations()])
            .chain(docs)
            .chain(protected.iter().take(protected_max).map(|path| git.root().join(path_of(path))));
        // A mount point cannot be renamed, so the read-only files inside these folders stay in place.
        let mount_points = RUNNER_FOLDERS.iter().map(|folder| git.root().join(folder));
        let writable = mount_points.chain(writable_folders(git.root(), job));
        Ok(Self {
            root: canonical(git.root()),
            repository: RepositoryMount::WorkTree(RepositoryAccess::Writable),
            temporary: Some(
                canonical(&paths.private()).join(paths.temporary().file_name().unwrap_or_default()),
            ),
            writable: writable.map(|path| canonical(&path)).collect(),
            read_only: read_only
                .filter(|path| is_file_or_folder(path))
                .map(|path| canonical(&path))
                .collect(),
            session_files: [paths.answers(), paths.session()]
                .iter()
                .filter(|path| is_file_or_folder(path))
                .map(|path| canonical(path))
                .collect(),
            state: Vec::new(),
            hidden: hidden_paths::of_job(git, job),
            has_network: job.permissions.tools.network != Some(false),
            heldout: job.guard.hidden.clone(),
        })
    }

    /// The same sandbox with empty folders in the place of those in which the agent's program keeps its state, and with its
    /// login writable. A program of the user's own sessions would load what a command left in such a folder.
    pub(crate) fn for_program(mut self, git: &Git, command: &PreparedCommand) -> Result<Self, Error> {
        let own = git.paths().session().join("state");
        for (nth, path) in command.state_folders.iter().enumerate() {
            let source = own.join(nth.to_string());
            // A folder that is not there cannot be replaced. Without a sandbox the program creates it itself.
            for folder in [path, &source] {
                std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
            }
            self.state.push(StateMount { source: canonical(&source), path: canonical(path) });
        }
        for file in command.login_files.iter().filter(|file| file.is_file()) {
            // A file may be a link, which a folder of the session does not have.
            let is_in = |folder: &&PathBuf| file.starts_with(folder);
            let path = match (command.state_folders.iter().find(is_in), file.parent(), file.file_name()) {
                (Some(_), Some(folder), Some(name)) => canonical(folder).join(name),
                (_, _, _) => canonical(file),
            };
            self.state.push(StateMount { source: canonical(file), path });
        }
        hidden_paths::write_replacements(&self.hidden, command)?;
        Ok(self)
    }

    /// The same sandbox for a session that may not change the repository.
    pub(crate) fn for_access(mut self, access: RepositoryAccess) -> Self {
        if access == RepositoryAccess::ReadOnly {
            let root = self.root.clone();
            self.writable.retain(|path| !path.starts_with(&root));
        }
        Self { repository: RepositoryMount::WorkTree(access), ..self }
    }

    /// The same sandbox for a session that sees the files of a candidate in the place of the repository, and its own prompt.
    pub(crate) fn for_view(self, view: &CandidateView, prompt: &Path) -> Self {
        let mut spec = self.for_access(RepositoryAccess::ReadOnly);
        // All of the checkout is read-only, and some of these files are not in it.
        let root = spec.root.clone();
        spec.read_only.retain(|path| !path.starts_with(&root));
        spec.read_only.push(canonical(prompt));
        Self { repository: RepositoryMount::Candidate(view.clone()), ..spec }
    }

    /// The sandbox around the commands of an agent that stays outside: it shares the agent's own temporary files and nothing
    /// else of `/tmp`, where services of the user have their sockets. The agent's setup files stay read-only.
    pub(crate) fn for_commands(git: &Git, job: &Job, protected: &PathSet) -> Result<Self, Error> {
        let mut spec = Self::for_agent(git, job, protected)?;
        spec.session_files = spec.temporary.take().into_iter().collect();
        Ok(spec)
    }
}

/// The folders outside of the repository that a job's agent may write to, as far as they exist.
pub(crate) fn writable_folders(root: &Path, job: &Job) -> Vec<PathBuf> {
    let of_node =
        job.permissions.tools.writable.iter().flatten().map(|folder| PathBuf::from(folder.as_str()));
    let of_node = of_node.filter(|path| path.exists());
    let mut executor = job.agent.executor.clone();
    // A node can take the network away, and with it the caches.
    executor.network = executor.network.filter(|_| job.permissions.tools.network != Some(false));
    configured_folders(root, &executor).into_iter().chain(of_node).collect()
}

/// The folders outside of the repository that the configuration makes writable, as far as they exist. If package managers may
/// install something, the caches of those that the project uses are among them.
pub(crate) fn configured_folders(root: &Path, executor: &Executor) -> Vec<PathBuf> {
    let listed = executor.writable.iter().filter_map(|path| expand_home(path));
    let can_install = executor.network.is_some_and(NetworkAccess::can_install);
    let caches = if can_install { users_caches(root) } else { Vec::new() };
    listed.chain(caches).filter(|path| path.exists()).collect()
}

/// Resolves links, which may point elsewhere inside the sandbox.
pub(super) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Only files and folders can be mounted read-only. The runner restores links after the session.
fn is_file_or_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file() || metadata.is_dir())
}

/// Expands `~/` in a folder of the configuration.
pub(crate) fn expand_home(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(Path::new(&std::env::var_os("HOME")?).join(rest)),
        None => Some(PathBuf::from(path)),
    }
}
