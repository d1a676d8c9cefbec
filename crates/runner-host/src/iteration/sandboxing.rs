//! Chooses the sandbox of a session, and puts the agent or its commands into it.

use runner_core::agents::{AgentSandbox, AgentSpec, CommandSandbox, RepositoryAccess};
use runner_core::config::SandboxMode;
use runner_core::step::Job;

use crate::agent::claude_file_hook;
use crate::agent::command::PreparedCommand;
use crate::agent::sandbox::{
    Bubblewrap, SANDBOX_FIX, SandboxKind, SandboxSpec, obstacle, shared_temp_dirs, writable_folders,
};
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, PathSet};

/// Finds out once whether bubblewrap works, when the first agent needs it.
#[derive(Debug, Default)]
pub(super) struct SandboxProbe {
    result: Option<Result<Bubblewrap, String>>,
}

/// The sandbox of one session.
#[derive(Clone, Debug)]
pub(super) enum SessionSandbox {
    None,
    /// The agent's built-in sandbox.
    Own,
    Bubblewrap(Bubblewrap),
}

/// A command to start, inside the sandbox if it has one.
pub(super) struct ConfinedCommand {
    pub(super) command: PreparedCommand,
    pub(super) wrapping: AgentWrapping,
}

/// Whether the started program is the sandbox, with the agent as another process inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentWrapping {
    Yes,
    No,
}

/// How a native agent is sandboxed; none for any other agent, which runs in bubblewrap itself.
fn agent_sandbox(job: &Job) -> Option<AgentSandbox> {
    job.agent.executor.agent().and_then(AgentSpec::native).map(|native| native.sandbox)
}

impl SandboxProbe {
    /// Chooses the sandbox for a job. Refuses a job that needs one where none works: because the configuration requires it,
    /// or because its node has restrictions that only a sandbox can enforce.
    pub(super) fn choose(&mut self, git: &Git, job: &Job) -> Result<SessionSandbox, Error> {
        if job.agent.executor.sandbox == SandboxMode::Off {
            return Ok(SessionSandbox::None);
        }
        if agent_sandbox(job) == Some(AgentSandbox::BuiltIn) {
            return Ok(SessionSandbox::Own);
        }
        let is_needed = job.agent.executor.sandbox == SandboxMode::Require
            || job.permissions.tools.network == Some(false)
            || job.permissions.tools.writable.is_some();
        let bubblewrap = match self.result.get_or_insert_with(|| Bubblewrap::find(git.root())) {
            Ok(bubblewrap) => obstacle(git, job.agent.executor.agent()).map_or(Ok(bubblewrap), Err),
            Err(why) => Err((why.clone(), SANDBOX_FIX)),
        };
        match bubblewrap {
            Ok(bubblewrap) => Ok(SessionSandbox::Bubblewrap(bubblewrap.clone())),
            Err((why, fix)) if is_needed => Err(UserError::NoSandbox { why, fix }.into()),
            Err(_) => Ok(SessionSandbox::None),
        }
    }
}

impl SessionSandbox {
    pub(super) fn kind(&self) -> SandboxKind {
        match self {
            Self::None => SandboxKind::None,
            Self::Own => SandboxKind::Own,
            Self::Bubblewrap(_) => SandboxKind::Bubblewrap,
        }
    }

    /// The sandbox for Claude Code: its commands run inside bubblewrap, and a hook refuses files outside. Claude Code itself
    /// stays outside, because it renews its login in the user's home, with a lock beside its folder there.
    pub(super) fn for_commands(
        &self,
        git: &Git,
        job: &Job,
        protected: &PathSet,
        access: RepositoryAccess,
    ) -> Result<Option<CommandSandbox>, Error> {
        let (Self::Bubblewrap(bubblewrap), Some(AgentSandbox::AroundCommands)) = (self, agent_sandbox(job))
        else {
            return Ok(None);
        };
        let spec = SandboxSpec::for_commands(git, job, protected)?.for_access(access);
        let folders = writable_folders(job).into_iter().chain(shared_temp_dirs()).collect();
        let file_hook = claude_file_hook::command(git.root(), folders)?;
        Ok(Some(CommandSandbox { command_prefix: bubblewrap.command_prefix(&spec), file_hook }))
    }

    /// Puts an agent into bubblewrap, unless it is one that sandboxes its commands itself.
    pub(super) fn wrap(
        &self,
        command: PreparedCommand,
        git: &Git,
        job: &Job,
        protected: &PathSet,
        access: RepositoryAccess,
    ) -> Result<ConfinedCommand, Error> {
        let (Self::Bubblewrap(bubblewrap), None) = (self, command.agent) else {
            return Ok(ConfinedCommand { command, wrapping: AgentWrapping::No });
        };
        let spec = SandboxSpec::for_agent(git, job, protected)?.for_access(access);
        if let Some(temporary) = &spec.temporary {
            atomic::remove_any(temporary)?;
            atomic::ensure_folder(temporary)?;
        }
        Ok(ConfinedCommand { command: bubblewrap.wrap(command, &spec), wrapping: AgentWrapping::Yes })
    }
}
