//! A commit that changes the runner's documents must change nothing else: checked before it is published.

use runner_core::model::object_id::CommitId;

use crate::error::Error;
use crate::git::{DiffFilter, Git};
use crate::paths::is_runner_path;

/// Fails if a commit differs from its parent outside `.runner/`. Publishing such a commit would remove or change files of the
/// user's, so this is checked even though correct code never stores one.
pub(crate) fn check_scope(git: &Git, parent: &CommitId, commit: &CommitId) -> Result<(), Error> {
    let changed = git.changed_paths(parent, commit, DiffFilter::Any)?;
    if changed.iter().all(|path| is_runner_path(path)) {
        return Ok(());
    }
    Err(Error::Internal("a commit of runner documents changes other files"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_commit_from_a_wrong_index_is_an_internal_error() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        fs::write(folder.path().join("user.txt"), "x").unwrap();
        git.commit_everything("root").unwrap();
        fs::create_dir(git.paths().private()).unwrap();
        let parent = git.resolve("HEAD").unwrap().unwrap();
        let index = git.paths().in_git_dir("wrong.index");

        git.read_into_index(&index, &parent).unwrap();
        let same = git.store_commit(&git.write_tree(&index).unwrap(), &parent, "same").unwrap();
        check_scope(&git, &parent, &same).unwrap();

        // What an unreadable split index gives: an empty tree.
        let edits = [crate::git::IndexEntry::Remove(b"user.txt".to_vec())];
        git.edit_index(&index, &edits).unwrap();
        let empty = git.store_commit(&git.write_tree(&index).unwrap(), &parent, "empty").unwrap();
        assert!(matches!(check_scope(&git, &parent, &empty), Err(Error::Internal(_))));
    }
}
