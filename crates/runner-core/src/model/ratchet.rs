//! The ratchet: checks of passed tasks run again, and what is on record about those that no longer succeed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::{CheckExit, CheckName};
use super::digest::Sha256;
use super::id::{IterationNumber, NodeId};
use super::run_state::count;

/// What the next iterations must know about checks of passed tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ratchet {
    /// Tasks with parts that passed since the checks of passed tasks last ran again, in the order of the plan.
    pub due: Vec<NodeId>,
    /// How many tasks were added for checks that no longer succeed.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub tasks: u32,
    /// Checks of passed tasks that failed when they last ran again, and for which no task was added.
    pub regressed: Vec<RecheckRecord>,
}

impl Ratchet {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a check of a passed task ended when it ran again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecheckRecord {
    pub node: NodeId,
    pub name: CheckName,
    pub exit: CheckExit,
    /// The digest of the task's checks.
    pub digest: Sha256,
    /// The first iteration after which it failed; null if it succeeded, or if that is not known.
    #[serde(deserialize_with = "Option::deserialize")]
    pub broken_by: Option<IterationNumber>,
    /// Whether it is a held-out check.
    #[serde(default, skip_serializing_if = "CheckSource::is_task")]
    pub source: CheckSource,
}

/// Where a check is defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CheckSource {
    /// Beside the task, in the repository.
    #[default]
    Task,
    /// In the folder of held-out checks.
    Heldout,
}

impl CheckSource {
    fn is_task(&self) -> bool {
        *self == Self::Task
    }
}

const BROKEN_BY: &str = "broken-by=";
const HELDOUT: &str = "heldout";

impl RecheckRecord {
    /// Parses what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (node, name) = words.next()?.split_once('/')?;
        let (exit, digest) = (words.next()?, words.next()?);
        let (mut broken_by, mut source) = (None, CheckSource::Task);
        for word in words.by_ref() {
            match word.strip_prefix(BROKEN_BY) {
                Some(iter) => broken_by = Some(iter.parse().ok()?),
                None if word == HELDOUT => source = CheckSource::Heldout,
                None => return None,
            }
        }
        let record = Self {
            node: NodeId::new(node).ok()?,
            name: CheckName::new(name)?,
            exit: CheckExit::parse(exit)?,
            digest: Sha256::parse(digest)?,
            broken_by,
            source,
        };
        (words.next().is_none() && record.to_string() == text).then_some(record)
    }
}

impl fmt::Display for RecheckRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, name, exit, digest, broken_by, source } = self;
        write!(f, "{node}/{name} {exit} {digest}")?;
        broken_by.map_or(Ok(()), |iter| write!(f, " {BROKEN_BY}{iter}"))?;
        if source.is_task() { Ok(()) } else { write!(f, " {HELDOUT}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_parsed_as_it_was_written() {
        let record = RecheckRecord {
            node: NodeId::root(),
            name: CheckName::new("a").unwrap(),
            exit: CheckExit::Code(0),
            digest: Sha256::of(b"x"),
            broken_by: None,
            source: CheckSource::Task,
        };
        let heldout = RecheckRecord { source: CheckSource::Heldout, ..record.clone() };
        let red = RecheckRecord {
            exit: CheckExit::TimedOut,
            broken_by: Some(IterationNumber::FIRST.next()),
            ..record.clone()
        };
        for record in [record.clone(), red, heldout] {
            assert_eq!(RecheckRecord::parse(&record.to_string()), Some(record));
        }
        for wrong in ["", "a 0", "root/a 0", &format!("{record} 2"), &format!("{record} broken-by=2")] {
            assert_eq!(RecheckRecord::parse(wrong), None, "{wrong}");
        }
    }
}
