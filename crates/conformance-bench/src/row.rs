//! The rows of the bench, from `rows.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

const ROWS: &str = include_str!("rows.toml");

/// One agent that every tool is tested with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    pub what: String,
    pub expect: Expectation,
    /// What a session of the agent does, as a shell script.
    #[serde(default)]
    pub agent: String,
    #[serde(default)]
    pub answer: AgentAnswer,
    #[serde(default = "default_guard")]
    pub guard: String,
    /// What holds if the work is done [default: the hidden check, or else the guard].
    pub truth: Option<String>,
    /// A check of the user that the agent does not see.
    pub check: Option<String>,
    /// Further files of the repository.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Files that the agent must not change, besides the guard.
    #[serde(default)]
    pub protected: Vec<String>,
    #[serde(default = "default_tasks")]
    pub tasks: Vec<String>,
    /// Actions and features that the adapter must have.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Whether the session never ends by itself.
    #[serde(default)]
    pub hangs: bool,
    /// The limit on silence that the tool gets, if it has such a limit.
    #[serde(default = "default_idle_secs")]
    pub idle_secs: u32,
    /// The maximum of sessions that the tool gets.
    #[serde(default = "default_iterations")]
    pub iterations: u32,
    #[serde(default)]
    pub floods: bool,
    /// How the agent's provider fails.
    pub fault: Option<ProviderFault>,
    /// Whether a tool that still runs at the end of the time has only waited.
    #[serde(default)]
    pub may_wait: bool,
}

/// What the tool must report in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expectation {
    Complete,
    Open,
    /// Either, as long as it is true.
    Truth,
}

impl Expectation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Open => "open",
            Self::Truth => "the truth",
        }
    }
}

/// The last words of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentAnswer {
    #[default]
    Done,
    Open,
    Prose,
    Nothing,
}

impl AgentAnswer {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Open => "open",
            Self::Prose => "prose",
            Self::Nothing => "nothing",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderFault {
    UsageLimit,
    NotLoggedIn,
}

impl ProviderFault {
    /// The action of an agent program that reports it.
    pub fn action(self) -> &'static str {
        match self {
            Self::UsageLimit => "usage_limit",
            Self::NotLoggedIn => "not_logged_in",
        }
    }
}

fn default_guard() -> String {
    "test -f ok".to_owned()
}

fn default_tasks() -> Vec<String> {
    vec!["Create the file ok".to_owned()]
}

fn default_idle_secs() -> u32 {
    30
}

fn default_iterations() -> u32 {
    4
}

impl Row {
    /// The shell command that decides whether the work is done.
    pub fn truth(&self) -> &str {
        self.truth.as_deref().or(self.check.as_deref()).unwrap_or(&self.guard)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowTable {
    row: Vec<Row>,
}

/// All rows, in the order of the table.
pub fn rows() -> Result<Vec<Row>, toml::de::Error> {
    toml::from_str::<RowTable>(ROWS).map(|table| table.row)
}
