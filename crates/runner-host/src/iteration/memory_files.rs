//! Memory files after a session: agents append to them, and whatever else a session did to them is undone.

use runner_core::layout::{Doc, DocOwner};
use runner_core::model::repo_path::RepoPath;
use runner_core::step::{MemoryChange, memory_change};

use super::open_iteration::IterationSetup;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{ChangedPaths, EntryMode, Git, IndexEntry, TreeEntry};

/// Restores the earlier text of memory files that a session changed, in the index and in the work tree, and returns their paths.
/// Text that it added somewhere else goes to the end; a file that lost text is restored as a whole. What the session wrote
/// is kept in the iteration's folder.
pub(super) fn restore_memory(
    git: &Git,
    setup: &IterationSetup,
    staged: &mut ChangedPaths,
) -> Result<Vec<RepoPath>, Error> {
    let mut restored = Vec::new();
    for doc in Doc::ALL.into_iter().filter(|doc| doc.owner() == DocOwner::Memory) {
        if !staged.contains_key(doc.path().as_bytes()) {
            continue;
        }
        let path = RepoPath::of_bytes(doc.path().as_bytes());
        let before = git.file_in_commit(&setup.base, &path)?.unwrap_or_default();
        let after = git.file_in_index(&setup.index, &path)?.unwrap_or_default();
        let text = match memory_change(&before, &after) {
            MemoryChange::Appended => continue,
            MemoryChange::Merged(text) => text,
            MemoryChange::Rejected => before.clone(),
        };
        let name = doc.path().rsplit('/').next().unwrap_or_default();
        setup.dir.write_log(&format!("rejected-{name}"), &after);
        let object = git.store_blob(&text)?;
        let entry = TreeEntry { mode: EntryMode::File, object, path: doc.path().into() };
        git.edit_index(&setup.index, &[IndexEntry::Put(entry)])?;
        atomic::write(&git.paths().doc(doc), &text)?;
        if text == before {
            staged.remove(doc.path().as_bytes());
        }
        restored.push(path);
    }
    Ok(restored)
}
