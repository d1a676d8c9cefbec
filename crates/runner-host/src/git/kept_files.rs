//! Keeping files under a reference of their own, byte for byte, without the user's index and work tree.

use runner_core::model::object_id::CommitId;

use super::{EntryMode, Git, IndexEntry, TreeEntry};
use crate::error::Error;
use crate::fs::atomic;

/// A file of a commit.
pub(crate) struct KeptFile {
    /// Relative to the root, as git prints it.
    pub(crate) path: Vec<u8>,
    pub(crate) is_executable: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Git {
    /// Adds files to a commit, or to an empty one, and points the reference to the new commit once its objects are on the
    /// disk.
    pub(crate) fn keep_files(
        &self,
        reference: &str,
        parent: Option<&CommitId>,
        message: &str,
        files: &[KeptFile],
    ) -> Result<CommitId, Error> {
        let index = self.paths().private_index("kept");
        match parent {
            Some(parent) => self.read_into_index(&index, parent)?,
            None => atomic::remove_any(&index)?,
        }
        let mut edits = Vec::new();
        for file in files {
            let mode = if file.is_executable { EntryMode::Executable } else { EntryMode::File };
            let object = self.store_blob(&file.bytes)?;
            edits.push(IndexEntry::Put(TreeEntry { mode, object, path: file.path.clone() }));
        }
        self.edit_index(&index, &edits)?;
        let tree = self.write_tree(&index)?;
        atomic::remove_any(&index)?;
        let commit = self.store_commit(&tree, parent, message)?;
        self.sync()?;
        self.point_ref(reference, &commit)?;
        Ok(commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::lossy;

    #[test]
    fn files_are_stored_byte_for_byte_and_added_to_the_commit_before() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        atomic::ensure_folder(&git.paths().private()).unwrap();
        let file = |path: &[u8], bytes: &[u8]| KeptFile {
            path: path.to_vec(),
            is_executable: false,
            bytes: bytes.to_vec(),
        };
        let odd = b"a \"b\"\\\n\xff\xc3\xa9";
        git.keep_files("refs/runner/x/edits/0001", None, "one", &[file(odd, b"a\r\n\0"), file(b"c", b"")])
            .unwrap();
        let first = git.resolve("refs/runner/x/edits/0001").unwrap().unwrap();
        git.keep_files("refs/runner/x/edits/0001", Some(&first), "two", &[file(b"c", b"c")]).unwrap();
        let second = git.resolve("refs/runner/x/edits/0001").unwrap().unwrap();
        let paths: Vec<Vec<u8>> =
            git.files_of(&second, ".").unwrap().into_iter().map(|file| file.path).collect();
        assert_eq!(paths, [odd.to_vec(), b"c".to_vec()]);
        assert_eq!(git.call(&["show", &format!("{second}:c")]).run().unwrap(), b"c");
        assert_eq!(lossy(&git.call(&["log", "--format=%s", second.as_str()]).run().unwrap()), "two\none");
        assert_eq!(lossy(&git.call(&["fsck", "--strict", "--no-dangling"]).run().unwrap()), "");
    }
}
