//! Publishing a prepared commit, so that the next command finishes it after a crash at any point.
//!
//! The order: journal, branch, files outside `.runner/`, files inside it, HEAD, index, end of the journal. The branch is
//! the point of no return; everything after it is a redo from the commit. Nothing is lost: a work tree that is neither the
//! old nor the new one is first stored under `refs/runner/<run>/found/`.

use std::fs;
use std::path::{Path, PathBuf};

use runner_core::commit_message::stray_files_subject;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::RunId;
use runner_core::model::object_id::TreeId;

use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{CheckoutMode, DiffFilter, EntryMode, Git, IndexEntry, TreeEntry, path_of};
use crate::repo::journal::{self, JournalEntry, PublishEntry};
use crate::repo::paths::is_runner_path;
use crate::repo::repo_guard::collect_locks;
use crate::repo::worktree::WorktreeState;

/// A publication that recovery finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredPublish {
    pub run: RunId,
    /// The reference that stores a work tree which was neither the old nor the new one.
    pub saved: Option<String>,
}

/// Publishes a commit and checks its files out. The files outside `.runner/` must be those of `entry.from`.
pub(crate) fn publish_by_checkout(git: &Git, entry: &PublishEntry) -> Result<(), Error> {
    let index = git.paths().private_index("publish");
    let files = git.runner_files(&entry.new_tip)?;
    refuse_links(git, &files)?;
    let current = prepare_index(git, &index, &files)?;
    let dry_run = git.switch_files(&index, &current, &entry.new_tip, CheckoutMode::DryRun);
    if let Err(Error::Git { stderr, .. }) = dry_run {
        return Err(UserError::SwitchBlocked { branch: entry.run.branch().to_string(), stderr }.into());
    }
    dry_run?;
    refuse_overwriting(git, &current, entry)?;
    refuse_locked_index(git)?;

    journal::begin(&git.paths().journal(), &JournalEntry::Publish(entry.clone()))?;
    failpoint::reach("publish.journal");
    move_branch(git, entry)?;
    failpoint::reach("publish.branch");
    git.switch_files(&index, &current, &entry.new_tip, CheckoutMode::Apply)?;
    failpoint::reach("publish.files");
    write_runner_files(git, entry, &files)?;
    finalize(git, entry)
}

/// Copies the user's index and replaces its entries for `.runner/` by those of the new commit, so that a switch of trees
/// leaves that folder alone. Returns the tree of the copy.
fn prepare_index(git: &Git, index: &Path, files: &[TreeEntry]) -> Result<TreeId, Error> {
    atomic::copy_with_mtime(&git.paths().index(), index)?;
    // A file with a new time and the same content must not count as changed.
    git.refresh_index(index)?;
    let mut edits: Vec<IndexEntry> =
        git.index_paths(index, RUNNER_DIR)?.into_iter().map(IndexEntry::Remove).collect();
    edits.extend(files.iter().cloned().map(IndexEntry::Put));
    git.edit_index(index, &edits)?;
    git.write_tree(index)
}

/// Refuses links and submodules in the runner's folder, on any branch.
fn refuse_links(git: &Git, files: &[TreeEntry]) -> Result<(), Error> {
    for file in files {
        let what = match file.mode {
            EntryMode::Link => "a symbolic link",
            EntryMode::Submodule => "another repository",
            EntryMode::File | EntryMode::Executable => continue,
        };
        let path = git.root().join(path_of(&file.path));
        return Err(UserError::NotAFile { path, what }.into());
    }
    Ok(())
}

