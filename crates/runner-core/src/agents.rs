//! The registry of agents: [`AGENTS`] lists every program the runner can start by name, with one file per agent.
//!
//! An agent's file holds all the runner knows about it ([`AgentSpec`]): program, package, command line, output parser
//! and failure classes. Everything else (configuration, `doctor`, `conformance`, the evaluation) reads the list. The
//! shared parts are the command line on the way in ([`CommandLine`]) and, on the way out, the events ([`AgentEvent`])
//! and the result ([`SessionResult`]) of a session, which look the same for every agent.

mod event;
mod launch;
mod parse_cost;
mod parse_reset;
mod preset;
mod preset_session;
mod provider_error;
pub mod scenario;
mod spec;
mod tool_event;
mod transcript;
mod truncate;

mod acp;
mod claude;
mod codex;
mod copilot;
mod gemini;
mod grok;
mod kilo;
mod opencode;
mod pi;
mod qwen;

pub use acp::{ACP_OUTPUT, AcpLine, AcpPermission};
pub use claude::can_launch_commands_through;
pub use event::{ActivityState, AgentEvent, AgentEventKind, FileAction, FileChange, PlanItem, PlanItemState};
pub use launch::{
    AnswerFiles, CommandLine, CommandSandbox, LaunchContext, LaunchUser, RepositoryAccess, SetupFile,
    SetupLink, Variables, agent_schema,
};
pub use preset::Preset;
pub use provider_error::ProcessFacts;
pub use spec::{
    AgentLogin, AgentProvider, AgentSandbox, AgentSpec, MovableFolder, NativeAgent, NativeFeatures,
    OutputFormat, PresetLogin, ProviderRoute, ReportedUsage, SHELL_STARTUP_FILES, Surroundings, ToolControl,
    ToolSwitch,
};
pub use transcript::{SessionIdentity, SessionResult, Transcript};

use crate::config::ExecutorKind;

/// Every agent the runner knows, in the order in which help and documents list them. To add one, write its file and
/// add its line here; CONTRIBUTING.md has the steps.
pub static AGENTS: [&AgentSpec; 9] = [
    &codex::SPEC,
    &claude::SPEC,
    &opencode::SPEC,
    &gemini::SPEC,
    &qwen::SPEC,
    &copilot::SPEC,
    &pi::SPEC,
    &kilo::SPEC,
    &grok::SPEC,
];

/// The agent with this name.
pub fn agent_named(name: &str) -> Option<&'static AgentSpec> {
    AGENTS.into_iter().find(|agent| agent.name == name)
}

/// The agent that a `kind` of the configuration names. `acp`, `command` and `script` name none.
pub fn agent_of_kind(kind: ExecutorKind) -> Option<&'static AgentSpec> {
    AGENTS.into_iter().find(|agent| agent.native().is_some_and(|native| native.kind == kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lower_case() {
        for (index, agent) in AGENTS.into_iter().enumerate() {
            assert_eq!(AGENTS.into_iter().position(|other| other.name == agent.name), Some(index));
            assert!(agent.name.bytes().all(|byte| byte.is_ascii_lowercase()), "{}", agent.name);
        }
    }

    #[test]
    fn native_agents_are_found_by_kind() {
        for kind in [ExecutorKind::Codex, ExecutorKind::Claude] {
            assert_eq!(agent_of_kind(kind).map(|agent| agent.name), Some(kind.as_str()));
        }
        for kind in [ExecutorKind::Acp, ExecutorKind::Command, ExecutorKind::Script] {
            assert_eq!(agent_of_kind(kind), None);
        }
    }

    #[test]
    fn a_tested_version_matches_as_a_whole_word() {
        let tested = |name: &str, output: &str| agent_named(name).unwrap().tested_version(output);
        assert_eq!(tested("codex", "codex-cli 0.169.0, /usr/bin/codex"), Some("0.169.0"));
        assert_eq!(tested("claude", "2.1.326 (Claude Code)"), Some("2.1.326"));
        assert_eq!(tested("claude", "2.1.3261 (Claude Code)"), None);
        assert_eq!(tested("codex", ""), None);
    }
}
