//! Submodules, of which a commit has nothing but the commit that is checked out there.

use std::path::Path;

use runner_core::step::FileAction;

use super::aside::AsideFolder;
use super::obstacles::watched;
use crate::error::Error;
use crate::git::{Git, IndexEntry, path_of};

const CHANGED_INSIDE: &str = "files inside this submodule changed; commit them there";

/// Removes a submodule from an index if a session left other files in its place, so that those are staged. Notes submodules
/// in which files changed: they are no part of the commit.
pub(super) fn release_submodules(git: &Git, index: &Path, aside: &mut AsideFolder<'_>) -> Result<(), Error> {
    if !has_submodules(git) {
        return Ok(());
    }
    let mut replaced = Vec::new();
    for path in git.submodules(index)? {
        let folder = git.root().join(path_of(&path));
        let has_files = || folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if folder.is_symlink() || !folder.is_dir() {
            continue;
        }
        if folder.join(".git").symlink_metadata().is_ok() {
            if is_dirty(git, &folder) {
                aside.note(&path, FileAction::LeftInPlace, CHANGED_INSIDE);
            }
        } else if has_files() {
            replaced.push(IndexEntry::Remove(path));
        }
    }
    if replaced.is_empty() { Ok(()) } else { git.edit_index(index, &replaced) }
}

/// Reads no index: few repositories have submodules.
fn has_submodules(git: &Git) -> bool {
    git.root().join(".gitmodules").symlink_metadata().is_ok() || git.common_dir().join("modules").is_dir()
}

/// Whether files inside a submodule differ from its commit. A repository that git cannot read is not known to.
fn is_dirty(git: &Git, folder: &Path) -> bool {
    let has_changes = || {
        let submodule = Git::open(folder)?;
        Ok(submodule.root() == folder && !submodule.status()?.is_clean())
    };
    watched(git.root(), has_changes).result.unwrap_or(false)
}
