//! Taking a repository to a commit so that a crash at any point is finished by the next command.
//!
//! The order: journal, branch, files outside `.runner/`, files inside it, HEAD, index, journal gone. The branch is
//! the point of no return; everything behind it is a redo from the commit. Nothing is lost on the way: a work
//! tree that is neither what was left nor what is wanted is stored under `refs/runner/<run>/found/` first.

use std::fs;
use std::path::Path;

use runner_core::layout::{Doc, RUNNER_DIR};

use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{CheckoutMode, DiffFilter, EntryMode, Git, IndexEntry, TreeEntry, path_of};
use crate::repo::journal::{self, JournalEntry, PublishEntry};
use crate::repo::paths::is_runner_path;
use crate::repo::repo_guard::collect_locks;
use crate::repo::worktree::WorktreeState;

/// What the next command finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredPublish {
    /// The run whose start was interrupted.
    pub run: String,
    /// Where the work tree was stored, if it was neither the old one nor the new one.
    pub found: Option<String>,
}

/// Carries a move out, from a work tree whose files outside `.runner/` are those of `moving.from`.
pub(crate) fn carry_out(git: &Git, moving: &PublishEntry) -> Result<(), Error> {
    let index = git.paths().private_index("move");
    let files = git.files_of(&moving.new_tip, RUNNER_DIR)?;
    refuse_links(git, &files)?;
    let here = prepare_index(git, &index, &files)?;
    let rehearsal = git.switch_files(&index, &here, &moving.new_tip, CheckoutMode::Rehearse);
    if let Err(Error::Git { stderr, .. }) = rehearsal {
        return Err(UserError::SwitchBlocked { branch: moving.branch.clone(), stderr }.into());
    }
    rehearsal?;
    refuse_overwriting(git, &here, moving)?;
    refuse_locked_index(git)?;

    journal::begin(&git.paths().journal(), &JournalEntry::Move(moving.clone()))?;
    failpoint::reach("move.journal");
    move_branch(git, moving)?;
    failpoint::reach("move.branch");
    git.switch_files(&index, &here, &moving.new_tip, CheckoutMode::Carefully)?;
    failpoint::reach("move.files");
    write_runner_files(git, moving, &files)?;
    finish(git, moving)
}

/// Copies the user's index and gives it the new commit's entries for `.runner/`, so that a switch of trees leaves
/// that folder alone. Returns the tree that the copy then stands for.
fn prepare_index(git: &Git, index: &Path, files: &[TreeEntry]) -> Result<String, Error> {
    atomic::copy_with_mtime(&git.paths().index(), index)?;
    let mut edits: Vec<IndexEntry> =
        git.index_paths(index, RUNNER_DIR)?.into_iter().map(IndexEntry::Remove).collect();
    edits.extend(files.iter().cloned().map(IndexEntry::Put));
    git.edit_index(index, &edits)?;
    git.write_tree(index)
}

/// Nothing in the runner's folder points elsewhere, on no branch.
fn refuse_links(git: &Git, files: &[TreeEntry]) -> Result<(), Error> {
    let kinds = [(EntryMode::Link, "a symbolic link"), (EntryMode::Repository, "another repository")];
    for (mode, what) in kinds {
        if let Some(file) = files.iter().find(|file| file.mode == mode) {
            let path = git.root().join(path_of(&file.path));
            return Err(UserError::NotAFile { path, what }.into());
        }
    }
    Ok(())
}

/// To git an ignored file is fair game. It may be someone's only copy, so here it is not.
fn refuse_overwriting(git: &Git, here: &str, moving: &PublishEntry) -> Result<(), Error> {
    let removed = git.changed_paths(here, &moving.new_tip, DiffFilter::Removed)?;
    let is_foreign = |path: &Path| {
        let place = git.root().join(path);
        let in_the_way = place.symlink_metadata().is_ok_and(|found| !found.is_dir());
        in_the_way && !removed.iter().any(|gone| path_of(gone) == path)
    };
    let added = git.changed_paths(here, &moving.new_tip, DiffFilter::Added)?;
    let foreign =
        added.iter().filter(|path| !is_runner_path(path)).flat_map(|path| path_of(path).ancestors());
    let mut foreign: Vec<String> =
        foreign.filter(|path| is_foreign(path)).map(|p| p.display().to_string()).collect();
    foreign.dedup();
    if foreign.is_empty() {
        return Ok(());
    }
    Err(UserError::SwitchBlocked { branch: moving.branch.clone(), stderr: foreign.join("\n") }.into())
}

fn refuse_locked_index(git: &Git) -> Result<(), Error> {
    let lock = git.paths().index_lock();
    if lock.symlink_metadata().is_ok() {
        return Err(UserError::IndexLocked(lock).into());
    }
    Ok(())
}

fn move_branch(git: &Git, moving: &PublishEntry) -> Result<(), Error> {
    if moving.old_tip.as_ref() == Some(&moving.new_tip) {
        return Ok(());
    }
    let reference = format!("refs/heads/{}", moving.branch);
    git.move_ref(&reference, &moving.new_tip, moving.old_tip.as_deref())
}

