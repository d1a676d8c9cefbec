//! What the evaluation has to know about the agents that a trial's configuration names.

use std::path::PathBuf;

use runner_core::agents::agent_of_kind;
use runner_core::config::{Config as RunnerConfig, Executor, SandboxMode};

/// Whether every agent has a kind of its own: it reports failures of its provider on its own output, and not in a file.
pub(crate) fn are_native(config: &str) -> bool {
    let config = RunnerConfig::decode(config.as_bytes());
    config.is_ok_and(|config| executors(&config).all(|executor| agent_of_kind(executor.kind).is_some()))
}

/// Every agent that a configuration can start.
fn executors(config: &RunnerConfig) -> impl Iterator<Item = &Executor> {
    std::iter::once(&config.executor).chain(config.ladder.iter().map(|rung| &rung.executor))
}

/// The programs of the configured agents: names on the PATH, or paths.
pub(crate) fn programs(config: &str) -> Vec<String> {
    let Ok(config) = RunnerConfig::decode(config.as_bytes()) else { return Vec::new() };
    let program = |executor: &Executor| match (&executor.program, executor.agent(), &executor.command) {
        (Some(program), _, _) => Some(program.clone()),
        (None, Some(agent), _) => Some(agent.program.to_owned()),
        (None, None, Some(command)) => command.words().first().cloned(),
        (None, None, None) => None,
    };
    executors(&config).filter_map(program).collect()
}

/// What the configured agents keep in the user's home; all paths are relative to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentState {
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) login_files: Vec<LoginFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoginFile {
    pub(crate) path: String,
    /// Whether only the agent's own program can write it, so that a change is a renewal: a sandbox keeps the model's commands
    /// away from it.
    pub(crate) is_renewable: bool,
}

impl AgentState {
    pub(crate) fn of(config: &str) -> Self {
        let mut state = Self::default();
        let Ok(config) = RunnerConfig::decode(config.as_bytes()) else { return state };
        for executor in executors(&config) {
            let Some(agent) = executor.agent() else { continue };
            let is_renewable = agent.native.is_some() && executor.sandbox != SandboxMode::Off;
            state.folders.extend(agent.state_folders().into_iter().map(PathBuf::from));
            let files = agent.login_files().into_iter();
            state.login_files.extend(files.map(|path| LoginFile { path, is_renewable }));
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_agents_with_a_kind_of_their_own_are_native() {
        let native = |kind: &str| are_native(&format!("[executor]\n{kind}\n"));
        assert!(native("kind = \"codex\"") && native("kind = \"claude\""));
        assert!(!native("kind = \"command\"\npreset = \"gemini\""));
        assert!(!native("kind = \"script\"\nscenario = \"x\""));
        let ladder = "[executor]\nkind = \"codex\"\n[[ladder]]\nafter_attempts = 1\nkind = \"command\"\npreset = \"gemini\"\n";
        assert!(!are_native(ladder));
    }

    #[test]
    fn only_logins_that_commands_cannot_write_are_renewable() {
        let files = |config: &str| AgentState::of(config).login_files;
        let file = |path: &str, is_renewable| LoginFile { path: path.to_owned(), is_renewable };
        assert_eq!(files("[executor]\nkind = \"codex\"\n"), [file(".codex/auth.json", true)]);
        let open = "[executor]\nkind = \"claude\"\nsandbox = \"off\"\n";
        assert_eq!(files(open), [file(".claude/.credentials.json", false)]);
        let preset = "[executor]\nkind = \"command\"\npreset = \"grok\"\n";
        assert_eq!(files(preset), [file(".grok/auth.json", false)]);
        assert_eq!(
            AgentState::of("[executor]\nkind = \"script\"\nscenario = \"x\"\n"),
            AgentState::default()
        );
    }
}
