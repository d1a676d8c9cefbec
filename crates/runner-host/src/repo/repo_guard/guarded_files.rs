//! Files of the git directory that change what git does: captured before a session, compared and restored after it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runner_core::step::RestoreReport;
use runner_core::strict::bytes_or_text;
use serde::{Deserialize, Serialize};

use super::{AsideFolder, GitAccess, is_irregular, name_in};
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;

/// Files of one work tree. `HEAD` is first: it is restored after every session.
const WORKTREE_FILES: [&str; 3] = ["HEAD", "config.worktree", "info/sparse-checkout"];
/// Files that all work trees share.
const COMMON_FILES: [&str; 6] =
    ["config", "info/exclude", "info/attributes", "info/grafts", "objects/info/alternates", "shallow"];
/// Stashes are stored only in the reflog of their reference.
const STASH_LOG: &str = "logs/refs/stash";

const FILE_BYTES_MAX: u64 = 16 << 20;
const HOOK_BYTES_MAX: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GuardedFiles {
    /// By path relative to the git directory; none if the file did not exist.
    worktree: BTreeMap<String, Option<FileContent>>,
    /// The same, relative to the directory that all work trees share.
    common: BTreeMap<String, Option<FileContent>>,
    /// The reflog of the stashes, one entry per stash.
    stash_log: Option<FileContent>,
    /// The hooks by name, without git's samples. None where the session cannot write to the git directory.
    hooks: Option<BTreeMap<String, HookFile>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileContent(#[serde(with = "bytes_or_text")] pub(super) Vec<u8>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HookFile {
    mode: u32,
    content: FileContent,
}

impl GuardedFiles {
    /// Where the session cannot write to the git directory, only HEAD is captured.
    pub(super) fn capture(git: &Git, access: GitAccess) -> Result<Self, Error> {
        let own = git.git_dir();
        Ok(match access {
            GitAccess::ReadOnly => Self {
                worktree: capture(&own, &["HEAD"])?,
                common: BTreeMap::new(),
                stash_log: None,
                hooks: None,
            },
            GitAccess::Writable => Self {
                worktree: capture(&own, &WORKTREE_FILES)?,
                common: capture(git.common_dir(), &COMMON_FILES)?,
                stash_log: atomic::read(&git.common_dir().join(STASH_LOG), FILE_BYTES_MAX)?.map(FileContent),
                hooks: Some(read_hooks(git)),
            },
        })
    }

    /// Whether all files are as they were captured.
    pub(super) fn are_unchanged(&self, git: &Git) -> bool {
        let access = if self.hooks.is_some() { GitAccess::Writable } else { GitAccess::ReadOnly };
        Self::capture(git, access).is_ok_and(|now| now == *self)
    }

    pub(super) fn restore(
        &self,
        aside: &AsideFolder<'_>,
        access: GitAccess,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        let git = aside.git;
        // Without this folder git does not recognise the repository.
        atomic::create_folders(git.common_dir(), &git.common_dir().join("refs/heads"))?;
        restore(&git.git_dir(), &self.worktree, aside, report)?;
        restore(git.common_dir(), &self.common, aside, report)?;
        if access == GitAccess::Writable
            && let Some(hooks) = &self.hooks
        {
            restore_hooks(hooks, aside, report)?;
        }
        Ok(())
    }
}

impl GuardedFiles {
    /// Adds every stash to the reflog again that is missing from it. New stashes stay: the user may have made them. Called
    /// when the references are restored, because creating the stashes' reference again adds an entry.
    pub(super) fn restore_stash_log(&self, git: &Git, report: &mut RestoreReport) -> Result<(), Error> {
        let Some(before) = &self.stash_log else { return Ok(()) };
        let path = git.common_dir().join(STASH_LOG);
        let now = if is_irregular(&path) { None } else { atomic::read(&path, FILE_BYTES_MAX)? };
        let now = now.unwrap_or_default();
        let merged = merge_lines(&before.0, &now);
        if merged != now {
            atomic::replace_durably(git.common_dir(), &path, &merged)?;
            report.files.push(STASH_LOG.to_owned());
        }
        Ok(())
    }
}

/// The new lines if they contain all old ones; else the old lines, and the new ones after them that are another stash.
fn merge_lines(before: &[u8], now: &[u8]) -> Vec<u8> {
    let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = now.split_inclusive(|byte| *byte == b'\n').collect();
    if old.iter().all(|line| new.contains(line)) {
        return now.to_vec();
    }
    let stash = |line: &[u8]| line.split(|byte| *byte == b' ').nth(1).map(<[u8]>::to_vec);
    let is_known = |line: &&&[u8]| old.iter().any(|known| stash(known) == stash(line));
    let added = new.iter().filter(|line| !is_known(line));
    old.iter().chain(added).flat_map(|line| line.iter().copied()).collect()
}

fn capture(folder: &Path, names: &[&str]) -> Result<BTreeMap<String, Option<FileContent>>, Error> {
    let mut files = BTreeMap::new();
    for name in names {
        let content = atomic::read(&folder.join(name), FILE_BYTES_MAX)?;
        files.insert((*name).to_owned(), content.map(FileContent));
    }
    Ok(files)
}

/// Writes back every file that changed. The changed version is set aside, except for HEAD, whose commit is kept. A file is
/// replaced by a rename: at no moment is there none.
fn restore(
    folder: &Path,
    files: &BTreeMap<String, Option<FileContent>>,
    aside: &AsideFolder<'_>,
    report: &mut RestoreReport,
) -> Result<(), Error> {
    for (name, before) in files {
        let path = folder.join(name);
        // A link, folder or pipe at this path is not followed or opened, only replaced.
        let now = if is_irregular(&path) { None } else { atomic::read(&path, FILE_BYTES_MAX)? };
        let is_same = now.as_deref() == before.as_ref().map(|content| content.0.as_slice());
        if is_same && !is_irregular(&path) {
            continue;
        }
        match before {
            Some(content) => {
                if name != "HEAD" && now.is_some() {
                    copy_aside(&path, name, aside)?;
                }
                atomic::replace_durably(folder, &path, &content.0)?;
            }
            None => aside.take(&path, report)?,
        }
        report.files.push(name_in(aside.git, &path));
    }
    Ok(())
}

/// Keeps the changed version of a file that is about to be restored.
fn copy_aside(path: &Path, name: &str, aside: &AsideFolder<'_>) -> Result<(), Error> {
    atomic::create_folders(&aside.git.git_dir(), &aside.folder)?;
    let target = aside.folder.join(format!("changed-{}", name.replace('/', "-")));
    atomic::remove_any(&target)?;
    fs::copy(path, &target).map_err(Error::io("copy", path)).map(drop)
}

fn hooks_folder(git: &Git) -> PathBuf {
    git.common_dir().join("hooks")
}

/// The hooks that can be read; a folder or a link among them is left alone.
fn read_hooks(git: &Git) -> BTreeMap<String, HookFile> {
    let mut hooks = BTreeMap::new();
    for entry in fs::read_dir(hooks_folder(git)).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let mode = entry.metadata().map_or(0, |metadata| metadata.permissions().mode() & 0o7777);
        if !name.ends_with(".sample")
            && let Ok(Some(bytes)) = atomic::read(&entry.path(), HOOK_BYTES_MAX)
        {
            hooks.insert(name, HookFile { mode, content: FileContent(bytes) });
        }
    }
    hooks
}

/// Sets new and changed hooks aside, because the user's next git command would run them, and writes the old ones back.
fn restore_hooks(
    before: &BTreeMap<String, HookFile>,
    aside: &AsideFolder<'_>,
    report: &mut RestoreReport,
) -> Result<(), Error> {
    let now = read_hooks(aside.git);
    let folder = hooks_folder(aside.git);
    for (name, hook) in &now {
        if before.get(name) != Some(hook) {
            aside.take(&folder.join(name), report)?;
        }
    }
    for (name, hook) in before.iter().filter(|(name, hook)| now.get(*name) != Some(*hook)) {
        let path = folder.join(name);
        atomic::replace_durably(aside.git.common_dir(), &path, &hook.content.0)?;
        let mode = fs::Permissions::from_mode(hook.mode);
        fs::set_permissions(&path, mode).map_err(Error::io("write", &path))?;
        report.files.push(name_in(aside.git, &path));
    }
    Ok(())
}
