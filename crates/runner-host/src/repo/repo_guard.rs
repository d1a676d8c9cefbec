//! Protects `.git` from a session: HEAD, the run's branch, and what would change git's behaviour.
//!
//! A snapshot is captured before the session and restored after it, when no process of the session lives any more. The
//! files are restored before the first git command runs, so that git never obeys anything planted in them. Every other
//! reference belongs to someone else, who may be working at the same time: it is never moved. Commits that the agent made
//! stay reachable under `refs/runner/<run>/agent/`. Where the agent could write to `.git`, the old value of every reference
//! that moved is kept under `refs/runner/<run>/moved/`, one that vanished is created again, and so are lost lines of reflogs.

mod guarded_files;
mod hooks;
mod reflogs;
mod refs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::step::RestoreReport;
use serde::{Deserialize, Serialize};

use crate::agent::sandbox_kind::SandboxKind;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::copy::{CopySafety, copy_tree};
use crate::git::Git;
use crate::repo::leftovers::abandoned_locks;
use guarded_files::GuardedFiles;
use reflogs::Reflogs;

/// Files that git keeps during an operation. After a session they are the agent's, and are set aside.
const OPERATION_FILES: [&str; 11] = [
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "AUTO_MERGE",
    "rebase-merge",
    "rebase-apply",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "sequencer",
    "BISECT_LOG",
    "BISECT_START",
];

/// Locks of commands that work on this work tree.
const OWN_LOCKS: [&str; 2] = ["index.lock", "HEAD.lock"];
/// Locks of commands that work on all of a repository.
const COMMON_LOCKS: [&str; 5] =
    ["config.lock", "packed-refs.lock", "shallow.lock", "AUTO_MERGE.lock", "objects/maintenance.lock"];

/// Whether a session can write to the git directory. In a sandbox it cannot, so whatever changed there is the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitAccess {
    ReadOnly,
    Writable,
}

impl GitAccess {
    pub(crate) fn of(sandbox: SandboxKind) -> Self {
        match sandbox {
            SandboxKind::None => Self::Writable,
            SandboxKind::Own | SandboxKind::Bubblewrap | SandboxKind::Seatbelt | SandboxKind::Podman => {
                Self::ReadOnly
            }
        }
    }
}

/// The state of a repository before a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RepoSnapshot {
    files: GuardedFiles,
    refs: BTreeMap<String, String>,
    /// Empty where the session cannot write to the git directory.
    #[serde(default, skip_serializing_if = "Reflogs::is_empty")]
    reflogs: Reflogs,
    /// The locks in the shared directory, if the session could have left one.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    locks: BTreeSet<String>,
}

/// The session whose changes are undone; for a program that runs in the work tree outside of one, the next session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionRef<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) iter: IterationNumber,
    /// The commit that the session began from.
    pub(crate) base: &'a CommitId,
    pub(crate) access: GitAccess,
}

impl<'a> SessionRef<'a> {
    /// A guard in the work tree, which can write to the git directory.
    pub(crate) fn of_guard(run: &'a RunId, iter: IterationNumber, base: &'a CommitId) -> Self {
        Self { run, iter, base, access: GitAccess::Writable }
    }
}

impl RepoSnapshot {
    /// Called with the lock held and no session running.
    pub(crate) fn capture(git: &Git, access: GitAccess) -> Result<Self, Error> {
        let reflogs = match access {
            GitAccess::ReadOnly => Reflogs::default(),
            GitAccess::Writable => Reflogs::capture(git)?,
        };
        let locks = common_locks(git, access).iter().map(|path| name_in(git, path)).collect();
        Ok(Self { files: GuardedFiles::capture(git, access)?, refs: git.all_refs()?, reflogs, locks })
    }

    /// Whether everything that the snapshot holds is as it was, and no operation or lock is left. References are read only where
    /// the files that change what git does are unchanged. What cannot be read counts as changed.
    pub(crate) fn is_unchanged(&self, git: &Git) -> bool {
        self.files.are_unchanged(git)
            && self.leftovers(git, GitAccess::Writable).is_empty()
            && git.all_refs().is_ok_and(|refs| refs == self.refs)
            && self.reflogs.are_complete(git)
    }

