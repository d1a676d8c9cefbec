//! A task's own acceptance commands: `nodes/<node-id>/checks.toml` and the files beside it, decoded strictly.
//!
//! The checks of a task are frozen by the commit in which they appear: only the user changes them afterwards. Their files are
//! kept beside checks.toml until it is the task's turn, so that a test for later work does not fail the guard now.

mod frozen;
mod path;
mod record;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use frozen::{CheckFilePath, frozen_node};
pub use path::{CheckFileName, CheckPath};
pub use record::{CheckEnd, CheckExit, CheckRecord, CheckRed, RedFacts, RedKind, RedRecord, TaskProof};
pub use write::{with_check, without_check};

use crate::config::{CommandArgv, Seconds};
use crate::layout::checks_path;
use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::strict::{BoundedInt, DocumentProblem, DocumentProblems, FieldReader, TomlTable, decode_utf8};

/// The most checks of one task.
const CHECKS_MAX: usize = 100;
/// The number of an acceptance criterion, from 1.
pub type PointNumber = BoundedInt<1, 10_000>;

/// The name of a check: letters, digits, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct CheckName(String);

impl CheckName {
    const BYTES_MAX: usize = 64;

    /// The name, if it is valid.
    pub fn new(text: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let is_name = (1..=Self::BYTES_MAX).contains(&text.len())
            && text.bytes().all(is_allowed)
            && !text.starts_with(['.', '-']);
        is_name.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CheckName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CheckName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).ok_or_else(|| {
            serde::de::Error::custom("expected a name of letters, digits, `.`, `_` and `-`, at most 64")
        })
    }
}

crate::strict::inline_schema!(CheckName, { "type": "string" });

/// Whether a check must fail before the work on its task begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RedRule {
    /// It must fail: a check that succeeds before the work proves nothing about it.
    #[default]
    Required,
    /// It may succeed from the start.
    Any,
}

/// One acceptance command of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: CheckName,
    pub command: CommandArgv,
    /// The acceptance criteria that it decides; empty for all.
    pub covers: Vec<PointNumber>,
    /// Where its files go in the repository while the task is open, and from which file beside checks.toml.
    pub files: BTreeMap<CheckPath, CheckFileName>,
    pub timeout_secs: Seconds,
    pub red: RedRule,
    /// A JUnit report that the command writes.
    pub junit: Option<CheckPath>,
}

impl Check {
    /// Whether it decides an acceptance criterion, numbered from 1.
    pub fn decides(&self, point: usize) -> bool {
        let is_named = |covered: &PointNumber| usize::try_from(covered.get()) == Ok(point);
        self.covers.is_empty() || self.covers.iter().any(is_named)
    }
}

/// The checks of a task, with a digest of everything that they consist of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskChecks {
    pub checks: Vec<Check>,
    /// Over checks.toml and the files that it names.
    pub digest: Sha256,
}

/// What is wrong with the checks of a task. Each is for their author to fix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChecksFault {
    #[error("{0}")]
    Document(DocumentProblem),
    #[error("check `{check}`: the file `{file}` is not beside checks.toml")]
    MissingFile { check: CheckName, file: CheckFileName },
    #[error("check `{check}`: `covers` has {point}, but the task has {of} acceptance criteria")]
    NoSuchPoint { check: CheckName, point: i64, of: usize },
    #[error("check `{check}`: `{path}` {why}")]
    Destination { check: CheckName, path: CheckPath, why: &'static str },
}

/// The faults in the checks of one task.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("task `{node}`: `{}`: {}", checks_path(.node), fault_lines(.faults))]
pub struct ChecksError {
    pub node: NodeId,
    pub faults: Vec<ChecksFault>,
}

