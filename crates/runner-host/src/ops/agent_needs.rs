//! What an agent needs besides its program and its login: Node of some version, and for a recorder `curl` or a recording.

use std::path::Path;

use runner_core::agents::AgentSpec;
use runner_core::config::Executor;
use supervise::executables;

use super::preflight::PreflightProblem;
use crate::agent::sandbox::expand_home;

/// What is missing, if something is.
pub(super) fn missing_need(root: &Path, executor: &Executor, agent: &AgentSpec) -> Option<PreflightProblem> {
    old_node(root, executor, agent).or_else(|| missing_recording(root, executor))
}

/// Most presets run in the user's Node, and some need a newer one. A program of the user's own may bring another.
fn old_node(root: &Path, executor: &Executor, agent: &AgentSpec) -> Option<PreflightProblem> {
    let needed = agent.surroundings.node_min.filter(|_| executor.program.is_none())?;
    let fix = format!("install Node {needed} or newer, so that it is the first `node` on PATH");
    let problem = |found: String| Some(PreflightProblem::new("agent", found, fix));
    let Some(node) = executables::find("node", Some(root)) else {
        return problem(format!("{} needs Node {needed}, and `node` is not on PATH", agent.name));
    };
    let version = executables::version_of(&node)?;
    let major = version.trim().trim_start_matches('v').split('.').next()?.parse::<u32>().ok()?;
    if major >= needed {
        return None;
    }
    problem(format!("{} needs Node {needed}, and `node` is {}", agent.name, version.trim()))
}

fn missing_recording(root: &Path, executor: &Executor) -> Option<PreflightProblem> {
    let problem = |found: String, fix: &str| Some(PreflightProblem::new("agent", found, fix.to_owned()));
    if let Some(folder) = &executor.replay {
        let is_there = expand_home(folder).is_some_and(|folder| root.join(folder).is_dir());
        let fix = "name the folder of a recorded run: runner config set executor.replay FOLDER";
        return if is_there { None } else { problem(format!("there is no recorded run in `{folder}`"), fix) };
    }
    if executor.record && executables::find("curl", Some(root)).is_none() {
        let fix = "install curl, or runner config set executor.record false";
        return problem("`record = true` needs `curl`, which is not on PATH".to_owned(), fix);
    }
    None
}
