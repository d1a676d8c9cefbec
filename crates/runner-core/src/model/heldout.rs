//! Held-out checks: acceptance commands in a folder outside of the repository, which no session can read. `runner start` records
//! their names and digests; commands, files and output are in no document and in no commit.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::{CheckExit, CheckName, CheckRed, PointNumber, RedKind, RedRule, TaskChecks};
use super::digest::Sha256;
use super::id::NodeId;

/// The held-out checks of a task, as the last `runner start` found them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldoutTask {
    pub node: NodeId,
    /// Over checks.toml and the files that it names.
    pub digest: Sha256,
    /// In the order of checks.toml.
    pub checks: Vec<HeldoutCheck>,
}

/// What is public about a held-out check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeldoutCheck {
    pub name: CheckName,
    /// The acceptance criteria that it decides; empty for all.
    pub covers: Vec<PointNumber>,
    /// Whether it must fail before the work.
    #[serde(deserialize_with = "crate::strict::word")]
    pub required: RedRule,
    /// How it ended before the first session on the task or below it; null if it has not run.
    #[serde(deserialize_with = "crate::strict::word_or_null")]
    pub red: Option<RedKind>,
}

impl HeldoutTask {
    /// What to record about the checks of a task.
    pub fn new(node: NodeId, task: &TaskChecks) -> Self {
        let checks = task.checks.iter().map(|check| HeldoutCheck {
            name: check.name.clone(),
            covers: check.covers.clone(),
            required: check.red,
            red: None,
        });
        Self { node, digest: task.digest, checks: checks.collect() }
    }

    /// Whether the checks have yet to run before the work.
    pub fn is_red_due(&self) -> bool {
        self.checks.iter().any(|check| check.red.is_none())
    }

    /// The checks that had to fail before the work and did not, so that their success proves nothing.
    pub fn unproven(&self) -> Vec<CheckRed> {
        let required = self.checks.iter().filter(|check| check.required == RedRule::Required);
        let reds = required
            .filter_map(|check| Some(CheckRed { name: check.name.clone(), red: check.red?, facts: None }));
        reds.filter(|red| !red.red.is_proof()).collect()
    }

    /// The same checks, without a red.
    fn without_red(&self) -> Self {
        let checks = self.checks.iter().map(|check| HeldoutCheck { red: None, ..check.clone() });
        Self { checks: checks.collect(), ..self.clone() }
    }
}

impl HeldoutCheck {
    /// Whether it decides an acceptance criterion, numbered from 1.
    pub fn decides(&self, point: usize) -> bool {
        let is_named = |covered: &PointNumber| usize::try_from(covered.get()) == Ok(point);
        self.covers.is_empty() || self.covers.iter().any(is_named)
    }
}

/// What a start records: the checks that the folder has now. Those that are the same as before keep their red.
pub fn frozen(before: &[HeldoutTask], now: Vec<HeldoutTask>) -> Vec<HeldoutTask> {
    let mut tasks: Vec<HeldoutTask> = now
        .into_iter()
        .map(|task| before.iter().find(|old| old.without_red() == task).cloned().unwrap_or(task))
        .collect();
    tasks.sort_by(|one, other| one.node.cmp(&other.node));
    tasks
}

/// What a start must have recorded where it recorded `found`: which checks there are is the user's choice, a red is not.
pub fn after_start(before: &[HeldoutTask], found: &[HeldoutTask]) -> Vec<HeldoutTask> {
    frozen(before, found.iter().map(HeldoutTask::without_red).collect())
}

/// What a commit records about one held-out check. Exit code and output would reveal what it tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldoutRecord {
    pub node: NodeId,
    pub name: CheckName,
    pub red: RedKind,
    /// How it ended after the session; null if it did not run then.
    pub result: Option<HeldoutResult>,
    pub digest: Sha256,
}

/// Whether a held-out check succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HeldoutResult {
    Pass,
    Fail,
}

impl HeldoutResult {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
        }
    }

    pub fn of(exit: RedKind) -> Self {
        if exit == RedKind::Green { Self::Pass } else { Self::Fail }
    }

    /// The exit of a check that runs again, with nothing in it but the result.
    pub fn to_exit(self) -> CheckExit {
        match self {
            Self::Pass => CheckExit::Code(0),
            Self::Fail => CheckExit::Code(1),
        }
    }
}

const NOT_RUN: &str = "none";

impl HeldoutRecord {
    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [task, red, result, digest] = words.as_slice() else { return None };
        let (node, name) = task.split_once('/')?;
        let results = [Some(HeldoutResult::Pass), Some(HeldoutResult::Fail), None];
        let shown = |result: &Option<HeldoutResult>| result.map_or(NOT_RUN, HeldoutResult::as_str);
        Some(Self {
            node: NodeId::new(node).ok()?,
            name: CheckName::new(name)?,
            red: RedKind::from_name(red)?,
            result: results.into_iter().find(|known| shown(known) == *result)?,
            digest: Sha256::parse(digest)?,
        })
    }
}

impl fmt::Display for HeldoutRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, name, red, result, digest } = self;
        write!(f, "{node}/{name} {red} {} {digest}", result.map_or(NOT_RUN, HeldoutResult::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(toml: &str) -> HeldoutTask {
        HeldoutTask::new(NodeId::root(), &TaskChecks::read(toml.as_bytes(), |_| None).unwrap())
    }

    #[test]
    fn the_same_checks_keep_their_red_at_a_start() {
        let new = task("[[check]]\nname = \"a\"\ncommand = [\"a\"]\n");
        let mut old = new.clone();
        old.checks[0].red = Some(RedKind::Absent);
        assert_eq!(frozen(&[old.clone()], vec![new]), [old.clone()]);
        let changed = task("[[check]]\nname = \"a\"\ncommand = [\"b\"]\n");
        assert_eq!(frozen(&[old], vec![changed.clone()]), [changed]);
    }

    #[test]
    fn a_record_is_parsed_as_it_was_written() {
        for result in [Some(HeldoutResult::Pass), Some(HeldoutResult::Fail), None] {
            let record = HeldoutRecord {
                node: NodeId::root(),
                name: CheckName::new("a").unwrap(),
                red: RedKind::Absent,
                result,
                digest: Sha256::of(b"x"),
            };
            assert_eq!(HeldoutRecord::parse(&record.to_string()), Some(record.clone()));
            assert_eq!(HeldoutRecord::parse(&format!("{record} 1")), None);
        }
        assert_eq!(HeldoutRecord::parse("root/a absent 0 x"), None);
    }
}
