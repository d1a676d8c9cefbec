//! The one record of something begun: written before the first change, removed after the last.

use std::path::Path;

use runner_core::step::{SessionExit, Usage};
use serde::{Deserialize, Serialize};

use crate::agent::sandbox::SandboxKind;
use crate::error::Error;
use crate::fs::atomic;
use crate::repo::repo_guard::RepoSnapshot;

/// The format that this version writes and reads.
const FORMAT: u32 = 1;
const BYTES_MAX: u64 = 256 << 20;

/// What was begun and not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalEntry {
    /// A move of the repository to a commit.
    Move(PublishEntry),
    /// An iteration.
    Iteration(Box<IterationEntry>),
}

/// A move of the repository to a commit: branch, work tree, HEAD and index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishEntry {
    /// The run it belongs to.
    pub(crate) run: String,
    /// The branch that HEAD will be on.
    pub(crate) branch: String,
    /// What the branch pointed to; nothing if it is new.
    pub(crate) old_tip: Option<String>,
    /// What it will point to.
    pub(crate) new_tip: String,
    /// The commit whose files the work tree had.
    pub(crate) from: String,
}

/// An iteration under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IterationEntry {
    /// The run's branch.
    pub(crate) branch: String,
    /// The iteration's number, as folders have it.
    pub(crate) iter: String,
    /// The commit it began from.
    pub(crate) base: String,
    /// What the session must not have changed.
    pub(crate) pins: RepoSnapshot,
    /// What kept the session in.
    #[serde(default)]
    pub(crate) sandbox: SandboxKind,
    /// How far it is.
    pub(crate) phase: IterationPhase,
}

/// How far an iteration is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IterationPhase {
    /// The session runs, or died with the runner.
    Session,
    /// The session is over; its answer lies in its place. When the commit exists, a [`Move`] takes over.
    Ended { exit: SessionExit, usage: Usage, processes_left: u32 },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalRecord {
    format: u32,
    pending: JournalEntry,
}

/// Writes the record; from now on what it says is carried out, now or after a crash.
pub(crate) fn begin(path: &Path, pending: &JournalEntry) -> Result<(), Error> {
    atomic::write(path, &record_of(pending))
}

/// Writes down how far it is. A power cut may forget that, and the record of the beginning holds.
pub(crate) fn note(path: &Path, pending: &JournalEntry) -> Result<(), Error> {
    atomic::write_no_sync(path, &record_of(pending))
}

fn record_of(pending: &JournalEntry) -> Vec<u8> {
    runner_core::strict::canonical_json(&JournalRecord { format: FORMAT, pending: pending.clone() })
}

/// What was begun and not finished.
pub(crate) fn pending(path: &Path) -> Result<Option<JournalEntry>, Error> {
    let Some(bytes) = atomic::read(path, BYTES_MAX)? else { return Ok(None) };
    let unreadable = || Error::Journal { path: path.to_owned() };
    let record: JournalRecord = serde_json::from_slice(&bytes).map_err(|_| unreadable())?;
    if record.format != FORMAT {
        return Err(unreadable());
    }
    Ok(Some(record.pending))
}

/// Marks the end.
pub(crate) fn end(path: &Path) -> Result<(), Error> {
    atomic::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moving() -> JournalEntry {
        JournalEntry::Move(PublishEntry {
            run: "x".to_owned(),
            branch: "runner/x".to_owned(),
            old_tip: None,
            new_tip: "b".to_owned(),
            from: "a".to_owned(),
        })
    }

    #[test]
    fn what_was_begun_is_pending_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.json");
        assert_eq!(pending(&path).unwrap(), None);
        begin(&path, &moving()).unwrap();
        assert_eq!(pending(&path).unwrap(), Some(moving()));
        end(&path).unwrap();
        end(&path).unwrap();
        assert_eq!(pending(&path).unwrap(), None);
    }

    #[test]
    fn a_record_of_another_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.json");
        begin(&path, &moving()).unwrap();
        let newer = std::fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 2");
        for text in [newer.as_str(), "{\"format\": 99}", "{\"format\": 1, \"pending\": null}", "", "{"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(pending(&path), Err(Error::Journal { .. })), "{text}");
        }
    }
}
