//! Files of the git directory that change what git does: captured before a session, compared and restored after it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use runner_core::step::RestoreReport;
use runner_core::strict::bytes_or_text;
use serde::{Deserialize, Serialize};

use super::hooks::{HOOKS_FOLDER, Hooks};
use super::{AsideFolder, GitAccess, is_irregular, name_in};
use crate::clock::now_ms;
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::copy::{CopySafety, copy_tree};
use crate::fs::lookup;
use crate::git::Git;

/// Files of one work tree. `HEAD` is first: it is restored after every session.
const WORKTREE_FILES: [&str; 4] = ["HEAD", COMMONDIR, "config.worktree", "info/sparse-checkout"];
/// Names the directory that all work trees share, in a linked work tree.
const COMMONDIR: &str = "commondir";
/// The file in the root of a linked work tree that names its git directory.
const GITFILE: &str = ".git";
/// Files that all work trees share.
const COMMON_FILES: [&str; 6] =
    ["config", "info/exclude", "info/attributes", "info/grafts", "objects/info/alternates", "shallow"];
/// Stashes are stored only in the reflog of their reference.
const STASH_LOG: &str = "logs/refs/stash";

/// Folders of the shared directory that users replace by links to other places.
const LINKED_FOLDERS: [&str; 9] =
    ["refs", "refs/heads", "refs/tags", "logs", "logs/refs", "info", "objects", "objects/info", HOOKS_FOLDER];

const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GuardedFiles {
    /// By path relative to the git directory; none if the file did not exist.
    worktree: FileMap,
    /// The same, relative to the directory that all work trees share.
    common: FileMap,
    /// The reflog of the stashes, one entry per stash.
    stash_log: Option<FileContent>,
    /// The hooks. None where the session cannot write to the git directory.
    hooks: Option<Hooks>,
    /// The same for files of the work tree that git obeys: `.git` of a linked one, and files that the configuration includes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    root: FileMap,
    /// The links in the place of folders that all work trees share, with what they point to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    links: BTreeMap<String, String>,
}