    /// Restores what the session must not change. No process of the session may be alive.
    pub(crate) fn restore(&self, git: &Git, session: SessionRef<'_>) -> Result<RestoreReport, Error> {
        let mut report = RestoreReport::default();
        let folder = git.paths().set_aside(&session.iter.to_string());
        let aside = AsideFolder { git, folder };
        if session.access == GitAccess::Writable {
            make_folders_writable(git);
        }
        let agent_head = fs::read_to_string(git.git_dir().join("HEAD")).unwrap_or_default();
        self.files.restore(&aside, session.access, &mut report)?;
        let leftovers = self.leftovers(git, session.access);
        leftovers.iter().try_for_each(|path| aside.take(path, &mut report))?;
        git.reload_settings()?;
        self.restore_refs(&aside, session, agent_head.trim(), &mut report)?;
        self.files.restore_stash_log(git, &mut report)?;
        if session.access == GitAccess::Writable {
            self.reflogs.restore(git, &mut report)?;
        }
        Ok(report)
    }
}

/// A folder of the runner's that takes files of the git directory out of git's way.
struct AsideFolder<'a> {
    git: &'a Git,
    folder: PathBuf,
}

impl AsideFolder<'_> {
    /// Moves whatever is at a path of the git directory into the folder, under a name that is free.
    fn take(&self, path: &Path, report: &mut RestoreReport) -> Result<(), Error> {
        atomic::create_folders(&self.git.git_dir(), &self.folder)?;
        let name = name_in(self.git, path);
        let flat = name.replace('/', "-");
        let mut target = self.folder.join(&flat);
        let mut nth = 1;
        while target.symlink_metadata().is_ok() {
            nth += 1;
            target = self.folder.join(format!("{flat}.{nth}"));
        }
        let moved = fs::rename(path, &target).or_else(|error| {
            if error.kind() != io::ErrorKind::CrossesDevices {
                return Err(error);
            }
            copy_tree(path, &target, CopySafety::Durable)
        });
        moved.map_err(Error::io("set aside", path))?;
        atomic::remove_any(path)?;
        report.set_aside.push(name);
        Ok(())
    }
}

/// Identifies a git directory while this process runs. Neither number survives a reboot on every file system, so it is not
/// for the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FolderIdentity {
    device: u64,
    inode: u64,
}

impl FolderIdentity {
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        let metadata = fs::symlink_metadata(path).map_err(Error::io("read", path))?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    /// Moves the git directory back if the session moved it somewhere else in the work tree, with a file or a link in its
    /// place. Refuses if it is gone.
    pub(crate) fn restore(self, git: &Git) -> Result<(), Error> {
        let git_dir = git.git_dir();
        if Self::of(&git_dir).ok() == Some(self) {
            return Ok(());
        }
        let entries = git_dir.parent().and_then(|parent| fs::read_dir(parent).ok());
        let is_ours = |path: &PathBuf| Self::of(path).ok() == Some(self);
        let moved = entries.into_iter().flatten().flatten().map(|entry| entry.path()).find(is_ours);
        let Some(moved) = moved else { return Err(UserError::GitFolderGone(git_dir).into()) };
        atomic::move_in_place(&moved, &git_dir, &moved.join("runner/aside/replaced-git"))
    }
}

/// Gives the owner access to every folder of the git directory, if the session took it away.
pub(crate) fn make_folders_writable(git: &Git) {
    let common = git.common_dir();
    let folders = ["", "refs", "refs/heads", "refs/heads/runner", "objects", "logs", "runner", "info"];
    let is_any_closed = folders.iter().any(|name| is_closed(&common.join(name)));
    if is_any_closed || is_closed(&git.git_dir()) || is_closed(&git.paths().private()) {
        atomic::open_folders(common);
        atomic::open_folders(&git.git_dir());
    }
}

