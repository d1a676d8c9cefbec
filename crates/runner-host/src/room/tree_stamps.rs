//! What the files of a checkout looked like while their content was known. Files that look the same later are the same: a program
//! in the room cannot set a file's time of change. To look takes a fraction of the time that git needs for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use runner_core::model::digest::Sha256;

use crate::fs::atomic::FileStamp;
use crate::git::{nul_separated, path_of};

/// How much recently changed content is read. Each file counts as one block at least.
const RECENT_BYTES_MAX: u64 = 16 << 20;
const BLOCK_BYTES: u64 = 4096;

/// The tracked files of a checkout, by folder.
#[derive(Debug, Default)]
pub(super) struct TreeStamps {
    folders: BTreeMap<OsString, TreeStamps>,
    files: BTreeMap<OsString, KnownFile>,
}

#[derive(Debug)]
struct KnownFile {
    stamp: FileStamp,
    /// The content, if the file changed so recently that another change could have the same time.
    recent: Option<Sha256>,
}

impl TreeStamps {
    /// Stamps the tracked files of a tree, listed with a NUL after each. `None` if one is missing, or if too many changed
    /// recently.
    pub(super) fn read(tree: &Path, listed: &[u8]) -> Option<Self> {
        let mut stamps = Self::default();
        let mut budget = RECENT_BYTES_MAX;
        for path in nul_separated(listed).map(path_of) {
            stamps.insert(path, KnownFile::read(&tree.join(path), &mut budget)?);
        }
        Some(stamps)
    }

    /// The stamps after git wrote or removed some files.
    pub(super) fn refreshed(mut self, tree: &Path, listed: &[u8]) -> Option<Self> {
        let mut budget = RECENT_BYTES_MAX;
        for path in nul_separated(listed).map(path_of) {
            self.remove(path);
            let target = tree.join(path);
            match target.symlink_metadata() {
                // The files below it are listed too, unless it is a submodule.
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => self.insert(path, KnownFile::read(&target, &mut budget)?),
                Err(_) => {}
            }
        }
        Some(self)
    }

    /// The paths that are not tracked, with a folder as one path. `None` if any tracked file is not as it was.
    pub(super) fn untracked(&mut self, tree: &Path) -> Option<Vec<PathBuf>> {
        let mut untracked = Vec::new();
        self.find_untracked(tree, Path::new(""), &mut untracked)?;
        Some(untracked)
    }

    fn find_untracked(&mut self, folder: &Path, prefix: &Path, untracked: &mut Vec<PathBuf>) -> Option<()> {
        let mut known = 0;
        for entry in fs::read_dir(folder).ok()? {
            let entry = entry.ok()?;
            let name = entry.file_name();
            if let Some(file) = self.files.get_mut(&name) {
                file.check(&entry)?;
                known += 1;
            } else if let Some(inner) = self.folders.get_mut(&name) {
                // A link to a folder is not one.
                entry.file_type().ok().filter(fs::FileType::is_dir)?;
                inner.find_untracked(&entry.path(), &prefix.join(&name), untracked)?;
                known += 1;
            } else if name != ".git" {
                untracked.push(prefix.join(&name));
            } else if prefix != Path::new("") {
                // Git does not look into a folder with a repository. At the top it is the mount point of the room's own.
                return None;
            }
        }
        (known == self.files.len() + self.folders.len()).then_some(())
    }

    fn insert(&mut self, path: &Path, file: KnownFile) {
        let (Some(name), folders) = split(path) else { return };
        let mut folder = self;
        for part in folders {
            folder = folder.folders.entry(part.to_owned()).or_default();
        }
        folder.files.insert(name.to_owned(), file);
    }

    fn remove(&mut self, path: &Path) {
        let mut parts = path.components();
        let Some(Component::Normal(first)) = parts.next() else { return };
        let rest = parts.as_path();
        if rest.as_os_str().is_empty() {
            self.files.remove(first);
        } else if let Some(inner) = self.folders.get_mut(first) {
            inner.remove(rest);
            if inner.files.is_empty() && inner.folders.is_empty() {
                self.folders.remove(first);
            }
        }
    }
}

/// The last part of a path, and those before it.
fn split(path: &Path) -> (Option<&OsStr>, impl Iterator<Item = &OsStr>) {
    let folders = path.parent().into_iter().flat_map(Path::components).map(Component::as_os_str);
    (path.file_name(), folders)
}

impl KnownFile {
    fn read(path: &Path, budget: &mut u64) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        let stamp = stamp_of(&metadata)?;
        let recent = if stamp.is_settled() {
            None
        } else {
            *budget = budget.checked_sub(metadata.len().max(BLOCK_BYTES))?;
            Some(content(path, &metadata)?)
        };
        Some(Self { stamp, recent })
    }

    /// `None` unless the file is as it was.
    fn check(&mut self, entry: &DirEntry) -> Option<()> {
        let metadata = entry.metadata().ok()?;
        stamp_of(&metadata).filter(|stamp| *stamp == self.stamp)?;
        if let Some(recent) = &self.recent {
            // Before the content is read: a later change must not count as settled.
            let is_settled = self.stamp.is_settled();
            content(&entry.path(), &metadata).filter(|now| now == recent)?;
            if is_settled {
                self.recent = None;
            }
        }
        Some(())
    }
}

