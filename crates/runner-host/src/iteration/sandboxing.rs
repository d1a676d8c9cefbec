//! Chooses the sandbox of a session, and puts the agent or its commands into it.

use std::path::Path;

use runner_core::agents::{AgentSandbox, AgentSpec, CommandSandbox, RepositoryAccess};
use runner_core::config::{Executor, ExecutorKind, NetworkAccess, SandboxMode};
use runner_core::step::{Event, Job};

use crate::agent::claude_file_hook;
use crate::agent::command::PreparedCommand;
use crate::agent::own_sandbox::OwnSandbox;
use crate::agent::sandbox::{Bubblewrap, RepositoryMount, SandboxSpec, obstacle, writable_folders};
use crate::agent::sandbox_argv::TEMP_DIR_VARIABLES;
use crate::agent::sandbox_kind::SandboxKind;
use crate::agent::sandbox_program::{AgentWrapping, NoSandbox, SandboxProgram};
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, PathSet};
use crate::room::CandidateView;

/// Finds out once whether a sandbox works, when the first agent needs it.
#[derive(Debug, Default)]
pub(super) struct SandboxProbe {
    /// The result for an executor's mode and image.
    result: Option<ProbeResult>,
    announced: Option<Event>,
}

#[derive(Debug)]
struct ProbeResult {
    mode: SandboxMode,
    image: Option<String>,
    found: Result<SandboxProgram, NoSandbox>,
}

/// The sandbox of one session.
#[derive(Clone, Debug)]
pub(super) enum SessionSandbox {
    None {
        why: String,
    },
    /// The agent's built-in sandbox.
    Own(OwnSandbox),
    Around(SandboxProgram),
}

/// What a session finds at the path of the repository.
#[derive(Clone, Copy)]
pub(super) enum RepositoryView<'v> {
    WorkTree(RepositoryAccess),
    /// A checkout of the candidate, read-only; and the prompt, which is in no commit.
    Candidate {
        bubblewrap: &'v Bubblewrap,
        view: &'v CandidateView,
        prompt: &'v Path,
    },
}

impl RepositoryView<'_> {
    pub(super) fn access(self) -> RepositoryAccess {
        match self {
            Self::WorkTree(access) => access,
            Self::Candidate { .. } => RepositoryAccess::ReadOnly,
        }
    }

    fn in_sandbox(self, spec: SandboxSpec) -> SandboxSpec {
        match self {
            Self::WorkTree(access) => spec.for_access(access),
            Self::Candidate { view, prompt, .. } => spec.for_view(view, prompt),
        }
    }
}

/// A command to start, inside the sandbox if it has one.
pub(super) struct ConfinedCommand {
    pub(super) command: PreparedCommand,
    pub(super) wrapping: AgentWrapping,
}

/// How a native agent is sandboxed; none for any other agent, which runs in a sandbox itself.
fn agent_sandbox(job: &Job) -> Option<AgentSandbox> {
    job.agent.executor.agent().and_then(AgentSpec::native).map(|native| native.sandbox)
}

impl SandboxProbe {
    /// Chooses the sandbox for a job. Refuses a job that needs one where none works: because the configuration requires it,
    /// or because its node has restrictions that only a sandbox can enforce.
    pub(super) fn choose(&mut self, git: &Git, job: &Job) -> Result<SessionSandbox, Error> {
        let executor = &job.agent.executor;
        if executor.sandbox == SandboxMode::Off {
            let why = "the configuration says sandbox = \"off\"".to_owned();
            return Ok(SessionSandbox::None { why });
        }
        if agent_sandbox(job) == Some(AgentSandbox::BuiltIn) {
            return Ok(SessionSandbox::Own(OwnSandbox::find(git.root())));
        }
        let is_needed = matches!(executor.sandbox, SandboxMode::Require | SandboxMode::Podman)
            || job.permissions.tools.network == Some(false)
            || job.permissions.tools.writable.is_some();
        let found = self.find(executor, git).clone();
        match found.and_then(|program| obstacle(git, executor.agent()).map_or(Ok(program), Err)) {
            Ok(program) => Ok(SessionSandbox::Around(program)),
            Err(NoSandbox { why, fix }) if is_needed => Err(UserError::NoSandbox { why, fix }.into()),
            Err(NoSandbox { why, fix }) => Ok(SessionSandbox::None { why: format!("{why} ({fix})") }),
        }
    }

