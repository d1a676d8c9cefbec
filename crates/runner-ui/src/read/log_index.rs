//! The offsets of the lines of a large file, found once and extended as the file grows.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::read::confined_fs::{FileVersion, RegularFile};

/// The offset of every n-th line is kept.
const LINES_PER_ENTRY: u64 = 512;
/// How much of a file is read at once.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// How many indexes are cached.
const INDEXES_MAX: usize = 16;

/// The index of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogIndex {
    /// The offset of line 0, of line [`LINES_PER_ENTRY`], and so on.
    offsets: Vec<u64>,
    /// How many line breaks the indexed part has.
    breaks: u64,
    /// How many bytes are indexed.
    seen: u64,
    /// Whether the last indexed byte ends a line.
    ends_line: bool,
}

impl LogIndex {
    /// Indexes what was appended to the file.
    pub(crate) fn extend(&mut self, file: &RegularFile) -> io::Result<()> {
        if self.offsets.is_empty() {
            self.offsets.push(0);
            self.ends_line = true;
        }
        while self.seen < file.stamp.bytes {
            let piece = file.piece(self.seen, PIECE_BYTES)?;
            let Some(last) = piece.last() else { break };
            for (index, _) in piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                self.breaks += 1;
                if self.breaks.is_multiple_of(LINES_PER_ENTRY) {
                    self.offsets.push(self.seen + bytes(index) + 1);
                }
            }
            self.ends_line = *last == b'\n';
            self.seen += bytes(piece.len());
        }
        Ok(())
    }

    /// How many lines there are, with one that has no end yet.
    pub(crate) fn lines(&self) -> u64 {
        self.breaks + u64::from(!self.ends_line)
    }

    /// Whether the last line has no end yet.
    pub(crate) fn is_open(&self) -> bool {
        !self.ends_line
    }

    /// How many bytes are indexed.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// An offset at or before a line, and how many lines to skip from there.
    pub(crate) fn near(&self, line: u64) -> (u64, u64) {
        let wanted = usize::try_from(line / LINES_PER_ENTRY).unwrap_or(usize::MAX);
        let entry = wanted.min(self.offsets.len().saturating_sub(1));
        let offset = self.offsets.get(entry).copied().unwrap_or_default();
        (offset, line - bytes(entry) * LINES_PER_ENTRY)
    }
}

/// A count as an offset in a file.
pub(crate) fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The indexes of the files that were requested last.
#[derive(Debug, Default)]
pub(crate) struct LogIndexes {
    recent: Mutex<VecDeque<(String, FileVersion, Arc<LogIndex>)>>,
}

impl LogIndexes {
    /// The index of the current version of a file. It is built outside the lock: two requests may both build it.
    pub(crate) fn index(&self, path: &str, file: &RegularFile) -> io::Result<Arc<LogIndex>> {
        let mut index = match self.take(path) {
            Some((stamp, index)) if stamp == file.stamp => {
                self.keep(path, stamp, Arc::clone(&index));
                return Ok(index);
            }
            Some((stamp, index)) if file.stamp.continues(&stamp) => (*index).clone(),
            Some(_) | None => LogIndex::default(),
        };
        index.extend(file)?;
        let index = Arc::new(index);
        self.keep(path, file.stamp, Arc::clone(&index));
        Ok(index)
    }

    fn take(&self, path: &str) -> Option<(FileVersion, Arc<LogIndex>)> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let position = recent.iter().position(|(name, ..)| name == path)?;
        recent.remove(position).map(|(_, stamp, index)| (stamp, index))
    }

    fn keep(&self, path: &str, stamp: FileVersion, index: Arc<LogIndex>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|(name, ..)| name != path);
        recent.push_front((path.to_owned(), stamp, index));
        recent.truncate(INDEXES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::confined_fs::ConfinedDir;
    use std::io::Write;

    #[test]
    fn extended_index_equals_the_index_of_the_whole_file() {
        let around = tempfile::tempdir().unwrap();
        let folder = ConfinedDir::open(around.path()).unwrap();
        let mut file = std::fs::File::create(around.path().join("log")).unwrap();
        let indexes = LogIndexes::default();
        for round in 0..40 {
            write!(file, "{}", format!("line {round}\n").repeat(97)).unwrap();
            file.write_all(if round % 2 == 0 { b"half " } else { b"" }).unwrap();
            let open = folder.file("log").unwrap();
            let mut fresh = LogIndex::default();
            fresh.extend(&open).unwrap();
            assert_eq!(*indexes.index("log", &open).unwrap(), fresh);
            assert_eq!(
                (fresh.lines(), fresh.is_open()),
                (97 * (round + 1) + u64::from(round % 2 == 0), round % 2 == 0)
            );
        }
        std::fs::write(around.path().join("log"), "a\n").unwrap();
        assert_eq!(indexes.index("log", &folder.file("log").unwrap()).unwrap().lines(), 1);
    }
}