/// Files by name; none for one that did not exist.
type FileMap = BTreeMap<String, Option<FileContent>>;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileContent(#[serde(with = "bytes_or_text")] pub(super) Vec<u8>);

impl GuardedFiles {
    /// Where the session cannot write to the git directory, only HEAD is captured.
    pub(super) fn capture(git: &Git, access: GitAccess) -> Result<Self, Error> {
        let own = git.git_dir();
        let root = capture_root(git)?;
        let links = read_links(git.common_dir())?;
        Ok(match access {
            GitAccess::ReadOnly => Self {
                worktree: capture(&own, &["HEAD"])?,
                common: BTreeMap::new(),
                stash_log: None,
                hooks: None,
                root,
                links,
            },
            GitAccess::Writable => Self {
                worktree: capture(&own, &WORKTREE_FILES)?,
                common: capture(git.common_dir(), &COMMON_FILES)?,
                stash_log: atomic::read(&git.common_dir().join(STASH_LOG), FILE_BYTES_MAX)?.map(FileContent),
                hooks: Some(Hooks::read(git)?),
                root,
                links,
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
        self.restore_links(git)?;
        self.ensure_refs_folder(aside, access, report)?;
        self.restore_files(&git.git_dir(), &self.worktree, aside, report)?;
        self.restore_files(git.common_dir(), &self.common, aside, report)?;
        self.restore_files(git.root(), &self.root, aside, report)?;
        if access == GitAccess::Writable
            && let Some(hooks) = &self.hooks
        {
            let folder = git.common_dir().join(HOOKS_FOLDER);
            if lookup::link_target(&folder)?.is_some() && !self.is_known_link(git, HOOKS_FOLDER)? {
                aside.take(&folder, report)?;
            }
            hooks.restore(aside, report)?;
        }
        Ok(())
    }

    /// Whether a name is that of a file of the work tree that git obeys.
    pub(super) fn is_in_root(&self, name: &str) -> bool {
        self.root.contains_key(name)
    }

    /// Whether a folder of the shared directory is the link that it was before the session.
    pub(super) fn is_known_link(&self, git: &Git, name: &str) -> Result<bool, Error> {
        let target = lookup::link_target(&git.common_dir().join(name))?;
        Ok(target.is_some() && target.as_deref() == self.links.get(name).map(Path::new))
    }

    /// Creates links again that are missing.
    fn restore_links(&self, git: &Git) -> Result<(), Error> {
        for (name, target) in self.links.iter().filter(|(name, _)| LINKED_FOLDERS.contains(&name.as_str())) {
            let path = git.common_dir().join(name);
            if path.symlink_metadata().is_err() && path.parent().is_some_and(Path::is_dir) {
                std::os::unix::fs::symlink(target, &path).map_err(Error::io("create", &path))?;
            }
        }
        Ok(())
    }

    /// Makes sure that there is `refs/heads`: without this folder git does not recognise the repository. A link that was there
    /// before, or that the session cannot have made, stays.
    fn ensure_refs_folder(
        &self,
        aside: &AsideFolder<'_>,
        access: GitAccess,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        for name in ["refs", "refs/heads"] {
            let path = aside.git.common_dir().join(name);
            let is_theirs = access == GitAccess::ReadOnly || self.is_known_link(aside.git, name)?;
            if lookup::link_target(&path)?.is_some() && !is_theirs {
                aside.take(&path, report)?;
            }
            if !path.is_dir() {
                atomic::remove_any(&path)?;
                atomic::ensure_folder(&path)?;
            }
        }
        Ok(())
    }

    /// The folder and the path to write a file at: behind a link that was there before the session.
    fn place(&self, git: &Git, folder: &Path, name: &str) -> Result<FilePlace, Error> {
        for link in self.links.keys().rev().filter(|_| folder == git.common_dir()) {
            let rest = name.strip_prefix(link.as_str()).and_then(|rest| rest.strip_prefix('/'));
            if let Some(rest) = rest
                && self.is_known_link(git, link)?
                && let Some(root) = lookup::resolved(&folder.join(link))?
            {
                return Ok(FilePlace { path: root.join(rest), root });
            }
        }
        Ok(FilePlace { path: folder.join(name), root: folder.to_owned() })
    }

    /// Restores, without git, what keeps git from finding the repository and from reading its configuration.
    pub(super) fn repair(&self, root: &Path, git_dir: &Path) -> Result<(), Error> {
        let commondir = self.worktree.get(COMMONDIR).map(|content| (git_dir, COMMONDIR, content));
        let files = self.root.iter().map(|(name, content)| (root, name.as_str(), content));
        for (folder, name, before) in commondir.into_iter().chain(files) {
            let path = folder.join(name);
            let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
            let now = if is_irregular(&path) { None } else { atomic::read(&path, FILE_BYTES_MAX)? };
            let before = before.as_ref().map(|content| content.0.as_slice());
            if !is_plain || (now.as_deref() == before && !is_irregular(&path)) {
                continue;
            }
            let aside = git_dir.join("runner/aside");
            atomic::create_folders(git_dir, &aside)?;
            if path.symlink_metadata().is_ok() {
                let target = aside.join(format!("changed-{}-{}", name.replace('/', "-"), now_ms()));
                copy_tree(&path, &target, CopySafety::Durable).map_err(Error::io("set aside", &path))?;
                atomic::remove_any(&path)?;
            }
            before.map_or(Ok(()), |bytes| atomic::replace_durably(folder, &path, bytes))?;
        }
        Ok(())
    }
}

/// Where a file is written, and the folder below which anything in its way is removed.
struct FilePlace {
    root: PathBuf,
    path: PathBuf,
}

impl GuardedFiles {
    /// Adds every stash to the reflog again that is missing from it. New stashes stay: the user may have made them. Called
    /// when the references are restored, because creating the stashes' reference again adds an entry.
    pub(super) fn restore_stash_log(&self, git: &Git, report: &mut RestoreReport) -> Result<(), Error> {
        let Some(before) = &self.stash_log else { return Ok(()) };
        let FilePlace { root, path } = self.place(git, git.common_dir(), STASH_LOG)?;
        let now = if is_irregular(&path) { None } else { atomic::read(&path, FILE_BYTES_MAX)? };
        let now = now.unwrap_or_default();
        let merged = merge_lines(&before.0, &now);
        if merged != now {
            atomic::replace_durably(&root, &path, &merged)?;
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

fn capture(folder: &Path, names: &[&str]) -> Result<FileMap, Error> {
    let mut files = BTreeMap::new();
    for name in names {
        let content = atomic::read(&folder.join(name), FILE_BYTES_MAX)?;
        files.insert((*name).to_owned(), content.map(FileContent));
    }
    Ok(files)
}

impl GuardedFiles {
    /// Writes back every file that changed. The changed version is set aside, except for HEAD, whose commit is kept. A file is
    /// replaced by a rename: at no moment is there none.
    fn restore_files(
        &self,
        folder: &Path,
        files: &FileMap,
        aside: &AsideFolder<'_>,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        for (name, before) in files {
            let FilePlace { root, path } = self.place(aside.git, folder, name)?;
            // A link, folder or pipe at this path is not followed or opened, only replaced.
            let now = if is_irregular(&path) { None } else { atomic::read(&path, FILE_BYTES_MAX)? };
            let is_same = now.as_deref() == before.as_ref().map(|content| content.0.as_slice());
            if is_same && !is_irregular(&path) {
                continue;
            }
            match before {
                Some(content) => {
                    if name == GITFILE && path.is_dir() {
                        aside.take(&path, report)?;
                    } else if name != "HEAD" && now.is_some() {
                        copy_aside(&path, name, aside)?;
                    }
                    atomic::replace_durably(&root, &path, &content.0)?;
                }
                None => aside.take(&path, report)?,
            }
            report.files.push(name_in(aside.git, &path));
        }
        Ok(())
    }
}

/// The files of the work tree that git obeys. A link is the user's own arrangement.
fn capture_root(git: &Git) -> Result<FileMap, Error> {
    let mut names = git.config_files_in_work_tree();
    names.push(GITFILE.to_owned());
    names.retain(|name| !git.root().join(name).is_dir() && !git.root().join(name).is_symlink());
    capture(git.root(), &names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The links in the place of folders.
fn read_links(common_dir: &Path) -> Result<BTreeMap<String, String>, Error> {
    let mut links = BTreeMap::new();
    for name in LINKED_FOLDERS {
        let path = common_dir.join(name);
        let Some(target) = lookup::link_target(&path)?.filter(|_| path.is_dir()) else { continue };
        links.extend(target.to_str().map(|target| (name.to_owned(), target.to_owned())));
    }
    Ok(links)
}

/// Keeps the changed version of a file that is about to be restored.
fn copy_aside(path: &Path, name: &str, aside: &AsideFolder<'_>) -> Result<(), Error> {
    atomic::create_folders(&aside.git.git_dir(), &aside.folder)?;
    let target = aside.folder.join(format!("changed-{}", name.replace('/', "-")));
    atomic::remove_any(&target)?;
    fs::copy(path, &target).map_err(Error::io("copy", path)).map(drop)
}
