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
use runner_core::model::object_id::{CommitId, TreeId};

use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{CheckoutMode, DiffFilter, EntryMode, Git, IndexEntry, TreeEntry, path_of};
use crate::paths::is_runner_path;
use crate::repo::journal::{self, JournalEntry, PublishEntry};
use crate::repo::repo_guard::{collect_locks, collect_reftable_locks};
use crate::repo::worktree::{self, WorktreeState};

/// Whether only the runner writes this document. What else is in its place is an agent's, and recorded elsewhere.
fn is_runner_doc(path: &[u8]) -> bool {
    matches!(Doc::at(path), Some(Doc::Tree | Doc::RunState))
}

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

    begin(git, entry)?;
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

/// Writes the journal, once everything that it names is on the disk.
pub(crate) fn begin(git: &Git, entry: &PublishEntry) -> Result<(), Error> {
    git.sync()?;
    journal::begin(&git.paths().journal(), &JournalEntry::Publish(entry.clone()))?;
    failpoint::reach("publish.journal");
    Ok(())
}

fn move_branch(git: &Git, entry: &PublishEntry) -> Result<(), Error> {
    if entry.old_tip.as_ref() == Some(&entry.new_tip) {
        return Ok(());
    }
    let branch = entry.run.branch();
    git.move_ref(&branch.reference(), entry.old_tip.as_ref(), &entry.new_tip).map_err(|error| {
        match git.branch_tip(&branch) {
            Ok(tip) if tip != entry.old_tip => UserError::BranchMoved(branch.to_string()).into(),
            Ok(_) | Err(_) => error,
        }
    })
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
    begin(git, entry)?;
    move_branch(git, entry)?;
    failpoint::reach("publish.branch");
    for doc in commit.docs {
        atomic::commit_prepared(&git.paths().doc(*doc))?;
    }
    git.attach_head(&entry.run.branch())?;
    if commit.worktree == WorktreeState::Dirty {
        StrayFiles { git, run: &entry.run, from: &entry.from, to: &entry.new_tip }.save(&index)?;
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
    git.sync()?;
    journal::end(&git.paths().journal())
}

/// Replaces the user's index by the prepared one as git does it: through the index lock.
fn install_index(git: &Git) -> Result<(), Error> {
    let prepared = git.paths().private_index("publish");
    let lock = git.paths().index_lock();
    git.settle_index(&prepared)?;
    git.restore_marks(&prepared)?;
    atomic::sync_file(&prepared)?;
    fs::hard_link(&prepared, &lock).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Error::from(UserError::IndexLocked(lock.clone()));
        }
        Error::io("create", &lock)(error)
    })?;
    failpoint::reach("publish.index-lock");
    if git.paths().index().is_dir() {
        atomic::remove_any(&git.paths().index())?;
    }
    fs::rename(&lock, git.paths().index()).map_err(Error::io("write", git.paths().index()))?;
    atomic::remove_any(&prepared)
}

/// Replaces the user's index by a copy of a private one, whatever is in its place.
pub(crate) fn copy_to_user_index(git: &Git, index: &Path) -> Result<(), Error> {
    let user_index = git.paths().index();
    let copy = git.paths().private_index("restored");
    atomic::copy_with_mtime(index, &copy)?;
    git.settle_index(&copy)?;
    git.restore_marks(&copy)?;
    atomic::sync_file(&copy)?;
    if user_index.is_dir() {
        atomic::remove_any(&user_index)?;
    }
    fs::rename(&copy, &user_index).map_err(Error::io("write", user_index))
}

/// Keeps versions of files that only the user's index has, before that index is replaced: they were staged, and the file was
/// changed since. Returns the reference. An index that git cannot read has none.
pub(crate) fn save_staged(
    git: &Git,
    run: &RunId,
    from: &CommitId,
    to: &CommitId,
) -> Result<Option<String>, Error> {
    let index = git.paths().private_index("staged");
    if !git.paths().index().is_file() {
        return Ok(None);
    }
    atomic::copy_with_mtime(&git.paths().index(), &index)?;
    let staged = git.staged_only(&index, &[from, to]).unwrap_or_default();
    let saved = if staged.is_empty() {
        None
    } else {
        let tree = git.write_merged_tree(&index)?;
        let message = format!("{}\n", stray_files_subject(run.as_str()));
        Some(keep_found(git, run, &git.store_commit(&tree, to, &message)?)?)
    };
    atomic::remove_any(&index)?;
    Ok(saved)
}

/// Points a reference of the run's to a commit with files that were found.
fn keep_found(git: &Git, run: &RunId, commit: &CommitId) -> Result<String, Error> {
    git.sync()?;
    let reference = format!("refs/runner/{run}/found/{}", commit.prefix(8));
    git.set_ref(&reference, commit.as_str())?;
    Ok(reference)
}

