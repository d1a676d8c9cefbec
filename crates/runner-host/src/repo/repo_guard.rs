//! Protects `.git` from a session: its configuration, the references, HEAD, and operations in progress.
//!
//! A snapshot is captured before the session and restored after it, when no process of the session lives any more. The
//! files are restored before the first git command runs, so that git never obeys anything planted in them. Commits that
//! the agent made stay reachable under `refs/runner/<run>/agent/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::object_id::CommitId;
use serde::{Deserialize, Serialize};

use crate::error::{Error, UserError};
use crate::fs::atomic::{self, FileStamp};
use crate::git::Git;

/// Files of the git directory that change what git does. `HEAD` is among them.
const WORKTREE_FILES: [&str; 3] = ["HEAD", "config.worktree", "info/sparse-checkout"];
const COMMON_FILES: [&str; 6] =
    ["config", "info/exclude", "info/attributes", "info/grafts", "objects/info/alternates", "shallow"];

/// Files that git keeps during an operation. After a session they are the agent's, and are set aside.
const OPERATION_FILES: [&str; 13] = [
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
    "index.lock",
    "HEAD.lock",
];

const FILE_BYTES_MAX: u64 = 16 << 20;

/// The state of a repository before a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RepoSnapshot {
    /// In the order of [`guarded_paths`].
    files: Vec<Option<Vec<u8>>>,
    refs: BTreeMap<String, String>,
    /// Device and inode of the git directory.
    git_dir: (u64, u64),
}

/// What a session had changed in `.git`, recorded in meta.json.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RestoreReport {
    /// Restored files of the git directory.
    pub(crate) files: Vec<String>,
    /// References that were restored or removed.
    pub(crate) refs: Vec<String>,
    /// New references, which stay.
    pub(crate) new_refs: Vec<String>,
    /// Files of the git directory that were moved out of git's way.
    pub(crate) set_aside: Vec<String>,
    /// References that keep the agent's own commits.
    pub(crate) kept: Vec<String>,
}

/// The session whose changes are undone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionRef<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) iter: IterationNumber,
    /// The commit that the session began from.
    pub(crate) base: &'a CommitId,
    /// The stamp of the user's index before the session, if it is known.
    pub(crate) user_index: Option<FileStamp>,
}

impl RepoSnapshot {
    /// Called with the lock held and no session running.
    pub(crate) fn capture(git: &Git) -> Result<Self, Error> {
        let files: Result<_, Error> =
            guarded_paths(git).iter().map(|path| atomic::read(path, FILE_BYTES_MAX)).collect();
        Ok(Self { files: files?, refs: git.all_refs()?, git_dir: identity_of(&git.git_dir())? })
    }

    /// Restores everything. No process of the session may be alive.
    pub(crate) fn restore(&self, git: &Git, session: SessionRef<'_>) -> Result<RestoreReport, Error> {
        if identity_of(&git.git_dir()).ok() != Some(self.git_dir) {
            return Err(UserError::GitFolderGone(git.git_dir()).into());
        }
        let mut report = RestoreReport::default();
        let agent_head = fs::read_to_string(git.git_dir().join("HEAD")).unwrap_or_default();
        self.restore_files(git, &mut report)?;
        restore_index(git, session.user_index)?;
        set_aside(git, session.iter, &mut report)?;
        self.restore_refs(git, session, agent_head.trim(), &mut report)?;
        Ok(report)
    }

    fn restore_files(&self, git: &Git, report: &mut RestoreReport) -> Result<(), Error> {
        // Without this folder git does not recognise the repository.
        atomic::create_folders(git.common_dir(), &git.common_dir().join("refs/heads"))?;
        for (path, before) in guarded_paths(git).iter().zip(&self.files) {
            // A link, folder or pipe at this path is not followed or opened, only compared.
            let now = atomic::read(path, FILE_BYTES_MAX).ok().flatten();
            if now == *before && !is_irregular(path) {
                continue;
            }
            atomic::remove_any(path)?;
            if let Some(bytes) = before {
                let root = if path.starts_with(git.git_dir()) { &git.git_dir() } else { git.common_dir() };
                atomic::overwrite_any(root, path, bytes)?;
            }
            report.files.push(name_in(git, path));
        }
        Ok(())
    }