/// Refuses to overwrite ignored files. Git would do it, but an ignored file may be the user's only copy.
fn refuse_overwriting(git: &Git, current: &TreeId, entry: &PublishEntry) -> Result<(), Error> {
    let removed = git.changed_paths(current, &entry.new_tip, DiffFilter::Removed)?;
    let added = git.changed_paths(current, &entry.new_tip, DiffFilter::Added)?;
    let mut blocking: Vec<String> = Vec::new();
    for added in added.iter().filter(|path| !is_runner_path(path)) {
        for path in path_of(added).ancestors() {
            let blocks = git.root().join(path).symlink_metadata().is_ok_and(|found| !found.is_dir());
            if blocks && !removed.iter().any(|removed| path_of(removed) == path) {
                blocking.push(path.display().to_string());
            }
        }
    }
    blocking.dedup();
    if blocking.is_empty() {
        return Ok(());
    }
    let branch = entry.run.branch().to_string();
    Err(UserError::SwitchBlocked { branch, stderr: blocking.join("\n") }.into())
}

fn refuse_locked_index(git: &Git) -> Result<(), Error> {
    let lock = git.paths().index_lock();
    if lock.symlink_metadata().is_ok() {
        return Err(UserError::IndexLocked(lock).into());
    }
    Ok(())
}

fn move_branch(git: &Git, entry: &PublishEntry) -> Result<(), Error> {
    if entry.old_tip.as_ref() == Some(&entry.new_tip) {
        return Ok(());
    }
    git.move_ref(&entry.run.branch().reference(), entry.old_tip.as_ref(), &entry.new_tip)
}

/// Writes the files in `.runner/` of the new commit, and removes those that only the old one had.
fn write_runner_files(git: &Git, entry: &PublishEntry, files: &[TreeEntry]) -> Result<(), Error> {
    for old in git.runner_files(&entry.from)? {
        if !files.iter().any(|new| new.path == old.path) {
            atomic::remove_file(&git.root().join(path_of(&old.path)))?;
        }
    }
    let objects: Vec<&str> = files.iter().map(|file| file.object.as_str()).collect();
    for (file, bytes) in files.iter().zip(git.blobs(&objects)?) {
        let path = git.root().join(path_of(&file.path));
        ensure_folders(git, &file.path)?;
        if atomic::read(&path, u64::MAX - 1)?.as_deref() != Some(&bytes) {
            atomic::write(&path, &bytes)?;
            set_mode(&path, file)?;
        }
    }
    Ok(())
}

/// Creates every folder on the way to a file of the runner's, each a real one.
fn ensure_folders(git: &Git, path: &[u8]) -> Result<(), Error> {
    for (at, byte) in path.iter().enumerate() {
        if *byte == b'/' {
            atomic::ensure_folder(&git.root().join(path_of(path.get(..at).unwrap_or_default())))?;
        }
    }
    Ok(())
}

fn set_mode(path: &Path, file: &TreeEntry) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    if file.mode == EntryMode::Executable {
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path, mode).map_err(Error::io("write", path))?;
    }
    Ok(())
}

/// A commit whose files the work tree has already, except for the runner's documents.
pub(crate) struct PreparedCommit<'a> {
    pub(crate) entry: &'a PublishEntry,
    /// An index that describes the commit.
    pub(crate) index: PathBuf,
    /// Whether the work tree changed since the commit's files were staged.
    pub(crate) worktree: WorktreeState,
    /// The documents that are written beside their places and only have to be renamed.
    pub(crate) docs: &'a [Doc],
}

/// Publishes a commit whose files the work tree has already. Later changes to the work tree are saved and undone.
pub(crate) fn publish_in_place(git: &Git, commit: &PreparedCommit<'_>) -> Result<(), Error> {
    let entry = commit.entry;
    let index = git.paths().private_index("publish");
    fs::rename(&commit.index, &index).map_err(Error::io("move", &commit.index))?;
    journal::begin(&git.paths().journal(), &JournalEntry::Publish(entry.clone()))?;
    failpoint::reach("publish.journal");
    move_branch(git, entry)?;
    failpoint::reach("publish.branch");
    for doc in commit.docs {
        atomic::commit_prepared(&git.paths().doc(*doc))?;
    }
    git.attach_head(&entry.run.branch())?;
    if commit.worktree == WorktreeState::Dirty {
        save_stray_files(git, &index, entry)?;
        git.reset_worktree(&index, &entry.new_tip)?;
    }
    finalize(git, entry)
}

