//! The adapter of a loop runner: one TOML file that defines how to set it up, start it and read what it reports.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::BenchError;
use crate::row::{ProviderFault, Row};

/// A loop runner under test. docs/reference/conformance-adapters.md has the meaning of each key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    pub name: String,
    /// The registry's package, for the table.
    pub package: String,
    pub homepage: Option<String>,
    /// What the reader of the results must know about the settings.
    #[serde(default)]
    pub settings: String,
    /// A shell script that prints the version.
    pub version: String,
    /// A shell script that writes the tool's files into the fresh repository. The bench commits them.
    #[serde(default)]
    pub setup: String,
    /// A shell script that runs the tool to its end.
    pub run: String,
    /// A shell script that succeeds if the tool reports that all work is done.
    #[serde(default = "always")]
    pub complete: String,
    /// A shell script that prints the branch with the tool's work.
    #[serde(default = "main_branch")]
    pub branch: String,
    /// The time limit of a session in seconds, if the tool has one that cannot be set.
    pub fixed_limit_secs: Option<u32>,
    pub agent: AgentSettings,
    /// Features of the tool that rows need.
    #[serde(default)]
    pub features: Vec<String>,
    /// Shell functions of the agent that depend on the tool.
    #[serde(default)]
    pub actions: BTreeMap<String, String>,
    /// Why rows do not apply to this tool.
    #[serde(default)]
    pub not_applicable: BTreeMap<String, String>,
    /// Remarks on the results of rows.
    #[serde(default)]
    pub remarks: BTreeMap<String, String>,
    /// The file, which scripts of the adapter may need.
    #[serde(skip)]
    pub path: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    pub kind: AgentKind,
    /// The last message of an agent that claims to be done.
    #[serde(default)]
    pub done: String,
    /// The last message of an agent that is not done.
    #[serde(default)]
    pub open: String,
    /// A shell script with which the agent gives its answer: `$answer` is `done`, `open`, `prose` or `split`, and `$words` the
    /// message. Claude Code gives the message itself.
    #[serde(default)]
    pub give_answer: String,
    /// Whether the tool has its agent commit the work.
    #[serde(default)]
    pub commits: bool,
}

/// The agent that the tool starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// The real Claude Code, whose provider is the scripted model.
    Claude,
    /// A program of the bench.
    Command,
}

fn always() -> String {
    "true".to_owned()
}

fn main_branch() -> String {
    "echo main".to_owned()
}

impl Adapter {
    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let text = fs::read_to_string(path).map_err(BenchError::io("read", path))?;
        let mut adapter: Self = toml::from_str(&text)
            .map_err(|error| BenchError::Adapter { path: path.to_owned(), problem: error.to_string() })?;
        adapter.path = std::path::absolute(path).map_err(BenchError::io("find", path))?;
        Ok(adapter)
    }

    /// The folder with the adapter's own scripts.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Checks that every row either can be run or has a reason, and that no reason names an unknown row.
    pub fn check(&self, rows: &[Row]) -> Result<(), BenchError> {
        let problem = |problem| Err(BenchError::Adapter { path: self.path.clone(), problem });
        for name in self.not_applicable.keys().chain(self.remarks.keys()) {
            if rows.iter().all(|row| row.name != *name) {
                return problem(format!("there is no row `{name}`"));
            }
        }
        for row in rows.iter().filter(|row| !self.not_applicable.contains_key(&row.name)) {
            if let Some(missing) = self.missing(row) {
                return problem(format!(
                    "row `{}` needs `{missing}`: define it in [actions] or `features`, or give a reason in [not_applicable]",
                    row.name
                ));
            }
        }
        Ok(())
    }

    /// An action or feature that the row needs and the adapter does not have.
    fn missing(&self, row: &Row) -> Option<String> {
        let is_known = |need: &String| self.actions.contains_key(need) || self.features.contains(need);
        let fault = row.fault.filter(|_| self.agent.kind == AgentKind::Command);
        let of_fault = fault.map(ProviderFault::action).map(str::to_owned);
        row.needs.iter().cloned().chain(of_fault).find(|need| !is_known(need))
    }
}