/// Whether the owner of a folder cannot write to it.
pub(crate) fn is_closed(folder: &Path) -> bool {
    let metadata = fs::symlink_metadata(folder);
    metadata.is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o300 != 0o300)
}

/// Whether something other than a regular file exists at a path.
fn is_irregular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

fn name_in(git: &Git, path: &Path) -> String {
    let folder = git.git_dir();
    let name = path.strip_prefix(&folder).or_else(|_| path.strip_prefix(git.common_dir()));
    let name = name.or_else(|_| path.strip_prefix(git.root()));
    name.unwrap_or(path).display().to_string()
}

/// The locks in the shared directory that a session could have left.
fn common_locks(git: &Git, access: GitAccess) -> Vec<PathBuf> {
    if access == GitAccess::ReadOnly {
        return Vec::new();
    }
    let mut locks: Vec<PathBuf> = COMMON_LOCKS.iter().map(|name| git.common_dir().join(name)).collect();
    collect_locks(&git.common_dir().join("refs"), &mut locks);
    collect_reftable_locks(git, &mut locks);
    collect_locks(&git.common_dir().join("logs"), &mut locks);
    locks.retain(|path| path.symlink_metadata().is_ok());
    locks
}

impl RepoSnapshot {
    /// Operations that the agent left in progress, and locks of its killed git commands. A user may run a git command at this
    /// moment: a lock that was there before the session, or that goes away, is not touched.
    fn leftovers(&self, git: &Git, access: GitAccess) -> Vec<PathBuf> {
        let mut locks = common_locks(git, access);
        locks.retain(|path| !self.locks.contains(&name_in(git, path)));
        locks.extend(OWN_LOCKS.map(|name| git.git_dir().join(name)));
        let mut paths = abandoned_locks(locks);
        paths.extend(OPERATION_FILES.iter().map(|name| git.git_dir().join(name)));
        // Git cannot write a reflog if the folder is a file, nor an index if the index is a folder.
        let logs = git.common_dir().join("logs");
        let is_in_way = |found: fs::Metadata| {
            !found.is_dir() && self.files.is_known_link(git, "logs").is_ok_and(|is_known| !is_known)
        };
        if access == GitAccess::Writable && logs.symlink_metadata().is_ok_and(is_in_way) {
            paths.push(logs);
        }
        paths.extend([git.paths().index()].into_iter().filter(|path| is_irregular(path)));
        paths.retain(|path| path.symlink_metadata().is_ok());
        paths
    }

    /// References of someone else's that vanished during the session and are there again.
    pub(crate) fn recreated_refs<'r>(&self, run: &RunId, report: &'r RestoreReport) -> Vec<&'r String> {
        let branch = run.branch().reference();
        report.refs.iter().filter(|name| self.refs.contains_key(*name) && **name != branch).collect()
    }

    /// Files of the work tree that git obeys and that the session had changed.
    pub(crate) fn restored_files<'r>(&self, report: &'r RestoreReport) -> Vec<&'r String> {
        report.files.iter().filter(|name| self.files.is_in_root(name)).collect()
    }

    /// Restores, without git, what keeps git from recognising the repository.
    pub(super) fn repair(&self, root: &Path, git_dir: &Path) -> Result<(), Error> {
        self.files.repair(root, git_dir)
    }
}

/// Collects the lock files of references below a folder. A lock is a lock, whatever kind of file it is.
pub(crate) fn collect_locks(folder: &Path, locks: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "lock") {
            locks.push(path);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_locks(&path, locks);
        }
    }
}

/// Collects the lock files of references in the reftable format: of the shared store and of this work tree's own.
pub(crate) fn collect_reftable_locks(git: &Git, locks: &mut Vec<PathBuf>) {
    let own = git.git_dir();
    collect_locks(&git.common_dir().join("reftable"), locks);
    if own != git.common_dir() {
        collect_locks(&own.join("reftable"), locks);
    }
}
