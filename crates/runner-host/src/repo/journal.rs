//! The journal: one record of the operation in progress, written before its first change and removed after its last.
//! [`recovery`](super::recovery) reads it after a crash.

use std::path::Path;

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::step::{SessionExit, Usage};
use serde::{Deserialize, Serialize};

use crate::agent::sandbox::SandboxKind;
use crate::error::Error;
use crate::fs::atomic;
use crate::repo::repo_guard::RepoSnapshot;

/// The format that this version writes and reads.
const FORMAT: u32 = 1;
const BYTES_MAX: u64 = 256 << 20;

/// An operation that was begun and not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalEntry {
    Publish(PublishEntry),
    Iteration(Box<IterationEntry>),
}

/// The publication of a commit: branch, work tree, HEAD and index move to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishEntry {
    /// The run, whose branch HEAD will be on.
    pub(crate) run: RunId,
    /// The branch's commit before; none if the branch is new.
    pub(crate) old_tip: Option<CommitId>,
    /// The commit that is published.
    pub(crate) new_tip: CommitId,
    /// The commit whose files the work tree had.
    pub(crate) from: CommitId,
}

impl PublishEntry {
    /// The publication of a run's next commit, whose parent the work tree is at.
    pub(crate) fn next_commit(run: &RunId, from: &CommitId, to: &CommitId) -> Self {
        Self { run: run.clone(), old_tip: Some(from.clone()), new_tip: to.clone(), from: from.clone() }
    }
}

/// An iteration in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IterationEntry {
    pub(crate) run: RunId,
    pub(crate) iter: IterationNumber,
    /// The commit that the iteration began from.
    pub(crate) base: CommitId,
    /// The state of `.git` before the session, which recovery restores.
    pub(crate) snapshot: RepoSnapshot,
    #[serde(default)]
    pub(crate) sandbox: SandboxKind,
    pub(crate) phase: IterationPhase,
}

/// How far an iteration got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IterationPhase {
    /// The session runs, or died with the runner.
    Session,
    /// The session ended and its answer is in its file. Once the commit exists, a [`PublishEntry`] replaces this record.
    Ended { exit: SessionExit, usage: Usage, processes_left: u32 },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalRecord {
    format: u32,
    pending: JournalEntry,
}

/// Writes the record. From then on the operation is finished, now or after a crash.
pub(crate) fn begin(path: &Path, pending: &JournalEntry) -> Result<(), Error> {
    atomic::write(path, &record_of(pending))
}

/// Records progress. A power cut may lose it; then the record of the beginning is still valid.
pub(crate) fn update(path: &Path, pending: &JournalEntry) -> Result<(), Error> {
    atomic::write_no_sync(path, &record_of(pending))
}

fn record_of(pending: &JournalEntry) -> Vec<u8> {
    runner_core::strict::canonical_json(&JournalRecord { format: FORMAT, pending: pending.clone() })
}

/// The operation that was begun and not finished.
pub(crate) fn pending(path: &Path) -> Result<Option<JournalEntry>, Error> {
    let Some(bytes) = atomic::read(path, BYTES_MAX)? else { return Ok(None) };
    let unreadable = || Error::Journal { path: path.to_owned() };
    let record: JournalRecord = serde_json::from_slice(&bytes).map_err(|_| unreadable())?;
    if record.format != FORMAT {
        return Err(unreadable());
    }
    Ok(Some(record.pending))
}

/// Records the end of the operation.
pub(crate) fn end(path: &Path) -> Result<(), Error> {
    atomic::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication() -> JournalEntry {
        JournalEntry::Publish(PublishEntry {
            run: RunId::new("x").unwrap(),
            old_tip: None,
            new_tip: CommitId::new("b".repeat(40)).unwrap(),
            from: CommitId::new("a".repeat(40)).unwrap(),
        })
    }

    #[test]
    fn an_operation_is_pending_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.json");
        assert_eq!(pending(&path).unwrap(), None);
        begin(&path, &publication()).unwrap();
        assert_eq!(pending(&path).unwrap(), Some(publication()));
        end(&path).unwrap();
        end(&path).unwrap();
        assert_eq!(pending(&path).unwrap(), None);
    }

    #[test]
    fn a_record_of_another_version_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.json");
        begin(&path, &publication()).unwrap();
        let newer = std::fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 2");
        for text in [newer.as_str(), "{\"format\": 99}", "{\"format\": 1, \"pending\": null}", "", "{"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(pending(&path), Err(Error::Journal { .. })), "{text}");
        }
    }
}
