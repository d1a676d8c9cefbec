//! What the evaluation has to know about the agents that a trial's configuration names.

use std::path::{Path, PathBuf};

use runner_core::agents::agent_of_kind;
use runner_core::config::{Config as RunnerConfig, Executor, ExecutorKind};

/// Whether every agent reports failures of its provider on its own output, where no code of the agent's work can write.
pub(crate) fn report_on_their_own_output(config: &str) -> bool {
    let config = RunnerConfig::decode(config.as_bytes());
    config.is_ok_and(|config| executors(&config).all(|executor| agent_of_kind(executor.kind).is_some()))
}

/// Every agent that a configuration can start.
fn executors(config: &RunnerConfig) -> impl Iterator<Item = &Executor> {
    std::iter::once(&config.executor).chain(config.ladder.iter().map(|rung| &rung.executor))
}

/// The existing folders below the home folder in which the configured agents keep their logins and state.
pub(crate) fn state_folders(config: &str) -> Vec<PathBuf> {
    let Ok(config) = RunnerConfig::decode(config.as_bytes()) else { return Vec::new() };
    let Some(home) = std::env::var_os("HOME") else { return Vec::new() };
    let mut folders = Vec::new();
    for executor in executors(&config) {
        let names: &[&str] = match executor.kind {
            ExecutorKind::Codex => &[".codex"],
            ExecutorKind::Claude => &[".claude"],
            ExecutorKind::Command => {
                executor.preset.map_or(&[], |preset| preset.agent().surroundings.state_dirs)
            }
            ExecutorKind::Acp | ExecutorKind::Script => &[],
        };
        folders.extend(names.iter().map(|name| Path::new(&home).join(name)));
    }
    folders.retain(|folder| folder.exists());
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_native_agents_report_on_their_own_output() {
        let reports = |kind: &str| report_on_their_own_output(&format!("[executor]\n{kind}\n"));
        assert!(reports("kind = \"codex\"") && reports("kind = \"claude\""));
        assert!(!reports("kind = \"command\"\npreset = \"gemini\""));
        assert!(!reports("kind = \"script\"\nscenario = \"x\""));
        let ladder = "[executor]\nkind = \"codex\"\n[[ladder]]\nafter_attempts = 1\nkind = \"command\"\npreset = \"gemini\"\n";
        assert!(!report_on_their_own_output(ladder));
    }
}