/// The last steps: HEAD, the user's index, a sync of the file system, the end of the journal.
fn finalize(git: &Git, entry: &PublishEntry) -> Result<(), Error> {
    failpoint::reach("publish.documents");
    git.attach_head(&entry.run.branch())?;
    failpoint::reach("publish.head");
    install_index(git)?;
    failpoint::reach("publish.index");
    atomic::sync_file_system(git.root())?;
    journal::end(&git.paths().journal())
}

/// Replaces the user's index by the prepared one as git does it: through the index lock.
fn install_index(git: &Git) -> Result<(), Error> {
    let prepared = git.paths().private_index("publish");
    let lock = git.paths().index_lock();
    fs::hard_link(&prepared, &lock).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Error::from(UserError::IndexLocked(lock.clone()));
        }
        Error::io("create", &lock)(error)
    })?;
    failpoint::reach("publish.index-lock");
    fs::rename(&lock, git.paths().index()).map_err(Error::io("write", git.paths().index()))?;
    atomic::remove_any(&prepared)
}

/// Finishes a publication that a crash interrupted. The caller holds the runner's lock.
pub(crate) fn recover(git: &Git, entry: PublishEntry) -> Result<Option<RecoveredPublish>, Error> {
    remove_locks(git, &entry)?;
    let tip = git.branch_tip(&entry.run.branch())?;
    if tip == entry.old_tip {
        move_branch(git, &entry)?;
    } else if tip.as_ref() != Some(&entry.new_tip) {
        // Someone else moved the branch: nothing is left to finish.
        journal::end(&git.paths().journal())?;
        return Ok(None);
    }
    let index = git.paths().private_index("publish");
    git.read_into_index(&index, &entry.new_tip)?;
    let saved = save_stray_files(git, &index, &entry)?;
    git.reset_worktree(&index, &entry.new_tip)?;
    [Doc::Tree, Doc::RunState].iter().try_for_each(|doc| atomic::discard_prepared(&git.paths().doc(*doc)))?;
    finalize(git, &entry)?;
    Ok(Some(RecoveredPublish { run: entry.run, saved }))
}

/// Removes lock files that killed git commands left. The runner's lock is held and the journal exists, so no other git
/// command works on the run.
fn remove_locks(git: &Git, entry: &PublishEntry) -> Result<(), Error> {
    let refs = git.common_dir().join("refs");
    let branch = git.common_dir().join(format!("{}.lock", entry.run.branch().reference()));
    let mut locks = vec![git.paths().index_lock(), git.paths().in_git_dir("HEAD.lock"), branch];
    collect_locks(&refs.join("runner").join(entry.run.as_str()), &mut locks);
    locks.iter().try_for_each(|lock| atomic::remove_file(lock))
}

/// Stores the work tree as it is, unless the old and the new commit contain all of it, and returns the reference. The
/// index describes the work tree afterwards.
fn save_stray_files(git: &Git, index: &Path, entry: &PublishEntry) -> Result<Option<String>, Error> {
    git.add_paths(index, &git.differing_paths(index)?.into_iter().collect::<Vec<_>>())?;
    let tree = git.write_tree(index)?;
    let from_old = git.changed_paths(&tree, &entry.from, DiffFilter::Any)?;
    let from_new = git.changed_paths(&tree, &entry.new_tip, DiffFilter::Any)?;
    // The new commit contains the user's changes to the runner's files.
    let is_stray = |path: &Vec<u8>| from_old.contains(path) && !is_runner_path(path);
    if !from_new.iter().any(is_stray) {
        return Ok(None);
    }
    let message = format!(
        "{}
",
        stray_files_subject(entry.run.as_str())
    );
    let commit = git.store_commit(&tree, &entry.new_tip, &message)?;
    let reference = format!("refs/runner/{}/found/{}", entry.run, commit.prefix(8));
    git.move_ref(&reference, None, &commit)?;
    Ok(Some(reference))
}