fn fault_lines(faults: &[ChecksFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Decodes checks.toml strictly; reports every problem.
pub fn decode(bytes: &[u8]) -> Result<Vec<Check>, DocumentProblems> {
    let mut file = FieldReader::of_toml(decode_utf8(bytes)?);
    let mut names = BTreeSet::new();
    let mut destinations = BTreeSet::new();
    let checks = file.tables("check", |table| take_check(table, &mut names, &mut destinations));
    if checks.is_empty() && !file.has_problem("check") {
        file.report_rule("check", "is missing: add at least one [[check]]");
    }
    if checks.len() > CHECKS_MAX {
        file.report_rule("check", format!("has {} entries: at most {CHECKS_MAX} are allowed", checks.len()));
    }
    file.finish_with(checks.into_iter().flatten().collect())
}

fn take_check(
    table: &mut TomlTable<'_>,
    names: &mut BTreeSet<CheckName>,
    destinations: &mut BTreeSet<CheckPath>,
) -> Option<Check> {
    let name: Option<CheckName> = table.required("name");
    let command: Option<CommandArgv> = table.required("command");
    let covers: Vec<PointNumber> = table.optional("covers").unwrap_or_default();
    let files: BTreeMap<CheckPath, CheckFileName> = table.any_value("files").unwrap_or_default();
    let timeout_secs = table.optional("timeout_secs").unwrap_or_else(BoundedInt::fixed::<600>);
    let red = table.optional("red").unwrap_or_default();
    let junit = table.optional("junit");
    if table.has("covers") && covers.is_empty() && !table.has_problem("covers") {
        table.report_rule("covers", "is empty: leave it out to cover every acceptance criterion");
    }
    if let Some(name) = &name
        && !names.insert(name.clone())
    {
        table.report_rule("name", format!("is `{name}` again: names must be unique in the file"));
    }
    for path in files.keys() {
        if !destinations.insert(path.clone()) {
            table.report_rule("files", format!("has `{path}` again: two checks cannot share a destination"));
        }
    }
    Some(Check { name: name?, command: command?, covers, files, timeout_secs, red, junit })
}

impl TaskChecks {
    /// Reads the checks of a task. `digest_of` returns the digest of a file beside checks.toml, if it exists.
    pub fn read(
        toml: &[u8],
        mut digest_of: impl FnMut(&CheckFileName) -> Option<Sha256>,
    ) -> Result<Self, Vec<ChecksFault>> {
        let checks = decode(toml).map_err(|problems| {
            problems.into_vec().into_iter().map(ChecksFault::Document).collect::<Vec<_>>()
        })?;
        let mut digests = BTreeMap::new();
        let mut faults = Vec::new();
        for check in &checks {
            for file in check.files.values() {
                match digest_of(file) {
                    Some(digest) => drop(digests.insert(file.clone(), digest)),
                    None => faults
                        .push(ChecksFault::MissingFile { check: check.name.clone(), file: file.clone() }),
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut text = format!("checks.toml {}\n", Sha256::of(toml));
        for (file, digest) in &digests {
            text.push_str(&format!("{file} {digest}\n"));
        }
        Ok(Self { checks, digest: Sha256::of(text.as_bytes()) })
    }

    /// The acceptance criteria that checks name and that a task does not have.
    pub fn point_faults(&self, acceptance: usize) -> Vec<ChecksFault> {
        let mut faults = Vec::new();
        for check in &self.checks {
            let beyond = check.covers.iter().map(|point| point.get());
            for point in beyond.filter(|point| usize::try_from(*point).is_ok_and(|point| point > acceptance))
            {
                let check = check.name.clone();
                faults.push(ChecksFault::NoSuchPoint { check, point, of: acceptance });
            }
        }
        faults
    }

    /// Every destination, with the file beside checks.toml that goes there.
    pub fn files(&self) -> impl Iterator<Item = (&CheckPath, &CheckFileName)> {
        self.checks.iter().flat_map(|check| &check.files)
    }

    /// Whether a path of the repository is the destination of a check file.
    pub fn is_destination(&self, path: &str) -> bool {
        self.files().any(|(destination, _)| destination.as_str() == path)
    }
}

#[cfg(test)]
mod tests;
