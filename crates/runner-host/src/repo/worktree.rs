//! The work tree: staging what a session left, and keeping safe what cannot be committed.
//!
//! Works on a private index that was copied before the session: nothing the session did to the user's index can hide a
//! change, and git reads only files that changed.

mod aside;
mod ignore_rules;
mod ignored_copies;
mod key_files;
mod obstacles;
mod permissions;
mod scan;
mod stage;
mod submodules;
mod user_edits;
mod user_files;

use std::path::{Path, PathBuf};

use runner_core::model::object_id::CommitId;

pub(crate) use aside::recorded_notices;
pub(crate) use ignored_copies::remove_copies;
pub(crate) use key_files::show_command;
pub(crate) use obstacles::remove_blocking_files;
pub(crate) use scan::{WorktreeState, differing_paths, scan};
pub(crate) use stage::{StagedChanges, stage, stage_all};
pub(crate) use user_edits::keep_edits;
pub(crate) use user_files::UserFiles;

use crate::error::Error;
use crate::fs::atomic::{self, FileStamp};
use crate::git::{Git, IndexEntry, path_of};

/// Copies the user's index to a private one. The work tree is clean, so that both describe it. If the user's index still
/// has the stamp `known`, which it had when the runner wrote it, no entry has a mark that hides changes, unless the runner kept some.
pub(crate) fn pin_index(git: &Git, known: Option<FileStamp>) -> Result<PathBuf, Error> {
    let index = git.paths().private_index("work");
    let is_known = known.is_some() && !git.has_kept_marks() && atomic::stamp(&git.paths().index()) == known;
    atomic::copy_with_mtime(&git.paths().index(), &index)?;
    if !is_known {
        git.clear_marks(&index)?;
    }
    Ok(index)
}

/// Restores files in an index to their version in a commit; removes those that the commit does not have.
pub(crate) fn restore_in_index(
    git: &Git,
    index: &Path,
    commit: &CommitId,
    paths: &[Vec<u8>],
) -> Result<(), Error> {
    let mut edits = Vec::new();
    for path in paths {
        let name = path_of(path).to_string_lossy();
        let files = git.files_of(commit, &format!(":(literal){name}"))?;
        let file = files.into_iter().find(|file| file.path == *path);
        edits.push(file.map_or_else(|| IndexEntry::Remove(path.clone()), IndexEntry::Put));
    }
    git.edit_index(index, &edits)
}
