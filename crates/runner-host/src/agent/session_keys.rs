//! The keys that a session of a known agent has: in its environment, and in the files of its login. The redactor must know them
//! before the session starts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use runner_core::agents::{AgentSpec, CommandLine};
use runner_core::config::Executor;
use runner_core::redact::{is_key_name, keys_in_login_file};

use crate::fs::atomic;
use crate::redaction::SessionKey;

const LOGIN_BYTES_MAX: u64 = 1 << 20;

pub(super) fn of_session(agent: &AgentSpec, executor: &Executor, line: &CommandLine) -> Vec<SessionKey> {
    let mut keys = of_environment(agent, executor, line);
    for file in login_files(agent) {
        let text = atomic::read(&file, LOGIN_BYTES_MAX).ok().flatten().unwrap_or_default();
        let values = keys_in_login_file(&String::from_utf8_lossy(&text));
        let key =
            |value: String| SessionKey { source: file.display().to_string(), value: value.into_bytes() };
        keys.extend(values.into_iter().map(key));
    }
    keys
}

/// The variables that are named like keys, and those that hold a key whatever their name is.
fn of_environment(agent: &AgentSpec, executor: &Executor, line: &CommandLine) -> Vec<SessionKey> {
    let of_native = agent.native().map(|native| native.login.key_variables).unwrap_or_default();
    let known = of_native.iter().chain(agent.surroundings.login.key_variables).copied();
    let known: Vec<&str> = known.chain(executor.key_env.as_deref()).collect();
    let is_key =
        |name: &OsStr| known.iter().any(|known| name == *known) || is_key_name(&name.to_string_lossy());
    let is_path = |value: &OsStr| Path::new(value).is_absolute() && Path::new(value).exists();
    let variables = line.environment.iter().filter(|(name, value)| is_key(name) && !is_path(value));
    let key = |source: String, value: &OsStr| SessionKey { source, value: value.as_bytes().to_vec() };
    variables.map(|(name, value)| key(name.to_string_lossy().into_owned(), value)).collect()
}

/// The files in which the user's login is.
fn login_files(agent: &AgentSpec) -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let login = &agent.surroundings.login;
    let paths = login.files.iter().chain(login.renewed_files).chain(login.read_files);
    let mut files: Vec<PathBuf> =
        paths.filter_map(|path| login.place(path, &|name| variable(name))).collect();
    if let Some(native) = agent.native() {
        let folder = variable(native.login.home_variable).map(PathBuf::from);
        let in_home = || variable("HOME").map(|home| Path::new(&home).join(native.login.home_dir));
        files.extend(folder.or_else(in_home).map(|folder| folder.join(native.login.file)));
    }
    files.iter().filter_map(|file| file.canonicalize().ok()).collect()
}
