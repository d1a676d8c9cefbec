//! The agents that the runner knows by name: how each is started, what it says, and what its end means.
//!
//! Everything that differs from agent to agent stands here, one table and one reader each; what comes out is the
//! same for all: a [`CommandLine`] on the way in, [`AgentEvent`]s and a [`Conclusion`] on the way out.

mod claude;
mod claude_launch;
mod codex;
mod codex_launch;
mod event;
mod launch;
mod parse_cost;
mod parse_reset;
mod preset;
mod preset_lines;
mod provider_error;
pub mod scenario;
mod tool_event;
mod transcript;
mod truncate;

pub use claude_launch::can_be_started_through;
pub use codex_launch::{CodexToolSwitch, SWITCHES as CODEX_SWITCHES};
pub use event::{ActivityState, AgentEvent, AgentEventKind, FileAction, FileChange, PlanItem, PlanItemState};
pub use launch::{
    CommandLine, CommandSandbox, LaunchContext, SetupFile, Variables, agent_schema, command_line,
};
pub use preset::{Preset, PresetSpec};
pub use provider_error::ProcessFacts;
pub use transcript::{SessionIdentity, SessionResult, Transcript, TranscriptFormat};

use crate::config::ExecutorKind;

/// An agent that is started by a table of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKind {
    Codex,
    Claude,
}

/// What people and `doctor` need to know of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentFacts {
    /// The program, as it stands on the PATH.
    pub program: &'static str,
    /// The npm package that holds it.
    pub package: &'static str,
    /// The versions that the table was tried with.
    pub tested: &'static [&'static str],
    /// How to log in.
    pub login: &'static str,
    /// Variables that hold keys. The agent sees them, its commands do not.
    pub keys: &'static [&'static str],
    /// Other variables of its own that it sees.
    pub variables: &'static [&'static str],
    /// The variable that says where its login lies, and the folder in the user's home where it lies without it.
    pub home: (&'static str, &'static str),
    /// The file in it that is there after a login, on systems without a key chain.
    pub login_file: &'static str,
}

impl AgentKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Codex, Self::Claude];

    /// The agent behind a kind, if there is a table for it.
    pub fn of_kind(kind: ExecutorKind) -> Option<Self> {
        match kind {
            ExecutorKind::Codex => Some(Self::Codex),
            ExecutorKind::Claude => Some(Self::Claude),
            ExecutorKind::Command | ExecutorKind::Script => None,
        }
    }

    /// What is to be known of it.
    pub fn facts(self) -> AgentFacts {
        match self {
            Self::Codex => codex_launch::FACTS,
            Self::Claude => claude_launch::FACTS,
        }
    }

    /// The version in what the program says of itself, if it is one that the table was tried with.
    pub fn tested_version(self, told: &str) -> Option<&'static str> {
        let words = told.split_whitespace().map(|word| word.trim_end_matches(','));
        words.filter_map(|word| self.facts().tested.iter().find(|tested| **tested == word)).copied().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_agents_with_a_table_are_known_by_their_kind() {
        assert_eq!(AgentKind::of_kind(ExecutorKind::Codex), Some(AgentKind::Codex));
        assert_eq!(AgentKind::of_kind(ExecutorKind::Claude), Some(AgentKind::Claude));
        assert_eq!(AgentKind::of_kind(ExecutorKind::Command), None);
    }

    #[test]
    fn a_version_is_known_by_the_whole_word() {
        assert_eq!(AgentKind::Codex.tested_version("codex-cli 0.166.0, /usr/bin/codex"), Some("0.166.0"));
        assert_eq!(AgentKind::Claude.tested_version("2.1.197 (Claude Code)"), Some("2.1.197"));
        assert_eq!(AgentKind::Claude.tested_version("2.1.1971 (Claude Code)"), None);
        assert_eq!(AgentKind::Codex.tested_version(""), None);
    }
}