/// Finishes a publication that a crash interrupted. The caller holds the runner's lock.
pub(crate) fn recover(git: &Git, entry: PublishEntry) -> Result<Option<RecoveredPublish>, Error> {
    remove_locks(git, &entry.run)?;
    let tip = git.branch_tip(&entry.run.branch())?;
    let entry = match tip {
        tip if tip == entry.old_tip => {
            move_branch(git, &entry)?;
            entry
        }
        Some(tip) if tip == entry.new_tip => entry,
        Some(tip) => give_way(git, entry, tip)?,
        None => {
            journal::end(&git.paths().journal())?;
            return Ok(None);
        }
    };
    let index = git.paths().private_index("publish");
    let staged = save_staged(git, &entry.run, &entry.from, &entry.new_tip)?;
    let saved = restore_worktree(git, &index, &entry.run, &entry.from, &entry.new_tip)?.or(staged);
    [Doc::Tree, Doc::RunState].iter().try_for_each(|doc| atomic::discard_prepared(&git.paths().doc(*doc)))?;
    finalize(git, &entry)?;
    Ok(Some(RecoveredPublish { run: entry.run, saved }))
}

/// Someone else moved the branch, so the commit cannot be published. It is kept under a reference of its own, and the run
/// goes on from the commit that is there now.
fn give_way(git: &Git, entry: PublishEntry, tip: CommitId) -> Result<PublishEntry, Error> {
    if git.existing_commit(entry.new_tip.as_str())?.is_some() {
        git.sync()?;
        let kept = format!("refs/runner/{}/unpublished/{}", entry.run, entry.new_tip.prefix(8));
        git.set_ref(&kept, entry.new_tip.as_str())?;
    }
    Ok(PublishEntry { old_tip: Some(tip.clone()), new_tip: tip, ..entry })
}

/// Brings the work tree to a commit, whatever it holds, and leaves an index that describes it. What neither that commit nor
/// `from` contains is kept under the returned reference. Ignored files stay where they are.
pub(crate) fn restore_worktree(
    git: &Git,
    index: &Path,
    run: &RunId,
    from: &CommitId,
    to: &CommitId,
) -> Result<Option<String>, Error> {
    git.read_for_worktree(index, to)?;
    // Which files are ignored follows from files in the work tree, and an interrupted checkout may have removed those.
    restore_ignore_files(git, index)?;
    git.refresh_index(index)?;
    let stray = StrayFiles { git, run, from, to };
    let saved = stray.save(index)?;
    git.reset_worktree(index, to)?;
    Ok(saved)
}

/// Writes the ignore and attribute files of an index into the work tree, where they are missing. One that exists with
/// another content was not left by an interrupted checkout.
fn restore_ignore_files(git: &Git, index: &Path) -> Result<(), Error> {
    let is_rule_file = |path: &Vec<u8>| {
        let name = path.rsplit(|byte| *byte == b'/').next();
        matches!(name, Some(b".gitignore" | b".gitattributes"))
            && git.root().join(path_of(path)).symlink_metadata().is_err()
    };
    let missing: Vec<Vec<u8>> = git.checked_out_paths(index)?.into_iter().filter(is_rule_file).collect();
    git.check_out(index, &missing)
}

/// Removes lock files that killed git commands left. The runner's lock is held and the journal exists, so no other git
/// command works on the run.
pub(crate) fn remove_locks(git: &Git, run: &RunId) -> Result<(), Error> {
    let refs = git.common_dir().join("refs");
    let branch = git.common_dir().join(format!("{}.lock", run.branch().reference()));
    let mut locks = vec![git.paths().index_lock(), git.paths().in_git_dir("HEAD.lock"), branch];
    collect_locks(&refs.join("runner").join(run.as_str()), &mut locks);
    collect_reftable_locks(git, &mut locks);
    for lock in locks {
        atomic::remove_any(&lock)?;
    }
    Ok(())
}

/// Removes locks of the current run's own references, which nothing but a runner writes. The runner's lock is held.
pub(crate) fn remove_own_locks(git: &Git) -> Result<(), Error> {
    let Some(run) = git.attached_run() else { return Ok(()) };
    let mut locks = Vec::new();
    collect_locks(&git.common_dir().join("refs/runner").join(run.as_str()), &mut locks);
    locks.iter().try_for_each(|lock| atomic::remove_any(lock))
}

/// The work tree of a run between two commits.
struct StrayFiles<'a> {
    git: &'a Git,
    run: &'a RunId,
    from: &'a CommitId,
    to: &'a CommitId,
}

impl StrayFiles<'_> {
    /// Stores the work tree as it is, unless the old and the new commit contain all of it, and returns the reference. The
    /// index describes the work tree afterwards.
    fn save(&self, index: &Path) -> Result<Option<String>, Error> {
        let git = self.git;
        let aside = format!("found-{}", self.to.prefix(8));
        if worktree::stage_all(git, index, &aside)?.changed.is_empty() {
            return Ok(None);
        }
        let tree = git.write_tree(index)?;
        let from_old = git.changed_paths(&tree, self.from, DiffFilter::Any)?;
        let from_new = git.changed_paths(&tree, self.to, DiffFilter::Any)?;
        let is_stray = |path: &Vec<u8>| from_old.contains(path) && !is_runner_doc(path);
        if !from_new.iter().any(is_stray) {
            return Ok(None);
        }
        let message = format!("{}\n", stray_files_subject(self.run.as_str()));
        let commit = git.store_commit(&tree, self.to, &message)?;
        keep_found(git, self.run, &commit).map(Some)
    }
}
