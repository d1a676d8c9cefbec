//! Where the lines of a large file begin, found once and extended as the file grows.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::read::confined_fs::{FileVersion, RegularFile};

/// The place of every so-many-th line is kept.
const LINES_APART: u64 = 512;
/// How much of a file is held at once.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// How many files are remembered.
const FILES_MAX: usize = 16;

/// Where the lines of one file begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogIndex {
    /// The place of line 0, of line [`LINES_APART`], and so on.
    places: Vec<u64>,
    /// How many line breaks there are in what was looked at.
    breaks: u64,
    /// How many bytes were looked at.
    seen: u64,
    /// Whether the last byte that was looked at ends a line.
    ends_line: bool,
}

impl LogIndex {
    /// Looks at what the file has beyond what was looked at.
    pub(crate) fn extend(&mut self, file: &RegularFile) -> io::Result<()> {
        if self.places.is_empty() {
            self.places.push(0);
            self.ends_line = true;
        }
        while self.seen < file.stamp.bytes {
            let piece = file.piece(self.seen, PIECE_BYTES)?;
            let Some(last) = piece.last() else { break };
            for (place, _) in piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
                self.breaks += 1;
                if self.breaks.is_multiple_of(LINES_APART) {
                    self.places.push(self.seen + bytes(place) + 1);
                }
            }
            self.ends_line = *last == b'\n';
            self.seen += bytes(piece.len());
        }
        Ok(())
    }

    /// How many lines there are; one that has no end yet counts.
    pub(crate) fn lines(&self) -> u64 {
        self.breaks + u64::from(!self.ends_line)
    }

    /// Whether the last line has no end yet.
    pub(crate) fn is_open(&self) -> bool {
        !self.ends_line
    }

    /// How many bytes were looked at.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// A place at or before a line, and how many lines to skip from there.
    pub(crate) fn near(&self, line: u64) -> (u64, u64) {
        let nth = usize::try_from(line / LINES_APART).unwrap_or(usize::MAX);
        let nth = nth.min(self.places.len().saturating_sub(1));
        let place = self.places.get(nth).copied().unwrap_or_default();
        (place, line - bytes(nth) * LINES_APART)
    }
}

/// A count of bytes, as places in files are counted.
pub(crate) fn bytes(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The indexes of the files that were asked for last.
#[derive(Debug, Default)]
pub(crate) struct LogIndexes {
    known: Mutex<VecDeque<(String, FileVersion, Arc<LogIndex>)>>,
}

impl LogIndexes {
    /// The index of a file as it is now. Built outside the lock: two who ask at once may both build it.
    pub(crate) fn of(&self, path: &str, file: &RegularFile) -> io::Result<Arc<LogIndex>> {
        let known = self.take(path);
        let mut index = match known {
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
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|(name, ..)| name == path)?;
        known.remove(place).map(|(_, stamp, index)| (stamp, index))
    }

    fn keep(&self, path: &str, stamp: FileVersion, index: Arc<LogIndex>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(name, ..)| name != path);
        known.push_front((path.to_owned(), stamp, index));
        known.truncate(FILES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::confined_fs::ConfinedDir;
    use std::io::Write;

    #[test]
    fn an_index_that_grows_with_its_file_is_the_one_of_the_whole_file() {
        let place = tempfile::tempdir().unwrap();
        let folder = ConfinedDir::open(place.path()).unwrap();
        let mut file = std::fs::File::create(place.path().join("log")).unwrap();
        let indexes = LogIndexes::default();
        for round in 0..40 {
            write!(file, "{}", format!("line {round}\n").repeat(97)).unwrap();
            file.write_all(if round % 2 == 0 { b"half " } else { b"" }).unwrap();
            let open = folder.file("log").unwrap();
            let mut fresh = LogIndex::default();
            fresh.extend(&open).unwrap();
            assert_eq!(*indexes.of("log", &open).unwrap(), fresh);
            assert_eq!(
                (fresh.lines(), fresh.is_open()),
                (97 * (round + 1) + u64::from(round % 2 == 0), round % 2 == 0)
            );
        }
        std::fs::write(place.path().join("log"), "a\n").unwrap();
        assert_eq!(indexes.of("log", &folder.file("log").unwrap()).unwrap().lines(), 1);
    }
}
