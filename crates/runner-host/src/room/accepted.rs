//! The ignored files and caches of a room that later runs may find: those that the user's own commit left in the baseline, and those
//! of guards that succeeded.
//!
//! A guard that failed ran code that was not accepted. What it created or changed is removed before the next run that counts; a
//! file is known by its path, inode and time of change, none of which a program in the room can forge.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::fs::atomic;
use crate::fs::lookup;

/// Marks a room in which a program ran whose files are not accepted yet. A runner that finds it knows nothing about them.
const UNACCEPTED: &str = "unaccepted";

/// Ignored files and caches of a room at one time.
#[derive(Debug, Default)]
pub(super) struct AcceptedFiles {
    stamps: BTreeMap<PathBuf, Stamp>,
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    /// Of a folder, whose own time changes with every entry: nothing.
    changed: Option<(i64, i64)>,
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        let changed = (!metadata.is_dir()).then(|| (metadata.ctime(), metadata.ctime_nsec()));
        Self { inode: metadata.ino(), changed }
    }
}

impl AcceptedFiles {
    /// Everything at and below some paths.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut accepted = Self::default();
        for path in paths {
            accepted.add(path)?;
        }
        Ok(accepted)
    }

    fn add(&mut self, path: &Path) -> Result<(), Error> {
        let Some(metadata) = lookup::metadata(path)? else { return Ok(()) };
        self.stamps.insert(path.to_owned(), Stamp::of(&metadata));
        if metadata.is_dir() {
            for entry in lookup::entries(path)? {
                self.add(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Whether nothing at and below a path was removed.
    pub(super) fn is_complete(&self, path: &Path) -> bool {
        let below = self.stamps.range(path.to_owned()..).take_while(|(known, _)| known.starts_with(path));
        below.into_iter().all(|(known, _)| known.symlink_metadata().is_ok())
    }

    /// Removes everything at and below some paths that is not as it was, and returns whether there was any. A folder that is kept is
    /// one that was there.
    pub(super) fn restore(&self, paths: &[PathBuf]) -> Result<bool, Error> {
        let mut has_removed = false;
        for path in paths {
            has_removed |= self.restore_one(path)?;
        }
        Ok(has_removed)
    }

    fn restore_one(&self, path: &Path) -> Result<bool, Error> {
        let Some(metadata) = lookup::metadata(path)? else { return Ok(false) };
        if self.stamps.get(path) != Some(&Stamp::of(&metadata)) {
            atomic::remove_any(path)?;
            return Ok(true);
        }
        let mut has_removed = false;
        if metadata.is_dir() {
            for entry in lookup::entries(path)? {
                has_removed |= self.restore_one(&entry.path())?;
            }
        }
        Ok(has_removed)
    }
}

/// Whether a program ran in the room since its files were last accepted.
pub(super) fn is_unaccepted(folder: &Path) -> bool {
    folder.join(UNACCEPTED).symlink_metadata().is_ok()
}

/// Records that a program runs in the room.
pub(super) fn mark(folder: &Path) -> Result<(), Error> {
    atomic::write_no_sync(&folder.join(UNACCEPTED), b"")
}

/// Records that the files of the room are accepted.
pub(super) fn unmark(folder: &Path) -> Result<(), Error> {
    atomic::remove_any(&folder.join(UNACCEPTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_changed_or_moved_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["target/deep", "moved"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["target/kept", "target/rewritten", "target/deep/kept", "moved/file"] {
            fs::write(at(name), "built").unwrap();
        }
        let roots = [at("target"), at("moved"), at("renamed"), at("added")];
        let accepted = AcceptedFiles::read(&roots).unwrap();
        let time = at("target/rewritten").metadata().unwrap().modified().unwrap();
        fs::write(at("target/rewritten"), "wrong").unwrap();
        let file = fs::File::options().write(true).open(at("target/rewritten")).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(time)).unwrap();
        fs::write(at("target/added"), "x").unwrap();
        fs::create_dir(at("added")).unwrap();
        fs::rename(at("moved"), at("renamed")).unwrap();
        fs::hard_link(at("target/kept"), at("target/linked")).unwrap();
        assert!(accepted.restore(&roots).unwrap());
        assert!(!accepted.restore(&roots).unwrap(), "nothing is left to remove");
        let mut left: Vec<String> = Vec::new();
        let mut folders = vec![folder.path().to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap().flatten() {
                left.push(entry.path().strip_prefix(folder.path()).unwrap().display().to_string());
                folders.extend(entry.path().is_dir().then(|| entry.path()));
            }
        }
        left.sort();
        // A link changes its file's time of change too, so that file is removed with it.
        assert_eq!(left, ["target", "target/deep", "target/deep/kept"]);
    }
}
