//! Which protected files exist, and which of them a session changed.

use std::path::Path;

use runner_core::guard_files::entry_value;
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_core::model::protection::Protection;
use runner_core::model::repo_path::RepoPath;
use runner_core::step::{Job, ProtectedPath};

use crate::error::Error;
use crate::git::{ChangedPaths, Git, PathChange, PathSet, path_of};

/// The protected paths at the run's start and at the commit that an iteration begins from.
#[derive(Clone, Debug)]
pub(super) struct ProtectedPaths {
    pub(super) at_start: PathSet,
    pub(super) at_base: PathSet,
}

/// The index of an iteration after the session's changes were staged.
pub(super) struct StagedIndex<'a> {
    pub(super) git: &'a Git,
    pub(super) path: &'a Path,
    pub(super) base: &'a CommitId,
    pub(super) staged: &'a ChangedPaths,
}

/// All paths that a session changed, and the protected ones among them.
pub(super) struct SessionChanges {
    pub(super) changed: PathSet,
    /// The protected paths after the session.
    pub(super) protected_now: PathSet,
    pub(super) protected: Vec<ProtectedPath>,
}

impl ProtectedPaths {
    /// Reads the protected paths of an iteration from an index that describes its base commit.
    pub(super) fn read(git: &Git, job: &Job, base: &CommitId, index: &Path) -> Result<Self, Error> {
        let patterns = &job.permissions.protection.files;
        let at_base = match git.known_matching_in(base, patterns) {
            Some(paths) => paths,
            None => git.matching_in_index(index, patterns)?,
        };
        Ok(Self { at_start: at_start(git, &job.run_id, base, &job.permissions.protection.files)?, at_base })
    }

    /// Reads the protected paths from commits, where no index describes the base commit any more.
    pub(super) fn read_from_commits(git: &Git, job: &Job, base: &CommitId) -> Result<Self, Error> {
        let at_base = git.matching_in(base, &job.permissions.protection.files)?;
        Ok(Self { at_start: at_start(git, &job.run_id, base, &job.permissions.protection.files)?, at_base })
    }

    /// Compares the state after a session with these paths.
    pub(super) fn changes(
        &self,
        index: &StagedIndex<'_>,
        protection: &Protection,
    ) -> Result<SessionChanges, Error> {
        // A link in the place of a folder hides what was in it: only then are git's own lists needed.
        let is_unsure = has_links(index.git, index.staged);
        let changed: PathSet = if is_unsure {
            index.git.staged_paths(index.path, index.base)?
        } else {
            index.staged.keys().cloned().collect()
        };
        let has_new_files = index.staged.values().any(|change| *change == PathChange::Untracked);
        let now = if is_unsure || has_new_files {
            index.git.matching_in_index(index.path, &protection.files)?
        } else {
            let is_deleted = |path: &Vec<u8>| index.staged.get(path) == Some(&PathChange::Deleted);
            self.at_base.iter().filter(|path| !is_deleted(path)).cloned().collect()
        };
        let mut protected = self.compare(&now, &changed, protection);
        protected.extend(entry_changes(index, &changed, protection)?);
        Ok(SessionChanges { changed, protected_now: now, protected })
    }

    /// The protected paths that the session changed, and those that did not exist at the run's start.
    fn compare(&self, now: &PathSet, changed: &PathSet, protection: &Protection) -> Vec<ProtectedPath> {
        let all = now.union(&self.at_base).map(|path| ProtectedPath {
            path: RepoPath::of_bytes(path),
            existed_at_start: self.at_start.contains(path) || protection.pins(&RepoPath::of_bytes(path)),
            changed: changed.contains(path),
            exists: now.contains(path),
        });
        all.filter(|path| path.changed || !path.existed_at_start).collect()
    }
}

/// The protected entries of files that the session changed, and those that exist and are not pinned yet.
fn entry_changes(
    index: &StagedIndex<'_>,
    changed: &PathSet,
    protection: &Protection,
) -> Result<Vec<ProtectedPath>, Error> {
    let mut paths = Vec::new();
    for file in protection.entry_files() {
        let is_changed = changed.contains(&file.to_bytes());
        let entries: Vec<_> = protection.entries.iter().filter(|entry| entry.file == file).collect();
        if !is_changed && entries.iter().all(|entry| entry.pinned) {
            continue;
        }
        let after = index.git.file_in_index(index.path, &file)?;
        let before = if is_changed { index.git.file_in_commit(index.base, &file)? } else { after.clone() };
        for entry in entries {
            let value = entry_value(entry, after.as_deref());
            let path = ProtectedPath {
                path: entry.path(),
                existed_at_start: entry.pinned,
                changed: entry_value(entry, before.as_deref()) != value,
                exists: value.is_some(),
            };
            paths.extend((path.changed || (!entry.pinned && path.exists)).then_some(path));
        }
    }
    Ok(paths)
}

fn at_start(git: &Git, run: &RunId, base: &CommitId, patterns: &[String]) -> Result<PathSet, Error> {
    git.matching_in(&git.start_commit(run, base)?, patterns)
}

/// Whether any of these paths is a link now.
fn has_links(git: &Git, paths: &ChangedPaths) -> bool {
    let is_link = |path: &Vec<u8>| {
        git.root().join(path_of(path)).symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
    };
    paths.keys().any(is_link)
}
