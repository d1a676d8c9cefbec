//! What an agent cannot change for good: git's configuration, the branches, HEAD, and what git thinks is under way.
//!
//! Taken before a session and put back after it, when no process of the session lives any more. The files go back
//! before the first git command runs, so that nothing planted in them is ever obeyed. Commits that the agent made
//! stay reachable under `refs/runner/<run>/agent/`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, UserError};
use crate::fs::atomic::{self, FileStamp};
use crate::git::Git;

/// Files of the git folder that decide what git does. `HEAD` is among them.
const WORKTREE_FILES: [&str; 3] = ["HEAD", "config.worktree", "info/sparse-checkout"];
const COMMON_FILES: [&str; 6] =
    ["config", "info/exclude", "info/attributes", "info/grafts", "objects/info/alternates", "shallow"];

/// What git leaves while something is under way. After a session it is the agent's, and set aside.
const UNDER_WAY: [&str; 13] = [
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
    /// In the order of [`pinned_paths`].
    files: Vec<Option<Vec<u8>>>,
    refs: BTreeMap<String, String>,
    git_dir: (u64, u64),
}

/// What had to be put back, for the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RestoreReport {
    /// Files of the git folder that were changed.
    pub(crate) files: Vec<String>,
    /// References that were moved or removed.
    pub(crate) refs: Vec<String>,
    /// References that are new; they stay.
    pub(crate) new_refs: Vec<String>,
    /// What was set aside.
    pub(crate) set_aside: Vec<String>,
    /// Where commits of the agent's own are kept.
    pub(crate) kept: Vec<String>,
}

/// The run and the iteration that a session belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionRef<'a> {
    pub(crate) run: &'a str,
    pub(crate) branch: &'a str,
    pub(crate) iter: &'a str,
    /// The commit that the run's branch points to.
    pub(crate) base: &'a str,
    /// The user's index as it was, if that is known.
    pub(crate) index: Option<FileStamp>,
}

impl RepoSnapshot {
    /// Remembers everything. Called with the lock held and no session running.
    pub(crate) fn take(git: &Git) -> Result<Self, Error> {
        let files: Result<_, Error> =
            pinned_paths(git).iter().map(|path| atomic::read(path, FILE_BYTES_MAX)).collect();
        let files = files?;
        Ok(Self { files, refs: git.all_refs()?, git_dir: identity_of(&git.git_dir())? })
    }

    /// Puts everything back. No process of the session may be alive.
    pub(crate) fn put_back(&self, git: &Git, session: SessionRef<'_>) -> Result<RestoreReport, Error> {
        if identity_of(&git.git_dir()).ok() != Some(self.git_dir) {
            return Err(UserError::GitFolderGone(git.git_dir()).into());
        }
        let mut mended = RestoreReport::default();
        let head_left = fs::read_to_string(git.git_dir().join("HEAD")).unwrap_or_default();
        self.restore_files(git, &mut mended)?;
        restore_index(git, session.index)?;
        set_aside(git, session.iter, &mut mended)?;
        self.restore_refs(git, session, head_left.trim(), &mut mended)?;
        Ok(mended)
    }

    fn restore_files(&self, git: &Git, mended: &mut RestoreReport) -> Result<(), Error> {
        // Without this folder git takes the repository for none.
        atomic::create_folders(git.common_dir(), &git.common_dir().join("refs/heads"))?;
        for (path, pinned) in pinned_paths(git).iter().zip(&self.files) {
            // Whatever stands there now (a link, a folder, a pipe) is not looked into, only compared.
            let now = atomic::read(path, FILE_BYTES_MAX).ok().flatten();
            if now == *pinned && !is_odd(path) {
                continue;
            }
            atomic::remove_any(path)?;
            if let Some(bytes) = pinned {
                let root = if path.starts_with(git.git_dir()) { &git.git_dir() } else { git.common_dir() };
                atomic::overwrite_any(root, path, bytes)?;
            }
            mended.files.push(name_in(git, path));
        }
        Ok(())
    }

