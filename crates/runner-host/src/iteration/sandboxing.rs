//! Which sandbox a session gets, and the agent inside it.

use runner_core::agents::{AgentSandbox, AgentSpec, CommandSandbox};
use runner_core::config::SandboxMode;
use runner_core::step::Job;

use super::{OpenIteration, RepoWorld};
use crate::agent::claude_file_hook;
use crate::agent::command::PreparedCommand;
use crate::agent::sandbox::{
    Bubblewrap, SANDBOX_FIX, SandboxKind, SandboxSpec, folders_of, obstacle, shared_temporary,
};
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::PathSet;

impl RepoWorld<'_> {
    /// What keeps the session of a job in. Refuses one that must not run without a sandbox where there is none: because
    /// the configuration says so, or because its node limits what only a sandbox can.
    pub(super) fn sandbox_for(&mut self, job: &Job) -> Result<SandboxKind, Error> {
        if job.executor.sandbox == SandboxMode::Off {
            return Ok(SandboxKind::None);
        }
        if sandbox_of(job) == Some(AgentSandbox::BuiltIn) {
            return Ok(SandboxKind::Own);
        }
        let is_needed = job.executor.sandbox == SandboxMode::Require
            || job.tools.network == Some(false)
            || job.tools.writable.is_some();
        let root = self.git.root();
        let found = self.sandbox.get_or_insert_with(|| Bubblewrap::find(root));
        let missing = found.as_ref().err().map(|why| (why.clone(), SANDBOX_FIX));
        match missing.or_else(|| obstacle(&self.git, job.executor.agent())) {
            None => Ok(SandboxKind::Bubblewrap),
            Some((why, fix)) if is_needed => Err(UserError::NoSandbox { why, fix }.into()),
            Some(_) => Ok(SandboxKind::None),
        }
    }

    /// What keeps Claude Code in: its commands run inside bubblewrap, and a hook refuses files outside. It stays outside
    /// itself, because it renews its login in the user's home, with a lock beside its folder there.
    pub(super) fn fence(&self, job: &Job, bench: &OpenIteration) -> Result<Option<CommandSandbox>, Error> {
        let (SandboxKind::Bubblewrap, Some(Ok(bubblewrap)), Some(AgentSandbox::AroundCommands)) =
            (bench.sandbox, &self.sandbox, sandbox_of(job))
        else {
            return Ok(None);
        };
        let room =
            SandboxSpec::for_commands(&self.git, job, self.at_head.as_ref().unwrap_or(&PathSet::new()))?;
        let folders = folders_of(job).into_iter().chain(shared_temporary()).collect();
        let file_hook = claude_file_hook::command(self.git.root(), folders)?;
        Ok(Some(CommandSandbox { command_prefix: bubblewrap.before_commands(&room), file_hook }))
    }

    /// The agent, inside what the bench says; none where it is not to be wrapped.
    pub(super) fn confined(
        &self,
        program: PreparedCommand,
        job: &Job,
        bench: &OpenIteration,
    ) -> Result<(PreparedCommand, AgentWrapping), Error> {
        let (SandboxKind::Bubblewrap, Some(Ok(bubblewrap)), None) =
            (bench.sandbox, &self.sandbox, program.agent)
        else {
            return Ok((program, AgentWrapping::No));
        };
        let room = SandboxSpec::of(&self.git, job, self.at_head.as_ref().unwrap_or(&PathSet::new()))?;
        if let Some(temporary) = &room.temporary {
            atomic::clear(temporary)?;
            atomic::ensure_folder(temporary)?;
        }
        Ok((bubblewrap.around(program, &room), AgentWrapping::Yes))
    }
}

/// How a native agent is sandboxed; none for any other agent, which runs inside bubblewrap itself.
fn sandbox_of(job: &Job) -> Option<AgentSandbox> {
    job.executor.agent().and_then(AgentSpec::native).map(|native| native.sandbox)
}

/// Whether the program that is started is the sandbox, and the agent another one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentWrapping {
    Yes,
    No,
}
