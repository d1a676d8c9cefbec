//! The report that a check writes, below the folder in which it runs.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::fs::atomic;
use crate::redaction::redactor;

/// A larger report is not read.
const BYTES_MAX: u64 = 32 << 20;

/// Where a check writes its report.
#[derive(Clone, Debug)]
pub(crate) struct CheckReport {
    folder: PathBuf,
    path: String,
}

impl CheckReport {
    pub(crate) fn new(folder: &Path, path: &str) -> Self {
        Self { folder: folder.to_owned(), path: path.to_owned() }
    }

    /// Removes one that is there before the check: it states nothing about the run.
    pub(crate) fn remove_old(&self) -> Result<(), Error> {
        plain_path(&self.folder, &self.path).map_or(Ok(()), |path| atomic::remove_any(&path))
    }

    /// What the check wrote, without keys.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let path = plain_path(&self.folder, &self.path)?;
        let bytes = atomic::read(&path, BYTES_MAX).ok().flatten()?;
        Some(redactor().redact(&bytes).into_owned())
    }
}

/// A file below a folder, for its text. One that cannot be read as a plain file is not empty.
pub(crate) fn file_below(folder: &Path, path: &str) -> Option<Vec<u8>> {
    const UNREADABLE: &[u8] = b"\0";
    let found = folder.join(path);
    if found.symlink_metadata().ok()?.is_dir() {
        return None;
    }
    let bytes = plain_path(folder, path).and_then(|path| atomic::read(&path, BYTES_MAX).ok().flatten());
    Some(bytes.unwrap_or_else(|| UNREADABLE.to_vec()))
}

/// A path below a folder, if no link is on the way: a link in the candidate could lead anywhere.
fn plain_path(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut current = folder.to_owned();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        current.push(part);
        let is_link = current.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        if is_link && parts.peek().is_some() {
            return None;
        }
    }
    Some(current)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_report_is_read_or_removed_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("out")).unwrap();
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        fs::write(folder.path().join("elsewhere/r.xml"), "forged").unwrap();
        symlink("../elsewhere", root.join("linked")).unwrap();
        let linked = CheckReport::new(&root, "linked/r.xml");
        linked.remove_old().unwrap();
        assert_eq!(linked.read(), None);
        assert!(folder.path().join("elsewhere/r.xml").exists());
        let report = CheckReport::new(&root, "out/r.xml");
        fs::write(root.join("out/r.xml"), "old").unwrap();
        report.remove_old().unwrap();
        assert_eq!(report.read(), None);
        fs::write(root.join("out/r.xml"), "new").unwrap();
        assert_eq!(report.read().as_deref(), Some(&b"new"[..]));
        // The check itself can put a link on the way.
        fs::rename(root.join("out"), root.join("moved")).unwrap();
        symlink("../elsewhere", root.join("out")).unwrap();
        assert_eq!(report.read(), None);
    }
}
