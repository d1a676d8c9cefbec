//! The files of a commit, read by name: for the protection that follows from them, and for protected entries of files.

use std::cell::RefCell;

use runner_core::config::{Executor, GuardConfig};
use runner_core::guard_files::{
    self, ChangedEntry, DerivedProtection, RepoFiles, RunChecks, changed_entries_of,
};
use runner_core::model::instructions::PinnedInstructions;
use runner_core::model::object_id::CommitId;
use runner_core::model::protection::Protection;

use crate::error::Error;
use crate::git::{CatFileBatch, Git, LogEntry, PathSet, lossy};

/// The regular files of a commit, with links inside of the repository resolved.
pub(crate) struct CommitFiles {
    commit: CommitId,
    batch: RefCell<CatFileBatch>,
    resolved: RefCell<CatFileBatch>,
    /// The first failure; what was read after it does not count.
    failure: RefCell<Option<Error>>,
}

impl CommitFiles {
    pub(crate) fn open(git: &Git, commit: &CommitId) -> Result<Self, Error> {
        Ok(Self {
            commit: commit.clone(),
            batch: RefCell::new(git.batch()?),
            resolved: RefCell::new(git.batch_resolving_links()?),
            failure: RefCell::new(None),
        })
    }

    fn file(&self, batch: &RefCell<CatFileBatch>, path: &str) -> Option<Vec<u8>> {
        let result = batch.borrow_mut().file(&format!("{}:{path}", self.commit));
        result.unwrap_or_else(|error| {
            self.failure.borrow_mut().get_or_insert(error);
            None
        })
    }

    /// Fails if anything could not be read.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.failure.into_inner().map_or(Ok(()), Err)
    }
}

impl RepoFiles for CommitFiles {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.file(&self.resolved, path)
    }

    fn is_folder(&self, path: &str) -> bool {
        let result = self.batch.borrow_mut().folder(&format!("{}:{path}", self.commit));
        result
            .unwrap_or_else(|error| {
                self.failure.borrow_mut().get_or_insert(error);
                None
            })
            .is_some()
    }

    fn link(&self, path: &str) -> Option<String> {
        let bytes = self.file(&self.batch, path)?;
        let is_link = bytes.len() < LINK_BYTES_MAX && self.read(path).as_deref() != Some(&bytes);
        is_link.then(|| lossy(&bytes))
    }
}

/// The longest path that a link can hold.
const LINK_BYTES_MAX: usize = 4096;

/// What a configuration protects, with the files of a commit.
pub(crate) fn protection_at(git: &Git, commit: &CommitId, guard: &GuardConfig) -> Result<Protection, Error> {
    let files = CommitFiles::open(git, commit)?;
    let protection = guard_files::protection(guard, &files);
    files.finish()?;
    Ok(protection)
}

/// What checks add to the protection of a run, with the files of a commit.
pub(crate) fn followed_at(
    git: &Git,
    commit: &CommitId,
    checks: RunChecks<'_>,
) -> Result<Option<DerivedProtection>, Error> {
    let files = CommitFiles::open(git, commit)?;
    let derived = checks.follow(&files);
    files.finish()?;
    Ok(derived)
}

/// The instructions that a configuration names, with the files of a commit.
pub(crate) fn instructions_at(
    git: &Git,
    commit: &CommitId,
    executor: &Executor,
) -> Result<Option<PinnedInstructions>, Error> {
    let files = CommitFiles::open(git, commit)?;
    let instructions = PinnedInstructions::of(&executor.instructions, &files);
    files.finish()?;
    Ok(instructions)
}

/// The protected entries that a commit changed against its first parent.
fn changed_entries(
    batch: &mut CatFileBatch,
    entry: &LogEntry,
    protection: &Protection,
) -> Result<Vec<ChangedEntry>, Error> {
    let mut changed = Vec::new();
    for file in protection.entry_files() {
        if !entry.changes.iter().any(|change| change.path == file.to_bytes()) {
            continue;
        }
        let before = batch.file(&format!("{}^1:{file}", entry.id))?;
        let after = batch.file(&format!("{}:{file}", entry.id))?;
        changed.extend(changed_entries_of(protection, &file, before.as_deref(), after.as_deref()));
    }
    Ok(changed)
}

/// What the user's own commits after `last` changed and only `runner start` may put into effect: files of the runner's, and
/// what the run protects.
pub(crate) fn unstarted_changes(
    git: &Git,
    last: &CommitId,
    tip: &CommitId,
    protection: &Protection,
) -> Result<PathSet, Error> {
    let mut paths = PathSet::new();
    let mut batch = git.batch()?;
    for entry in git.log(tip, Some(last), &[])? {
        let entry = entry?;
        paths.extend(changed_entries(&mut batch, &entry, protection)?.into_iter().map(|entry| entry.path));
        let changed = entry.changes.into_iter().map(|change| change.path);
        paths.extend(changed.filter(|path| crate::paths::is_runner_path(path)));
    }
    if !protection.files.is_empty() {
        for entry in git.log(tip, Some(last), &protection.files)? {
            paths.extend(entry?.changes.into_iter().map(|change| change.path));
        }
    }
    Ok(paths)
}