    fn find(&mut self, executor: &Executor, git: &Git) -> &Result<SandboxProgram, NoSandbox> {
        let is_same =
            |result: &ProbeResult| result.mode == executor.sandbox && result.image == executor.image;
        let result = match self.result.take().filter(is_same) {
            Some(result) => result,
            None => ProbeResult {
                mode: executor.sandbox,
                image: executor.image.clone(),
                found: SandboxProgram::find(executor, git.root()),
            },
        };
        &self.result.insert(result).found
    }

    /// The announcement about the sandbox of the next session, unless it repeats the last one. The scripted agent is
    /// the runner itself, and needs none.
    pub(super) fn news(&mut self, job: &Job, sandbox: &SessionSandbox) -> Option<Event> {
        if matches!(job.agent.executor.kind, ExecutorKind::Script) {
            return None;
        }
        let event = sandbox.event(has_network(job));
        (self.announced.as_ref() != Some(&event)).then(|| self.announced.insert(event).clone())
    }
}

impl SessionSandbox {
    pub(super) fn kind(&self) -> SandboxKind {
        match self {
            Self::None { .. } => SandboxKind::None,
            Self::Own(_) => SandboxKind::Own,
            Self::Around(program) => program.kind(),
        }
    }

    fn event(&self, has_network: bool) -> Event {
        let sandbox = self.kind().as_str().to_owned();
        let (why, gap) = match self {
            Self::None { why } => (Some(why.clone()), None),
            Self::Own(own) => (None, own.gap(has_network)),
            Self::Around(program) => (None, program.gap(has_network)),
        };
        Event::SandboxChosen { sandbox, why, gap }
    }

    /// The program that can put a checkout in the place of the repository, for a session in this sandbox.
    pub(super) fn view_program(&self) -> Option<Bubblewrap> {
        match self {
            Self::Around(SandboxProgram::Bubblewrap(bubblewrap)) => Some(bubblewrap.clone()),
            Self::Own(own) => own.namespace().cloned(),
            Self::None { .. } | Self::Around(SandboxProgram::Seatbelt(_) | SandboxProgram::Podman(_)) => None,
        }
    }

    /// The sandbox for Claude Code: its commands run inside, and a hook refuses files outside. Claude Code itself
    /// stays outside, because it renews its login in the user's home, with a lock beside its folder there.
    pub(super) fn for_commands(
        &self,
        git: &Git,
        job: &Job,
        protected: &PathSet,
        view: RepositoryView<'_>,
    ) -> Result<Option<CommandSandbox>, Error> {
        let (Self::Around(program), Some(AgentSandbox::AroundCommands)) = (self, agent_sandbox(job)) else {
            return Ok(None);
        };
        new_temporary_folder(git)?;
        let spec = view.in_sandbox(SandboxSpec::for_commands(git, job, protected)?);
        // Claude Code itself sees the checkout already.
        let repository = RepositoryMount::WorkTree(spec.repository.access());
        let spec = SandboxSpec { repository, ..spec };
        let folders =
            writable_folders(git.root(), job).into_iter().chain([git.paths().temporary()]).collect();
        let file_hook = claude_file_hook::command(git.root(), folders)?;
        Ok(Some(CommandSandbox { command_prefix: program.command_prefix(&spec), file_hook }))
    }

    /// Puts an agent into the sandbox, unless it is one that sandboxes its commands itself.
    pub(super) fn wrap(
        &self,
        mut command: PreparedCommand,
        git: &Git,
        job: &Job,
        protected: &PathSet,
        view: RepositoryView<'_>,
    ) -> Result<ConfinedCommand, Error> {
        let program = match (self, command.agent, agent_sandbox(job)) {
            (Self::Around(program), None, _) => program,
            (Self::Around(_), Some(_), Some(AgentSandbox::AroundCommands)) => {
                // The agent and its commands exchange files there; `/tmp` is not the same for both.
                set_temporary_folder(&mut command, &git.paths().temporary());
                return outside_sandbox(command, git, job, protected, view);
            }
            (Self::Own(own), ..) => return in_own_sandbox(own, command, git, job, protected, view),
            _ => return Ok(without_heldout(command, git, job)),
        };
        let spec =
            view.in_sandbox(SandboxSpec::for_agent(git, job, protected)?).for_program(git, &command)?;
        new_temporary_folder(git)?;
        Ok(ConfinedCommand { command: program.wrap(command, &spec), wrapping: program.wrapping() })
    }
}