/// The stamp of a file or a link.
fn stamp_of(metadata: &Metadata) -> Option<FileStamp> {
    (metadata.is_file() || metadata.is_symlink()).then(|| FileStamp::of(metadata))
}

fn content(path: &Path, metadata: &Metadata) -> Option<Sha256> {
    if metadata.is_symlink() {
        return fs::read_link(path).ok().map(|target| Sha256::of(target.as_os_str().as_bytes()));
    }
    fs::read(path).ok().map(|bytes| Sha256::of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const FILES: &[u8] = b"a.txt\0dir/b.txt\0dir/sub/c.txt\0link\0";

    fn tree() -> (tempfile::TempDir, TreeStamps) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("dir/sub")).unwrap();
        for name in ["a.txt", "dir/b.txt", "dir/sub/c.txt"] {
            fs::write(at(name), "first\n").unwrap();
        }
        symlink("a.txt", at("link")).unwrap();
        let stamps = TreeStamps::read(folder.path(), FILES).unwrap();
        (folder, stamps)
    }

    #[test]
    fn what_is_not_tracked_is_listed_with_a_folder_as_one_path() {
        let (folder, mut stamps) = tree();
        assert_eq!(stamps.untracked(folder.path()), Some(Vec::new()));
        for name in ["target/deep", "dir/new", ".git"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("dir/sub/x.o"), "").unwrap();
        let mut untracked = stamps.untracked(folder.path()).unwrap();
        untracked.sort();
        assert_eq!(untracked, ["dir/new", "dir/sub/x.o", "target"].map(PathBuf::from));
    }

    #[test]
    fn every_change_of_a_tracked_file_is_noticed() {
        type Change = fn(&Path);
        let changes: [Change; 9] = [
            |root| fs::write(root.join("a.txt"), "other\n").unwrap(),
            |root| fs::remove_file(root.join("dir/sub/c.txt")).unwrap(),
            |root| fs::remove_dir_all(root.join("dir")).unwrap(),
            |root| fs::rename(root.join("dir/b.txt"), root.join("dir/d.txt")).unwrap(),
            |root| fs::set_permissions(root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap(),
            |root| {
                fs::remove_file(root.join("link")).unwrap();
                symlink("b.txt", root.join("link")).unwrap();
            },
            |root| {
                fs::rename(root.join("dir"), root.join("moved")).unwrap();
                symlink("moved", root.join("dir")).unwrap();
            },
            |root| {
                fs::copy(root.join("a.txt"), root.join("copy")).unwrap();
                fs::rename(root.join("copy"), root.join("a.txt")).unwrap();
            },
            |root| fs::create_dir(root.join("dir/.git")).unwrap(),
        ];
        for (nth, change) in changes.into_iter().enumerate() {
            let (folder, mut stamps) = tree();
            change(folder.path());
            assert_eq!(stamps.untracked(folder.path()), None, "change {nth}");
        }
    }

    #[test]
    fn a_recent_file_is_compared_by_its_content() {
        let (folder, mut stamps) = tree();
        let file = folder.path().join("a.txt");
        fs::write(&file, "other\n").unwrap();
        // As if the clock of the file system were too coarse for the two.
        let known = stamps.files.get_mut(OsStr::new("a.txt")).unwrap();
        known.stamp = stamp_of(&file.symlink_metadata().unwrap()).unwrap();
        assert_eq!(stamps.untracked(folder.path()), None);
        fs::write(&file, "first\n").unwrap();
        let known = stamps.files.get_mut(OsStr::new("a.txt")).unwrap();
        known.stamp = stamp_of(&file.symlink_metadata().unwrap()).unwrap();
        assert_eq!(stamps.untracked(folder.path()), Some(Vec::new()));
    }

    #[test]
    fn files_that_git_wrote_or_removed_are_stamped_again() {
        let (folder, mut stamps) = tree();
        fs::remove_dir_all(folder.path().join("dir/sub")).unwrap();
        fs::write(folder.path().join("dir/sub"), "now a file\n").unwrap();
        fs::remove_file(folder.path().join("a.txt")).unwrap();
        fs::create_dir(folder.path().join("a.txt")).unwrap();
        fs::write(folder.path().join("a.txt/inside"), "now a folder\n").unwrap();
        assert_eq!(stamps.untracked(folder.path()), None);
        let written = b"a.txt\0a.txt/inside\0dir/sub\0dir/sub/c.txt\0";
        let mut stamps = stamps.refreshed(folder.path(), written).unwrap();
        assert_eq!(stamps.untracked(folder.path()), Some(Vec::new()));
    }

    #[test]
    fn a_missing_file_and_a_submodule_have_no_stamps() {
        let (folder, _) = tree();
        assert!(TreeStamps::read(folder.path(), b"a.txt\0gone\0").is_none());
        assert!(TreeStamps::read(folder.path(), b"a.txt\0dir\0").is_none());
    }
}