/// Makes the files in `.runner/` those of the new commit; what only the old one had goes.
fn write_runner_files(git: &Git, moving: &PublishEntry, files: &[TreeEntry]) -> Result<(), Error> {
    for old in git.files_of(&moving.from, RUNNER_DIR)? {
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

/// Every folder on the way to a file of the runner's, each a real one.
fn ensure_folders(git: &Git, path: &[u8]) -> Result<(), Error> {
    let separators = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for at in separators {
        atomic::ensure_folder(&git.root().join(path_of(path.get(..at).unwrap_or_default())))?;
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

/// Carries a move out to a commit that holds what the work tree has already, but for these documents, which lie
/// ready, and what came into the work tree since. `index` describes the commit.
pub(crate) fn publish(
    git: &Git,
    moving: &PublishEntry,
    (index, beside): (&Path, WorktreeState),
    docs: &[Doc],
) -> Result<(), Error> {
    let prepared = git.paths().private_index("move");
    fs::rename(index, &prepared).map_err(Error::io("move", index))?;
    journal::begin(&git.paths().journal(), &JournalEntry::Move(moving.clone()))?;
    failpoint::reach("move.journal");
    move_branch(git, moving)?;
    failpoint::reach("move.branch");
    for doc in docs {
        atomic::commit_prepared(&git.paths().doc(*doc))?;
    }
    git.attach_head(&moving.branch)?;
    if beside == WorktreeState::Something {
        keep_found(git, &prepared, moving)?;
        git.force_files(&prepared, &moving.new_tip)?;
    }
    finish(git, moving)
}

/// The last steps: HEAD, the user's index, everything on the disk, the journal.
fn finish(git: &Git, moving: &PublishEntry) -> Result<(), Error> {
    failpoint::reach("move.documents");
    git.attach_head(&moving.branch)?;
    failpoint::reach("move.head");
    install_index(git)?;
    failpoint::reach("move.index");
    atomic::sync_file_system(git.root())?;
    journal::end(&git.paths().journal())
}

/// Puts the prepared index in the place of the user's, the way git itself would: by way of the lock.
fn install_index(git: &Git) -> Result<(), Error> {
    let (prepared, lock) = (git.paths().private_index("move"), git.paths().index_lock());
    fs::hard_link(&prepared, &lock).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Error::from(UserError::IndexLocked(lock.clone()));
        }
        Error::io("create", &lock)(error)
    })?;
    failpoint::reach("move.index-lock");
    fs::rename(&lock, git.paths().index()).map_err(Error::io("write", git.paths().index()))?;
    atomic::remove_any(&prepared)
}

/// Finishes a move that a crash interrupted. The lock is held, so nobody else is at it.
pub(crate) fn recover(git: &Git, moving: PublishEntry) -> Result<Option<RecoveredPublish>, Error> {
    remove_locks(git, &moving)?;
    let tip = git.branch_tip(&moving.branch)?;
    if tip == moving.old_tip {
        move_branch(git, &moving)?;
    } else if tip.as_ref() != Some(&moving.new_tip) {
        // The branch went elsewhere by someone else's hand: there is nothing left to finish.
        journal::end(&git.paths().journal())?;
        return Ok(None);
    }
    let index = git.paths().private_index("move");
    git.read_into_index(&index, &moving.new_tip)?;
    let found = keep_found(git, &index, &moving)?;
    git.force_files(&index, &moving.new_tip)?;
    [Doc::Tree, Doc::RunState].iter().try_for_each(|doc| atomic::discard_prepared(&git.paths().doc(*doc)))?;
    finish(git, &moving)?;
    Ok(Some(RecoveredPublish { run: moving.run, found }))
}

/// Removes what git commands of the interrupted move left locked: with the runner's lock held and the journal there,
/// no other git is at work on the run.
fn remove_locks(git: &Git, moving: &PublishEntry) -> Result<(), Error> {
    let refs = git.common_dir().join("refs");
    let branch = refs.join("heads").join(format!("{}.lock", moving.branch));
    let mut locks = vec![git.paths().index_lock(), git.paths().in_git_dir("HEAD.lock"), branch];
    collect_locks(&refs.join("runner").join(&moving.run), &mut locks);
    locks.iter().try_for_each(|lock| atomic::remove_file(lock))
}

/// Stores the work tree as it was found, unless all of it is in the commits already. Leaves `index` describing it.
fn keep_found(git: &Git, index: &Path, moving: &PublishEntry) -> Result<Option<String>, Error> {
    git.add_paths(index, &git.differing_paths(index)?.into_iter().collect::<Vec<_>>())?;
    let tree = git.write_tree(index)?;
    let from_old = git.changed_paths(&tree, &moving.from, DiffFilter::Any)?;
    let from_new = git.changed_paths(&tree, &moving.new_tip, DiffFilter::Any)?;
    // The runner's own files are in the new commit with whatever the user had changed in them.
    let is_foreign = |path: &&Vec<u8>| from_old.contains(path) && !is_runner_path(path);
    if !from_new.iter().any(|path| is_foreign(&path)) {
        return Ok(None);
    }
    let message = format!("chore(loop): files found beside the commits of run {}\n", moving.run);
    let commit = git.store_commit(&tree, &moving.new_tip, &message)?;
    let short = commit.get(..8).unwrap_or(&commit);
    let reference = format!("refs/runner/{}/found/{short}", moving.run);
    git.move_ref(&reference, &commit, None)?;
    Ok(Some(reference))
}
