//! The folder with the copies of a run's ignored files: `.git/runner/ignored/<run>/`.
//!
//! Ignored files are where people keep their keys, so that copies must not be in git: an object can be pushed, fetched, bundled
//! and cloned. Each content is a file named after its hash that only its owner may read. A numbered list says which file has
//! which content; the newest counts, and older ones keep what the user had before.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;
use runner_core::model::id::RunId;
use runner_core::model::repo_path::RepoPath;
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use super::user_files::FileState;
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::lookup;
use crate::git::Git;

const LIST_BYTES_MAX: u64 = 64 << 20;
/// How much of a hash names a file.
const NAME_DIGITS: usize = 20;

/// A copy, and what its file looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptCopy {
    #[serde(flatten)]
    pub(super) state: FileState,
    pub(super) sha256: Sha256,
}

/// Copies by the path of their file.
pub(super) type KeptCopies = BTreeMap<Vec<u8>, KeptCopy>;

/// The copies of one run.
#[derive(Clone, Debug)]
pub(super) struct CopyFolder {
    /// The runner's private folder.
    private: PathBuf,
    path: PathBuf,
}

impl CopyFolder {
    pub(super) fn of(git: &Git, run: &RunId) -> Self {
        Self::at(git, git.paths().ignored_copies().join(run.as_str()))
    }

    fn at(git: &Git, path: PathBuf) -> Self {
        Self { private: git.paths().private(), path }
    }

    /// The newest list; none if nothing was kept yet.
    pub(super) fn newest(&self) -> Result<Option<KeptCopies>, Error> {
        match self.list_numbers()?.pop() {
            Some(number) => Ok(Some(self.read_list(number)?)),
            None => Ok(None),
        }
    }

    /// Stores a content, unless it is there.
    pub(super) fn store(&self, bytes: &[u8]) -> Result<Sha256, Error> {
        let sha256 = Sha256::of(bytes);
        let path = self.path_of(sha256);
        if self.content(sha256).is_none() {
            atomic::remove_any(&path)?;
            atomic::create_folders(&self.private, &self.path)?;
            let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
            file.and_then(|mut file| file.write_all(bytes)).map_err(Error::io("write", &path))?;
        }
        Ok(sha256)
    }

    /// Adds a list, once all contents are on the disk.
    pub(super) fn add_list(&self, git: &Git, copies: &KeptCopies) -> Result<(), Error> {
        git.sync()?;
        let number = self.list_numbers()?.pop().unwrap_or(0).saturating_add(1);
        let by_path: BTreeMap<RepoPath, KeptCopy> =
            copies.iter().map(|(path, copy)| (RepoPath::of_bytes(path), *copy)).collect();
        atomic::create_folders(&self.private, &self.path)?;
        atomic::write_private(&self.list_path(number), &canonical_json(&by_path))
    }

    /// A stored content; none if it is missing or was changed.
    pub(super) fn content(&self, sha256: Sha256) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path_of(sha256)).ok()?;
        (Sha256::of(&bytes) == sha256).then_some(bytes)
    }

    pub(super) fn path_of(&self, sha256: Sha256) -> PathBuf {
        let name: String = sha256.to_string().chars().take(NAME_DIGITS).collect();
        self.path.join(name)
    }

    /// Every path that a list of this run has.
    fn all_paths(&self) -> Result<Vec<Vec<u8>>, Error> {
        let mut paths = Vec::new();
        for number in self.list_numbers()? {
            paths.extend(self.read_list(number)?.into_keys());
        }
        Ok(paths)
    }

    fn list_path(&self, number: u32) -> PathBuf {
        self.path.join(format!("{number:04}.json"))
    }

    fn list_numbers(&self) -> Result<Vec<u32>, Error> {
        let entries = lookup::entries(&self.path)?.into_iter();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut numbers: Vec<u32> =
            names.filter_map(|name| name.strip_suffix(".json")?.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// A list that an agent without a sandbox made unreadable is an empty one.
    fn read_list(&self, number: u32) -> Result<KeptCopies, Error> {
        let bytes = atomic::read(&self.list_path(number), LIST_BYTES_MAX)?.unwrap_or_default();
        let listed: BTreeMap<RepoPath, KeptCopy> = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(listed.into_iter().map(|(path, copy)| (path.to_bytes(), copy)).collect())
    }
}

/// Every path of which a run of this work tree has a copy.
pub(super) fn paths_with_copies(git: &Git) -> Result<Vec<Vec<u8>>, Error> {
    let mut paths = Vec::new();
    let runs = lookup::entries(&git.paths().ignored_copies())?.into_iter();
    for run in runs.filter(|run| run.file_type().is_ok_and(|kind| kind.is_dir())) {
        paths.extend(CopyFolder::at(git, run.path()).all_paths()?);
    }
    Ok(paths)
}

/// Removes the copies of a run.
pub(crate) fn remove_copies(git: &Git, run: &RunId) -> Result<(), Error> {
    atomic::remove_any(&CopyFolder::of(git, run).path)
}

/// The path as the user types it at the root of the work tree.
pub(super) fn from_root(git: &Git, path: &Path) -> PathBuf {
    path.strip_prefix(git.root()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn copy(sha256: Sha256) -> KeptCopy {
        let state = FileState { bytes: 1, mtime_ns: 2, mode: 0o100_644, is_in_folder: false };
        KeptCopy { state, sha256 }
    }

    #[test]
    fn copies_are_files_of_the_owner_and_no_objects() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        atomic::ensure_folder(&git.paths().private()).unwrap();
        let run = RunId::new("x").unwrap();
        let copies = CopyFolder::of(&git, &run);
        assert_eq!(copies.newest().unwrap(), None);
        let odd = b"a \"b\"\\\n\xff\xc3\xa9".to_vec();
        let first = copies.store(b"a\r\n\0").unwrap();
        copies.add_list(&git, &BTreeMap::from([(odd.clone(), copy(first))])).unwrap();
        let second = copies.store(b"c").unwrap();
        let list = BTreeMap::from([(b"c".to_vec(), copy(second))]);
        copies.add_list(&git, &list).unwrap();
        assert_eq!(copies.newest().unwrap(), Some(list));
        assert_eq!(paths_with_copies(&git).unwrap(), [odd, b"c".to_vec()]);
        assert_eq!(copies.content(first).unwrap(), b"a\r\n\0");
        assert_eq!(copies.path_of(first).metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(git.call(&["count-objects"]).run().unwrap(), b"0 objects, 0 kilobytes\n");
        fs::write(copies.path_of(first), "changed").unwrap();
        assert_eq!(copies.content(first), None, "a copy that was changed is none");
        copies.store(b"a\r\n\0").unwrap();
        assert_eq!(copies.content(first).unwrap(), b"a\r\n\0", "it is stored again");
        remove_copies(&git, &run).unwrap();
        assert_eq!(copies.newest().unwrap(), None);
    }
}
