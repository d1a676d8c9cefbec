//! What is on record about the checks of a task: how they failed before the work, and how they ended after it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::CheckName;
use crate::model::digest::Sha256;
use crate::model::id::NodeId;

/// How a check ended before the work on its task began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum RedKind {
    /// It ran, and what it tests does not hold.
    Failed,
    /// What it tests does not exist yet: it does not build, or a symbol or a file is missing.
    Absent,
    /// It gives no result: it cannot start, runs out of time, dies from a signal, runs no test, or differs from run to run.
    Broken,
    Green,
}

impl RedKind {
    pub const ALL: [Self; 4] = [Self::Failed, Self::Absent, Self::Broken, Self::Green];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Absent => "absent",
            Self::Broken => "broken",
            Self::Green => "green",
        }
    }

    /// Whether a later success proves that the work did it.
    pub fn is_proof(self) -> bool {
        matches!(self, Self::Failed | Self::Absent)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for RedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub enum CheckExit {
    /// Only 0 means success.
    Code(i32),
    Signal(i32),
    TimedOut,
    NotStarted,
    /// It succeeded without running a test.
    NoTests,
    /// It exited with 0, but reported tests that failed.
    TestsFailed,
    /// It exited with 0, but not all of its tests ran: some did not report, or more ran before the work.
    TestsMissing,
}

/// How a check ended before the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckEnd {
    pub red: RedKind,
    /// Of its first run.
    pub exit: CheckExit,
    /// Of its first run.
    pub facts: RedFacts,
}

const SIGNAL: &str = "signal-";
const TIMED_OUT: &str = "timed-out";
const NOT_STARTED: &str = "not-started";
const NO_TESTS: &str = "no-tests";
const TESTS_FAILED: &str = "tests-failed";
const TESTS_MISSING: &str = "tests-missing";

impl CheckExit {
    pub fn is_green(self) -> bool {
        self == Self::Code(0)
    }

    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let parsed = match text {
            TIMED_OUT => Self::TimedOut,
            NOT_STARTED => Self::NotStarted,
            NO_TESTS => Self::NoTests,
            TESTS_FAILED => Self::TestsFailed,
            TESTS_MISSING => Self::TestsMissing,
            _ => match text.strip_prefix(SIGNAL) {
                Some(signal) => Self::Signal(signal.parse().ok()?),
                None => Self::Code(text.parse().ok()?),
            },
        };
        (parsed.to_string() == text).then_some(parsed)
    }
}

impl fmt::Display for CheckExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Signal(signal) => write!(f, "{SIGNAL}{signal}"),
            Self::TimedOut => f.write_str(TIMED_OUT),
            Self::NotStarted => f.write_str(NOT_STARTED),
            Self::NoTests => f.write_str(NO_TESTS),
            Self::TestsFailed => f.write_str(TESTS_FAILED),
            Self::TestsMissing => f.write_str(TESTS_MISSING),
        }
    }
}

impl Serialize for CheckExit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CheckExit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected how a check ended"))
    }
}

/// How the checks of a task ended before the first session on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskProof {
    pub node: NodeId,
    /// The digest of the checks that ran.
    pub digest: Sha256,
    /// One entry for each check, in their order.
    pub checks: Vec<CheckRed>,
}

impl TaskProof {
    pub fn red_of(&self, name: &CheckName) -> Option<RedKind> {
        self.check(name).map(|check| check.red)
    }

    /// What a check showed before the work, if that is on record.
    pub fn facts_of(&self, name: &CheckName) -> Option<&RedFacts> {
        self.check(name)?.facts.as_ref()
    }

    fn check(&self, name: &CheckName) -> Option<&CheckRed> {
        self.checks.iter().find(|check| check.name == *name)
    }
}

/// How one check ended before the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRed {
    pub name: CheckName,
    #[serde(deserialize_with = "crate::strict::word")]
    pub red: RedKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<RedFacts>,
}

/// What a check showed before the work besides its end: a later success is compared with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedFacts {
    /// How many tests ran, as far as that is comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<u64>,
    /// How many tests were skipped, as far as that is comparable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// Files and settings that can change what runs in the place of the check's files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<String>,
}

/// What a commit records about one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRecord {
    pub name: CheckName,
    pub red: RedKind,
    /// How it ended after the session; null if it did not run then.
    pub exit: Option<CheckExit>,
    pub digest: Sha256,
}

/// What a commit records about a check of a task with parts: how it ended before the first session below the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedRecord {
    pub node: NodeId,
    pub name: CheckName,
    pub red: RedKind,
    pub digest: Sha256,
}

impl RedRecord {
    /// The records of some tasks, in their order.
    pub fn of(proofs: &[TaskProof]) -> Vec<Self> {
        let records = proofs.iter().flat_map(|proof| {
            proof.checks.iter().map(|check| Self {
                node: proof.node.clone(),
                name: check.name.clone(),
                red: check.red,
                digest: proof.digest,
            })
        });
        records.collect()
    }

    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [task, red, digest] = words.as_slice() else { return None };
        let (node, name) = task.split_once('/')?;
        Some(Self {
            node: NodeId::new(node).ok()?,
            name: CheckName::new(name)?,
            red: RedKind::from_name(red)?,
            digest: Sha256::parse(digest)?,
        })
    }
}

impl fmt::Display for RedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, name, red, digest } = self;
        write!(f, "{node}/{name} {red} {digest}")
    }
}

const NOT_RUN: &str = "none";

impl CheckRecord {
    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (name, red, exit, digest) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let record = Self {
            name: CheckName::new(name)?,
            red: RedKind::from_name(red)?,
            exit: if exit == NOT_RUN { None } else { Some(CheckExit::parse(exit)?) },
            digest: Sha256::parse(digest)?,
        };
        words.next().is_none().then_some(record)
    }
}

impl fmt::Display for CheckRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, red, exit, digest } = self;
        match exit {
            Some(exit) => write!(f, "{name} {red} {exit} {digest}"),
            None => write!(f, "{name} {red} {NOT_RUN} {digest}"),
        }
    }
}