    fn restore_refs(
        &self,
        git: &Git,
        session: SessionRef<'_>,
        agent_head: &str,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        let now = git.all_refs()?;
        let conflicting: Vec<&String> = now.keys().filter(|name| self.must_remove(name)).collect();
        let mut tips = agent_tips(git, session, &now, agent_head);
        tips.extend(conflicting.iter().filter_map(|name| now.get(*name).cloned()));
        for (nth, tip) in tips.iter().enumerate() {
            let name = format!("refs/runner/{}/agent/{}-{}", session.run, session.iter, nth + 1);
            git.set_ref(&name, tip)?;
            report.kept.push(name);
        }
        for name in conflicting {
            git.remove_ref(name)?;
            report.refs.push(name.clone());
        }
        for (name, before) in &self.refs {
            if !now.contains_key(name) {
                // A file or folder that is not a reference may be at this path, and git would not overwrite it.
                atomic::remove_any(&git.common_dir().join(name))?;
            }
            // A reference that was broken before the session cannot be restored, and nothing is lost with it.
            if now.get(name) != Some(before) && git.has_object(before) {
                git.set_ref(name, before)?;
                report.refs.push(name.clone());
            }
        }
        let is_new = |name: &String| !self.refs.contains_key(name) && !report.refs.contains(name);
        report.new_refs = now.into_keys().filter(is_new).collect();
        Ok(())
    }

    /// Whether a new reference cannot stay: git would show another history because of it, or its name conflicts with the
    /// name of an old one.
    fn must_remove(&self, name: &str) -> bool {
        let is_below =
            |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        let conflicts = |old: &String| is_below(name, old) || is_below(old, name);
        let is_new = !self.refs.contains_key(name);
        is_new && (name.starts_with("refs/replace/") || self.refs.keys().any(conflicts))
    }
}

/// The commits that the agent left on the run's branch and at HEAD.
fn agent_tips(
    git: &Git,
    session: SessionRef<'_>,
    refs: &BTreeMap<String, String>,
    agent_head: &str,
) -> BTreeSet<String> {
    let head = match agent_head.strip_prefix("ref: ") {
        Some(name) => refs.get(name).map(String::as_str),
        None => Some(agent_head),
    };
    let branch = refs.get(&session.run.branch().reference()).map(String::as_str);
    let tips = [branch, head].into_iter().flatten().filter(|tip| *tip != session.base.as_str());
    tips.filter(|tip| git.existing_commit(tip).is_some()).map(str::to_owned).collect()
}

/// Restores the user's index from the private copy; without one, git creates it again.
fn restore_index(git: &Git, before: Option<FileStamp>) -> Result<(), Error> {
    if before.is_some() && atomic::stamp(&git.paths().index()) == before {
        return Ok(());
    }
    let index = git.paths().index();
    let copy = git.paths().private_index("work");
    if !copy.exists() {
        return atomic::remove_any(&index);
    }
    let restored = git.paths().private_index("restored");
    atomic::copy_with_mtime(&copy, &restored)?;
    if is_irregular(&index) {
        atomic::remove_any(&index)?;
    }
    fs::rename(&restored, &index).map_err(Error::io("write", index))
}

fn guarded_paths(git: &Git) -> Vec<PathBuf> {
    let own = WORKTREE_FILES.iter().map(|name| git.git_dir().join(name));
    own.chain(COMMON_FILES.iter().map(|name| git.common_dir().join(name))).collect()
}

fn identity_of(path: &Path) -> Result<(u64, u64), Error> {
    let metadata = fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Whether something other than a regular file exists at a path.
fn is_irregular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

fn name_in(git: &Git, path: &Path) -> String {
    let folder = git.git_dir();
    let name = path.strip_prefix(&folder).or_else(|_| path.strip_prefix(git.common_dir()));
    name.unwrap_or(path).display().to_string()
}

/// Moves operations that the agent left in progress, and locks of its killed git commands, out of git's way.
fn set_aside(git: &Git, iter: IterationNumber, report: &mut RestoreReport) -> Result<(), Error> {
    let folder = git.paths().set_aside(&iter.to_string());
    let mut paths: Vec<PathBuf> = OPERATION_FILES.iter().map(|name| git.git_dir().join(name)).collect();
    paths.extend(["config.lock", "packed-refs.lock"].map(|name| git.common_dir().join(name)));
    collect_locks(&git.common_dir().join("refs"), &mut paths);
    for path in paths.into_iter().filter(|path| path.symlink_metadata().is_ok()) {
        let name = name_in(git, &path);
        atomic::create_folders(&git.git_dir(), &folder)?;
        let target = folder.join(name.replace('/', "-"));
        atomic::remove_any(&target)?;
        fs::rename(&path, &target).map_err(Error::io("set aside", &path))?;
        report.set_aside.push(name);
    }
    Ok(())
}

/// Collects the lock files of references below a folder.
pub(crate) fn collect_locks(folder: &Path, locks: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_locks(&path, locks);
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            locks.push(path);
        }
    }
}
