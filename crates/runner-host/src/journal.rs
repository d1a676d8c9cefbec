//! The one record of something begun: written before the first change, removed after the last.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::store;

/// The format that this version writes and reads.
const FORMAT: u32 = 1;
const BYTES_MAX: u64 = 1 << 20;

/// A move of the repository to a commit: branch, work tree, HEAD and index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Move {
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format: u32,
    #[serde(rename = "move")]
    moving: Move,
}

/// Writes the record; from now on the move is carried out, now or after a crash.
pub(crate) fn begin(path: &Path, moving: &Move) -> Result<(), Error> {
    let record = Record { format: FORMAT, moving: moving.clone() };
    store::write(path, &runner_core::document::canonical_json(&record))
}

/// What was begun and not finished.
pub(crate) fn pending(path: &Path) -> Result<Option<Move>, Error> {
    let Some(bytes) = store::read(path, BYTES_MAX)? else { return Ok(None) };
    let unreadable = || Error::Journal { path: path.to_owned() };
    let record: Record = serde_json::from_slice(&bytes).map_err(|_| unreadable())?;
    if record.format != FORMAT {
        return Err(unreadable());
    }
    Ok(Some(record.moving))
}

/// Marks the end.
pub(crate) fn end(path: &Path) -> Result<(), Error> {
    store::remove(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_pending_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.json");
        let moving = Move {
            run: "x".to_owned(),
            branch: "runner/x".to_owned(),
            old_tip: None,
            new_tip: "b".to_owned(),
            from: "a".to_owned(),
        };
        assert_eq!(pending(&path).unwrap(), None);
        begin(&path, &moving).unwrap();
        assert_eq!(pending(&path).unwrap(), Some(moving));
        end(&path).unwrap();
        end(&path).unwrap();
        assert_eq!(pending(&path).unwrap(), None);
    }

    #[test]
    fn a_record_of_another_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.json");
        for text in ["{\"format\": 99}", "{\"format\": 1, \"move\": null}", "", "{"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(pending(&path), Err(Error::Journal { .. })), "{text}");
        }
        let newer = "{\"format\":2,\"move\":{\"run\":\"x\",\"branch\":\"b\",\"old_tip\":null,\"new_tip\":\"n\",\"from\":\"f\"}}";
        std::fs::write(&path, newer).unwrap();
        assert!(matches!(pending(&path), Err(Error::Journal { .. })));
    }
}
