//! The files in which an agent records its usage while it works, read piece by piece.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How deep the files lie below the folder: Codex has a folder for each year, month and day.
const DEPTH_MAX: usize = 4;
/// The most bytes to read of one file at once.
const READ_BYTES_MAX: u64 = 16 << 20;

/// The files below a folder, with how far each has been read.
#[derive(Debug, Default)]
pub(super) struct UsageLogs {
    folder: Option<PathBuf>,
    read: BTreeMap<PathBuf, u64>,
}

impl UsageLogs {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, read: BTreeMap::new() }
    }

    /// The whole lines that were added since the last call. What cannot be read is left out.
    pub(super) fn read_new(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        let Some(folder) = &self.folder else { return lines };
        for path in files_below(folder, DEPTH_MAX) {
            let position = self.read.entry(path.clone()).or_default();
            let added = whole_lines(&path, *position).unwrap_or_default();
            *position = position.saturating_add(added.len() as u64);
            lines.extend(added);
        }
        lines
    }
}

fn whole_lines(path: &Path, position: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(position))?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    bytes.truncate(end);
    Ok(bytes)
}

/// The regular files with lines of JSON. Links are not followed.
fn files_below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            files.extend(files_below(&entry.path(), depth - 1));
        } else if kind.is_file() && entry.path().extension().is_some_and(|extension| extension == "jsonl") {
            files.push(entry.path());
        }
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn each_whole_line_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut logs = UsageLogs::new(Some(folder.path().to_owned()));
        assert_eq!(logs.read_new(), b"");
        let day = folder.path().join("2026/11/17");
        fs::create_dir_all(&day).unwrap();
        let mut file = File::create(day.join("rollout-1.jsonl")).unwrap();
        file.write_all(b"{}\n{\"half").unwrap();
        assert_eq!(logs.read_new(), b"{}\n");
        file.write_all(b"\":1}\n").unwrap();
        fs::write(day.join("other.txt"), "x\n").unwrap();
        assert_eq!(logs.read_new(), b"{\"half\":1}\n");
        assert_eq!(logs.read_new(), b"");
        assert_eq!(UsageLogs::default().read_new(), b"");
    }
}
