//! What a session may write to and reach, as its prompt lists it.

use crate::config::{Executor, ExecutorKind, NetworkAccess, SandboxMode};
use crate::model::tools::Tools;

/// What the configuration gives a session. Whether a sandbox works depends on the machine, which a prompt must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionAccess {
    /// Whether the session runs in a sandbox where one works.
    pub has_sandbox: bool,
    pub has_network: bool,
    /// The network with which package managers can install something.
    pub installs: Option<NetworkAccess>,
    /// The folders outside the repository that it may write to.
    pub writable: Vec<String>,
}

impl SessionAccess {
    pub fn new(executor: &Executor, tools: &Tools) -> Self {
        let has_sandbox = executor.sandbox != SandboxMode::Off;
        // The sandbox of Codex has no network unless it is allowed.
        let is_closed = executor.kind == ExecutorKind::Codex && has_sandbox;
        let folders = tools.writable.iter().flatten().map(|folder| folder.as_str().to_owned());
        Self {
            has_sandbox,
            has_network: tools.network.unwrap_or(!is_closed),
            installs: executor
                .network
                .filter(|network| network.can_install() && tools.network != Some(false)),
            writable: executor.writable.iter().cloned().chain(folders).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn access(executor: &str, tools: &str) -> SessionAccess {
        let config = Config::decode(format!("[executor]\n{executor}\n").as_bytes()).unwrap();
        SessionAccess::new(&config.executor, &Tools::decode(tools.as_bytes()).unwrap())
    }

    #[test]
    fn network_and_sandbox_follow_the_agent_and_its_tools() {
        let both = |executor: &str, tools: &str| {
            let access = access(executor, tools);
            (access.has_sandbox, access.has_network)
        };
        assert_eq!(both("kind = \"codex\"", "{}"), (true, false));
        assert_eq!(both("kind = \"codex\"", "{\"network\": true}"), (true, true));
        assert_eq!(both("kind = \"codex\"\nsandbox = \"off\"", "{}"), (false, true));
        assert_eq!(both("kind = \"claude\"", "{}"), (true, true));
        assert_eq!(both("kind = \"claude\"", "{\"network\": false}"), (true, false));
    }

    #[test]
    fn folders_of_the_configuration_and_of_the_task_are_writable() {
        let access = access("kind = \"claude\"\nwritable = [\"~/.cache/x\"]", "{\"writable\": [\"/opt/y\"]}");
        assert_eq!(access.writable, ["~/.cache/x", "/opt/y"]);
    }
}