/// An agent with a sandbox of its own. If its commands have a network, it gets a namespace in which services have no sockets.
fn in_own_sandbox(
    own: &OwnSandbox,
    mut command: PreparedCommand,
    git: &Git,
    job: &Job,
    protected: &PathSet,
    view: RepositoryView<'_>,
) -> Result<ConfinedCommand, Error> {
    let is_open = view.access() == RepositoryAccess::Writable && has_network(job);
    let Some(bubblewrap) = own.namespace().filter(|_| is_open) else {
        command.argv.splice(0..0, own.scope.words());
        return outside_sandbox(command, git, job, protected, view);
    };
    new_temporary_folder(git)?;
    let spec = SandboxSpec::for_agent(git, job, protected)?;
    let folders = [git.git_dir().to_owned(), git.common_dir().to_owned()];
    let mut command = bubblewrap.wrap_without_sockets(command, &spec, &folders);
    command.argv.splice(0..0, own.scope.words());
    Ok(ConfinedCommand { command, wrapping: AgentWrapping::Namespace })
}

/// Whether the commands of a job's agent have a network.
fn has_network(job: &Job) -> bool {
    let is_closed = job.agent.executor.effective_network() == NetworkAccess::None;
    job.permissions.tools.network.unwrap_or(!is_closed)
}

/// An agent that is in no sandbox of the runner's: a reviewer sees the candidate all the same.
fn outside_sandbox(
    command: PreparedCommand,
    git: &Git,
    job: &Job,
    protected: &PathSet,
    view: RepositoryView<'_>,
) -> Result<ConfinedCommand, Error> {
    let RepositoryView::Candidate { bubblewrap, view, prompt } = view else {
        return Ok(without_heldout(command, git, job));
    };
    let spec = SandboxSpec::for_agent(git, job, protected)?.for_view(view, prompt);
    let command = bubblewrap.wrap_view(command, &spec, view);
    Ok(ConfinedCommand { command, wrapping: AgentWrapping::Namespace })
}

/// An agent that is in no sandbox of the runner's: it cannot read held-out checks all the same.
fn without_heldout(command: PreparedCommand, git: &Git, job: &Job) -> ConfinedCommand {
    let bubblewrap = job
        .guard
        .hidden
        .as_deref()
        .and_then(|heldout| Bubblewrap::find(git.root()).ok().map(|bubblewrap| (bubblewrap, heldout)));
    match bubblewrap {
        Some((bubblewrap, heldout)) => ConfinedCommand {
            command: bubblewrap.wrap_hidden(command, git.root(), heldout),
            wrapping: AgentWrapping::Namespace,
        },
        None => ConfinedCommand { command, wrapping: AgentWrapping::No },
    }
}

/// An empty folder for the temporary files of a session.
fn new_temporary_folder(git: &Git) -> Result<(), Error> {
    atomic::remove_any(&git.paths().temporary())?;
    atomic::ensure_folder(&git.paths().temporary())
}

/// Makes a program, and the commands that it starts, keep their temporary files in a folder.
fn set_temporary_folder(command: &mut PreparedCommand, folder: &Path) {
    command.environment.retain(|(name, _)| !TEMP_DIR_VARIABLES.iter().any(|variable| name == variable));
    let variables = TEMP_DIR_VARIABLES.iter().chain(&[CLAUDE_TEMP_DIR]);
    command.environment.extend(variables.map(|name| (name.into(), folder.into())));
}

/// The variable by which Claude Code finds the folder for its own temporary files.
const CLAUDE_TEMP_DIR: &str = "CLAUDE_CODE_TMPDIR";
