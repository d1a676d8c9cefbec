//! Whether an agent is installed and logged in, as its files and variables show it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use runner_core::agents::{AGENTS, AgentSpec};
use runner_core::config::Executor;
use runner_core::detect::{AgentPresence, LoginState, login_places};
use runner_core::redact::keys_in_login_file;
use serde_json::Value;
use supervise::executables;

use crate::clock::now_ms;

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

/// The file with the login of an executor's agent, if it exists and holds none that works.
pub(crate) fn unusable_login_file(executor: &Executor) -> Option<PathBuf> {
    let agent = executor.agent().filter(|agent| !agent.is_preset())?;
    let places = login_places(agent);
    let moved = places.moved.and_then(|moved| {
        let folder = env::var_os(moved.folder_variable).filter(|folder| !folder.is_empty())?;
        Some(PathBuf::from(folder).join(moved.file))
    });
    let in_home = || Some(PathBuf::from(env::var_os("HOME")?).join(places.files.first()?));
    moved.or_else(in_home).filter(|file| file.exists() && !holds_login(file))
}

/// Whether a file of a native agent holds a login: a key or a token, and not an expired one that cannot be renewed.
fn holds_login(file: &Path) -> bool {
    let Ok(text) = fs::read_to_string(file) else { return false };
    let Ok(login) = serde_json::from_str::<Value>(&text) else { return false };
    let keys = keys_in_login_file(&text);
    let is_empty = keys.iter().all(String::is_empty) && !has_long_text(&login);
    let token = login.get("claudeAiOauth").unwrap_or(&Value::Null);
    let ends_ms = token.get("expiresAt").and_then(Value::as_u64);
    let can_renew = token.get("refreshToken").and_then(Value::as_str).is_some_and(|token| !token.is_empty());
    !is_empty && (can_renew || ends_ms.is_none_or(|ends_ms| ends_ms > now_ms()))
}

/// Whether there is a text that could be a token, whatever its name is.
fn has_long_text(value: &Value) -> bool {
    const TOKEN_BYTES_MIN: usize = 32;
    match value {
        Value::String(text) => text.len() >= TOKEN_BYTES_MIN,
        Value::Array(items) => items.iter().any(has_long_text),
        Value::Object(members) => members.values().any(has_long_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
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
        None if agent.is_preset() => file.exists(),
        None => holds_login(file),
    };
    let in_home = || home.iter().any(|home| places.files.iter().any(|file| is_login(&home.join(file))));
    let has_file = moved.map_or_else(in_home, |file| is_login(&file));
    if has_file || places.variables.iter().any(is_set) {
        return LoginState::Found;
    }
    // macOS keeps logins in its key chain, and a preset supports providers that are not listed.
    if cfg!(target_os = "macos") || agent.is_preset() { LoginState::Unknown } else { LoginState::Missing }
}