    fn restore_refs(
        &self,
        git: &Git,
        session: SessionRef<'_>,
        head_left: &str,
        mended: &mut RestoreReport,
    ) -> Result<(), Error> {
        let now = git.all_refs()?;
        let branch = format!("refs/heads/{}", session.branch);
        let head_commit =
            head_left.strip_prefix("ref: ").map_or(Some(head_left), |name| now.get(name).map(String::as_str));
        let in_the_way: Vec<&String> = now.keys().filter(|name| self.is_in_the_way(name)).collect();
        let heads = [now.get(&branch).map(String::as_str), head_commit].into_iter().flatten();
        let heads = heads.filter(|tip| *tip != session.base && git.is_commit(tip));
        let removed = in_the_way.iter().filter_map(|name| now.get(*name).map(String::as_str));
        let tips: BTreeSet<&str> = heads.chain(removed).collect();
        for (nth, tip) in tips.into_iter().enumerate() {
            let name = format!("refs/runner/{}/agent/{}-{}", session.run, session.iter, nth + 1);
            git.set_ref(&name, tip)?;
            mended.kept.push(name);
        }
        for name in in_the_way {
            git.remove_ref(name)?;
            mended.refs.push(name.clone());
        }
        for (name, pinned) in &self.refs {
            if !now.contains_key(name) {
                // What stands there may be no reference at all, and git would not write over it.
                atomic::remove_any(&git.common_dir().join(name))?;
            }
            // One that was broken before the session cannot be made again, and nothing is lost with it.
            if now.get(name) != Some(pinned) && git.has_object(pinned) {
                git.set_ref(name, pinned)?;
                mended.refs.push(name.clone());
            }
        }
        let is_new = |name: &String| !self.refs.contains_key(name) && !mended.refs.contains(name);
        mended.new_refs = now.into_keys().filter(is_new).collect();
        Ok(())
    }

    /// Whether a reference is new and cannot stay: one that git would show other history for, or one whose name
    /// leaves no room for that of an old one.
    fn is_in_the_way(&self, name: &str) -> bool {
        let is_below =
            |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
        let clashes = |old: &String| is_below(name, old) || is_below(old, name);
        let is_new = !self.refs.contains_key(name);
        is_new && (name.starts_with("refs/replace/") || self.refs.keys().any(clashes))
    }
}

/// Gives the user's index back as it was, from the copy that was taken; without one, git makes it anew.
fn restore_index(git: &Git, before: Option<FileStamp>) -> Result<(), Error> {
    if before.is_some() && atomic::stamp(&git.paths().index()) == before {
        return Ok(());
    }
    let (index, copy) = (git.paths().index(), git.paths().private_index("work"));
    if !copy.exists() {
        return atomic::remove_any(&index);
    }
    let restored = git.paths().private_index("restored");
    atomic::copy_with_mtime(&copy, &restored)?;
    if is_odd(&index) {
        atomic::remove_any(&index)?;
    }
    fs::rename(&restored, &index).map_err(Error::io("write", index))
}

fn pinned_paths(git: &Git) -> Vec<PathBuf> {
    let own = WORKTREE_FILES.iter().map(|name| git.git_dir().join(name));
    own.chain(COMMON_FILES.iter().map(|name| git.common_dir().join(name))).collect()
}

fn identity_of(path: &Path) -> Result<(u64, u64), Error> {
    let found = fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
    Ok((found.dev(), found.ino()))
}

/// Whether something other than a plain file or nothing is there.
fn is_odd(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())
}

fn name_in(git: &Git, path: &Path) -> String {
    let folder = git.git_dir();
    let name = path.strip_prefix(&folder).or_else(|_| path.strip_prefix(git.common_dir()));
    name.unwrap_or(path).display().to_string()
}

/// Moves what the agent left under way, and locks that its killed git commands left, out of git's sight.
fn set_aside(git: &Git, iter: &str, mended: &mut RestoreReport) -> Result<(), Error> {
    let aside = git.paths().set_aside(iter);
    let mut found: Vec<PathBuf> = UNDER_WAY.iter().map(|name| git.git_dir().join(name)).collect();
    found.extend(["config.lock", "packed-refs.lock"].map(|name| git.common_dir().join(name)));
    collect_locks(&git.common_dir().join("refs"), &mut found);
    for path in found.into_iter().filter(|path| path.symlink_metadata().is_ok()) {
        let name = name_in(git, &path);
        atomic::create_folders(&git.git_dir(), &aside)?;
        let place = aside.join(name.replace('/', "-"));
        atomic::remove_any(&place)?;
        fs::rename(&path, &place).map_err(Error::io("set aside", &path))?;
        mended.set_aside.push(name);
    }
    Ok(())
}

/// Every lock on a reference below a folder.
pub(crate) fn collect_locks(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_locks(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            found.push(path);
        }
    }
}
