//! The journal: one record of the operation in progress, written before its first change and removed after its last.
//! [`recovery`](super::recovery) reads it after a crash or a power cut.
//!
//! A record is on the disk before the operation goes on, and so is everything that it names. It carries a checksum: one
//! that cannot be read is set aside, and the state follows from the branch instead.

use std::path::Path;

use runner_core::model::digest::Sha256;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::step::{RedResults, SessionExit, SessionRequest, Usage};
use runner_core::strict::canonical_json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agent::sandbox_kind::SandboxKind;
use crate::clock::boot_id;
use crate::error::Error;
use crate::fs::atomic::{self, FileStamp};
use crate::iteration::stored_attempt::StoredAttempt;
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

impl JournalEntry {
    pub(crate) fn run(&self) -> &RunId {
        match self {
            Self::Publish(entry) => &entry.run,
            Self::Iteration(entry) => &entry.run,
        }
    }
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
    /// The git directory relative to the work tree, if it is inside.
    pub(crate) git_dir: Option<String>,
    /// The state of `.git` before the session, which recovery restores.
    pub(crate) snapshot: RepoSnapshot,
    pub(crate) sandbox: SandboxKind,
    /// What the user's command asked of the session.
    pub(crate) request: SessionRequest,
    /// How checks ended before the session.
    #[serde(default)]
    pub(crate) red: RedResults,
    pub(crate) phase: IterationPhase,
}

/// How far an iteration got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IterationPhase {
    /// The session runs, or died with the runner.
    Session,
    /// What the session left is stored in git. Once the iteration's commit exists, a [`PublishEntry`] replaces this record.
    Stored(Box<StoredSession>),
}

/// A session that ended, as git objects and values: nothing has to be read from the work tree again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredSession {
    /// The commit with the files that the session left, under `refs/runner/<run>/wip`; the base commit if it changed none.
    pub(crate) commit: CommitId,
    pub(crate) attempt: StoredAttempt,
}

/// How a session ended, written before its changes are stored. It is not synced: it counts only for a crash of the runner,
/// not for a power cut, after which the work tree may have lost what the session wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndNote {
    pub(crate) run: RunId,
    pub(crate) iter: IterationNumber,
    /// Identifies the time since the machine was started.
    boot: String,
    pub(crate) exit: SessionExit,
    pub(crate) usage: Usage,
    pub(crate) processes_left: u32,
}

impl EndNote {
    /// None if the system has no identifier for its current boot.
    pub(crate) fn new(
        entry: &IterationEntry,
        exit: SessionExit,
        usage: Usage,
        processes_left: u32,
    ) -> Option<Self> {
        let (run, iter) = (entry.run.clone(), entry.iter);
        Some(Self { run, iter, boot: boot_id()?, exit, usage, processes_left })
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        atomic::write_no_sync(path, &encode(self))
    }

    /// The note about this iteration, if it was written since the machine was started.
    pub(crate) fn read(path: &Path, entry: &IterationEntry) -> Option<Self> {
        let bytes = atomic::read(path, BYTES_MAX).ok()??;
        let Decoded::Content(note) = decode::<Self>(&bytes) else { return None };
        let is_current =
            note.run == entry.run && note.iter == entry.iter && Some(&note.boot) == boot_id().as_ref();
        is_current.then_some(note)
    }
}

/// A record on disk. The checksum is that of the content's canonical form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalRecord<T> {
    format: u32,
    sum: String,
    content: T,
}

fn encode<T: Serialize>(content: &T) -> Vec<u8> {
    let sum = Sha256::of(&canonical_json(content)).to_string();
    canonical_json(&JournalRecord { format: FORMAT, sum, content })
}

enum Decoded<T> {
    Content(T),
    Damaged,
    /// A later version wrote it.
    Newer,
}

fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Decoded<T> {
    #[derive(Deserialize)]
    struct FormatOnly {
        format: u32,
    }
    match serde_json::from_slice::<JournalRecord<T>>(bytes) {
        Ok(record) if record.format == FORMAT => {
            let sum = Sha256::of(&canonical_json(&record.content)).to_string();
            if record.sum == sum { Decoded::Content(record.content) } else { Decoded::Damaged }
        }
        _ => match serde_json::from_slice::<FormatOnly>(bytes) {
            Ok(record) if record.format > FORMAT => Decoded::Newer,
            _ => Decoded::Damaged,
        },
    }
}

/// What the journal contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalState {
    Empty,
    Pending(JournalEntry),
    /// The record cannot be read: the disk or an agent damaged it.
    Damaged,
}

impl JournalState {
    /// The operation that was begun and not finished.
    pub(crate) fn entry(self) -> Option<JournalEntry> {
        match self {
            Self::Pending(entry) => Some(entry),
            Self::Empty | Self::Damaged => None,
        }
    }
}

/// Writes the record durably. From then on the operation is finished, now or after a crash.
pub(crate) fn begin(path: &Path, pending: &JournalEntry) -> Result<(), Error> {
    atomic::write_private(path, &encode(pending))
}

/// Reads the journal. A record of a later version is an error.
pub(crate) fn read(path: &Path) -> Result<JournalState, Error> {
    let bytes = match atomic::read(path, BYTES_MAX) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(JournalState::Empty),
        // Something else than a file is in its place.
        Err(Error::Refused(_)) => return Ok(JournalState::Damaged),
        Err(error) => return Err(error),
    };
    match decode(&bytes) {
        Decoded::Content(entry) => Ok(JournalState::Pending(entry)),
        Decoded::Damaged => Ok(JournalState::Damaged),
        Decoded::Newer => Err(Error::Journal { path: path.to_owned() }),
    }
}

/// The journal as it was before a program ran that can write to it.
#[derive(Debug)]
pub(crate) struct JournalCopy {
    stamp: Option<FileStamp>,
    bytes: Option<Vec<u8>>,
}

impl JournalCopy {
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        Ok(Self { stamp: atomic::stamp(path), bytes: atomic::read(path, BYTES_MAX)? })
    }

    /// Writes the journal again if it changed.
    pub(crate) fn restore(&self, path: &Path) -> Result<(), Error> {
        match &self.bytes {
            Some(bytes) if atomic::stamp(path) != self.stamp => atomic::write_private(path, bytes),
            None => atomic::remove_any(path),
            Some(_) => Ok(()),
        }
    }
}

/// Records the end of the operation.
pub(crate) fn end(path: &Path) -> Result<(), Error> {
    atomic::remove_file(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        assert_eq!(read(&path).unwrap(), JournalState::Empty);
        begin(&path, &publication()).unwrap();
        assert_eq!(read(&path).unwrap(), JournalState::Pending(publication()));
        end(&path).unwrap();
        end(&path).unwrap();
        assert_eq!(read(&path).unwrap(), JournalState::Empty);
    }

    #[test]
    fn a_record_of_a_later_version_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.json");
        begin(&path, &publication()).unwrap();
        let newer = fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 2");
        fs::write(&path, newer).unwrap();
        assert!(matches!(read(&path), Err(Error::Journal { .. })));
        fs::write(&path, "{\"format\": 9, \"other\": true}").unwrap();
        assert!(matches!(read(&path), Err(Error::Journal { .. })));
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.json");
        begin(&path, &publication()).unwrap();
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x20;
            fs::write(&path, &bad).unwrap();
            let is_harmless =
                matches!(read(&path), Ok(JournalState::Pending(entry)) if entry == publication());
            let is_white_space = good[at].is_ascii_whitespace();
            assert!(
                matches!(read(&path), Ok(JournalState::Damaged)) || (is_harmless && is_white_space),
                "byte {at}"
            );
        }
        for text in ["", "{", "null"] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), JournalState::Damaged, "{text:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(read(&path).unwrap(), JournalState::Damaged);
    }
}
