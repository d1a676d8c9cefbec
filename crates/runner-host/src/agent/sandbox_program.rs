//! The program that confines an agent: bubblewrap on Linux, Seatbelt on macOS, or a container.

use std::ffi::OsString;
use std::path::Path;

use runner_core::config::{Executor, SandboxMode};
use runner_core::text::one_line;
use supervise::{ExitReason, executables};

use super::podman::Podman;
use super::sandbox::{Bubblewrap, SandboxSpec, bubblewrap_fix, exit_inside_sandbox};
use super::sandbox_kind::SandboxKind;
use super::seatbelt::{SEATBELT_FIX, Seatbelt};
use crate::agent::command::PreparedCommand;

/// A sandbox that works on this machine.
#[derive(Clone, Debug)]
pub(crate) enum SandboxProgram {
    Bubblewrap(Bubblewrap),
    Seatbelt(Seatbelt),
    Podman(Podman),
}

/// Why there is no sandbox, and what fixes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoSandbox {
    pub(crate) why: String,
    pub(crate) fix: &'static str,
}

const PODMAN_FIX: &str =
    "install podman: apt-get install podman, or use another sandbox: runner config set executor.sandbox auto";

/// How a sandboxed agent relates to the program that the runner starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentWrapping {
    /// The agent is another process, in a namespace: signals go to it, not to the sandbox.
    Namespace,
    /// The agent is another process, and the sandbox forwards signals to it.
    Forwarding,
    /// The program is the agent.
    No,
}

impl AgentWrapping {
    /// How the agent ended, by the exit of the started program.
    pub(crate) fn exit_inside(self, exit: ExitReason) -> ExitReason {
        match self {
            Self::Namespace | Self::Forwarding => exit_inside_sandbox(exit),
            Self::No => exit,
        }
    }
}

impl SandboxProgram {
    /// Finds the sandbox that the configuration wants on this system, and runs it once.
    pub(crate) fn find(executor: &Executor, root: &Path) -> Result<Self, NoSandbox> {
        let no_sandbox = |fix| move |why| NoSandbox { why, fix };
        if executor.sandbox == SandboxMode::Podman {
            let image = executor.image.as_deref().unwrap_or_default();
            return Podman::find(root, image).map(Self::Podman).map_err(no_sandbox(PODMAN_FIX));
        }
        if cfg!(target_os = "macos") {
            return Seatbelt::find().map(Self::Seatbelt).map_err(no_sandbox(SEATBELT_FIX));
        }
        Bubblewrap::find(root).map(Self::Bubblewrap).map_err(|why| {
            let fix = bubblewrap_fix(&why);
            NoSandbox { why, fix }
        })
    }

    pub(crate) fn kind(&self) -> SandboxKind {
        match self {
            Self::Bubblewrap(_) => SandboxKind::Bubblewrap,
            Self::Seatbelt(_) => SandboxKind::Seatbelt,
            Self::Podman(_) => SandboxKind::Podman,
        }
    }

    /// Its version and path, for `runner doctor`.
    pub(crate) fn describe(&self) -> String {
        let program = match self {
            Self::Bubblewrap(bubblewrap) => bubblewrap.program(),
            Self::Podman(podman) => podman.program(),
            Self::Seatbelt(_) => return "Seatbelt (sandbox-exec)".to_owned(),
        };
        let version = executables::version_of(program).map(|version| one_line(&version)).unwrap_or_default();
        format!("{version}, {}", program.display())
    }

    /// What it does not cover.
    pub(crate) fn gap(&self, has_network: bool) -> Option<String> {
        match self {
            Self::Bubblewrap(bubblewrap) => bubblewrap.scope().gap(has_network),
            // A container has a network of its own, and macOS has no abstract sockets.
            Self::Seatbelt(_) | Self::Podman(_) => None,
        }
    }

    pub(crate) fn wrapping(&self) -> AgentWrapping {
        match self {
            Self::Bubblewrap(_) => AgentWrapping::Namespace,
            Self::Seatbelt(_) => AgentWrapping::No,
            Self::Podman(_) => AgentWrapping::Forwarding,
        }
    }

    /// Wraps a whole command.
    pub(crate) fn wrap(&self, command: PreparedCommand, spec: &SandboxSpec) -> PreparedCommand {
        match self {
            Self::Bubblewrap(bubblewrap) => bubblewrap.wrap(command, spec),
            Self::Seatbelt(seatbelt) => seatbelt.wrap(command, spec),
            Self::Podman(podman) => podman.wrap(command, spec),
        }
    }

    /// The words to put before a command to run it in the sandbox, in the current folder.
    pub(crate) fn command_prefix(&self, spec: &SandboxSpec) -> Vec<OsString> {
        match self {
            Self::Bubblewrap(bubblewrap) => bubblewrap.command_prefix(spec),
            Self::Seatbelt(seatbelt) => seatbelt.command_prefix(spec),
            // The configuration refuses containers around the commands of an agent.
            Self::Podman(_) => Vec::new(),
        }
    }
}
