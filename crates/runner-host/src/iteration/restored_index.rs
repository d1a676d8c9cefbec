//! Restores protected files in the index of an iteration: whole files, and single entries of files that an agent may change
//! otherwise.

use std::path::Path;

use runner_core::guard_files::restored_entries;
use runner_core::model::object_id::CommitId;
use runner_core::model::protection::{FileEntry, Protection};
use runner_core::model::repo_path::RepoPath;

use crate::error::Error;
use crate::git::{EntryMode, Git, IndexEntry, TreeEntry};
use crate::repo::worktree;

/// The index of an iteration, and the commit whose files it gets back.
pub(super) struct RestoredIndex<'a> {
    pub(super) git: &'a Git,
    pub(super) index: &'a Path,
    pub(super) base: &'a CommitId,
}

impl RestoredIndex<'_> {
    /// Restores files and entries, and returns the files of the work tree that differ from the index now.
    pub(super) fn restore(&self, paths: &[RepoPath], protection: &Protection) -> Result<Vec<Vec<u8>>, Error> {
        let mut files: Vec<Vec<u8>> = Vec::new();
        let mut spliced: Vec<Vec<u8>> = Vec::new();
        for path in paths.iter().filter(|path| protection.entry(path).is_none()) {
            files.push(path.to_bytes());
        }
        for file in protection.entry_files() {
            let is_listed = |entry: &&FileEntry| entry.file == file && paths.contains(&entry.path());
            let entries: Vec<&FileEntry> = protection.entries.iter().filter(is_listed).collect();
            if entries.is_empty() || files.contains(&file.to_bytes()) {
                continue;
            }
            if self.restore_entries(&file, &entries)? {
                spliced.push(file.to_bytes());
            } else {
                files.push(file.to_bytes());
            }
        }
        worktree::restore_in_index(self.git, self.index, self.base, &files)?;
        files.extend(spliced);
        Ok(files)
    }

    /// Restores entries of a file; false if only the whole file can be restored.
    fn restore_entries(&self, file: &RepoPath, entries: &[&FileEntry]) -> Result<bool, Error> {
        let before = self.git.file_in_commit(self.base, file)?;
        let Some(after) = self.git.file_in_index(self.index, file)? else { return Ok(false) };
        let Some(restored) = restored_entries(entries, before.as_deref(), &after) else { return Ok(false) };
        let object = self.git.store_blob(&restored)?;
        let entry = TreeEntry { mode: EntryMode::File, object, path: file.to_bytes() };
        self.git.edit_index(self.index, &[IndexEntry::Put(entry)])?;
        Ok(true)
    }
}
