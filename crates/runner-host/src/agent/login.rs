//! Whether an agent is installed and logged in, as its files and variables show it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use runner_core::agents::{AGENTS, AgentSpec};
use runner_core::config::Executor;
use runner_core::detect::{AgentPresence, LoginState, login_places};
use supervise::executables;

/// The agents of the registry whose programs are on the PATH, outside of the repository.
pub fn installed_agents(root: &Path) -> Vec<AgentPresence> {
    let installed = AGENTS.into_iter().filter(|agent| executables::find(agent.program, Some(root)).is_some());
    installed.map(|agent| AgentPresence { agent, login: agent_login(agent) }).collect()
}

/// Whether the agent of an executor is logged in. A provider of the user's own has a login of its own.
pub fn executor_login(executor: &Executor) -> LoginState {
    match executor.agent() {
        Some(agent) if executor.base_url.is_none() => agent_login(agent),
        Some(_) | None => LoginState::Unknown,
    }
}

fn agent_login(agent: &AgentSpec) -> LoginState {
    let places = login_places(agent);
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let moved = places.moved.and_then(|moved| {
        let folder = env::var_os(moved.folder_variable).filter(|folder| !folder.is_empty())?;
        Some(PathBuf::from(folder).join(moved.file))
    });
    let home = env::var_os("HOME").map(PathBuf::from);
    let is_login = |file: &Path| match places.file_text {
        Some(text) => fs::read_to_string(file).is_ok_and(|content| content.contains(text)),
        None => file.exists(),
    };
    let in_home = || home.iter().any(|home| places.files.iter().any(|file| is_login(&home.join(file))));
    let has_file = moved.map_or_else(in_home, |file| file.exists());
    if has_file || places.variables.iter().any(is_set) {
        return LoginState::Found;
    }
    // macOS keeps logins in its key chain, and a preset supports providers that are not listed.
    if cfg!(target_os = "macos") || agent.is_preset() { LoginState::Unknown } else { LoginState::Missing }
}
