//! Finding the repository, its version of git, and an operation in progress.

use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

use super::child_io;
use super::command::{PINNED, configure, hardened};
use super::{Git, lossy, path_of};
use crate::error::{Error, UserError};
use crate::fs::atomic;

pub(super) struct RepoLocation {
    pub(super) root: PathBuf,
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    pub(super) id_digits: usize,
}

/// The work tree that has its git folder around `dir`.
fn work_tree_around(dir: &Path) -> Option<PathBuf> {
    let dir = dir.canonicalize().ok()?;
    let git_folder = dir.ancestors().find(|path| path.file_name().is_some_and(|name| name == ".git"))?;
    git_folder.parent().map(Path::to_owned)
}

/// Finds the repository that contains `dir`.
pub(super) fn discover(program: &Path, dir: &Path) -> Result<RepoLocation, Error> {
    // Checked first: a process that cannot enter its folder fails with the same error as a missing program.
    std::fs::read_dir(dir).map_err(Error::io("enter", dir))?;
    let properties = ["--is-bare-repository", "--is-inside-work-tree", "--show-object-format"];
    let paths = ["--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir"];
    let mut command = hardened(program, dir);
    configure(&mut command, PINNED.into_iter());
    command.arg("rev-parse").args(properties).args(paths);
    let output = child_io::run(&mut command, None, usize::MAX).map_err(Error::io("run", program))?;
    let lines: Vec<&[u8]> = output.stdout.split(|byte| *byte == b'\n').collect();
    if !output.status.success() {
        let is_bare = lines.first() == Some(&b"true".as_slice());
        let is_outside_work_tree = lines.get(1) == Some(&b"false".as_slice());
        return Err(if is_bare {
            UserError::Bare(dir.to_owned()).into()
        } else if is_outside_work_tree {
            UserError::InsideGitFolder { dir: dir.to_owned(), root: work_tree_around(dir) }.into()
        } else {
            UserError::NoRepository { dir: dir.to_owned(), stderr: lossy(&output.stderr) }.into()
        });
    }
    let [_, _, format, root, git_dir, common_dir, b""] = lines.as_slice() else {
        return Err(UserError::LineBreak.into());
    };
    refuse_detached(path_of(root), path_of(git_dir))?;
    Ok(RepoLocation {
        root: path_of(root).to_owned(),
        git_dir: path_of(git_dir).to_owned(),
        common_dir: path_of(common_dir).to_owned(),
        id_digits: if *format == b"sha256" { 64 } else { 40 },
    })
}

/// Refuses a work tree from which git would find another repository, or none: every later command runs there.
fn refuse_detached(root: &Path, git_dir: &Path) -> Result<(), Error> {
    let dot_git = root.join(".git");
    let dot_git = dot_git.canonicalize().unwrap_or(dot_git);
    let target = match atomic::read(&dot_git, GITFILE_BYTES_MAX) {
        Ok(Some(gitfile)) => {
            let line = gitfile.strip_prefix(b"gitdir:").unwrap_or_default().trim_ascii();
            root.join(path_of(line))
        }
        // A folder.
        Ok(None) | Err(_) => dot_git,
    };
    match (target.canonicalize(), git_dir.canonicalize()) {
        (Ok(target), Ok(git_dir)) if target == git_dir => Ok(()),
        (_, _) => {
            Err(UserError::WorktreeDetached { root: root.to_owned(), git_dir: git_dir.to_owned() }.into())
        }
    }
}

/// The limit for the file `.git` of a linked work tree.
const GITFILE_BYTES_MAX: u64 = 64 << 10;

/// A git operation that was started and not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum GitOperation {
    #[error("merge")]
    Merge,
    #[error("rebase")]
    Rebase,
    #[error("cherry-pick")]
    CherryPick,
    #[error("revert")]
    Revert,
    #[error("bisect")]
    Bisect,
}

impl GitOperation {
    /// The command that aborts it.
    pub fn abort(self) -> &'static str {
        match self {
            Self::Merge => "git merge --abort",
            Self::Rebase => "git rebase --abort",
            Self::CherryPick => "git cherry-pick --abort",
            Self::Revert => "git revert --abort",
            Self::Bisect => "git bisect reset",
        }
    }
}

/// Files in the git directory that exist while an operation is in progress.
const OPERATION_FILES: [(&str, GitOperation); 6] = [
    ("MERGE_HEAD", GitOperation::Merge),
    ("rebase-merge", GitOperation::Rebase),
    ("rebase-apply", GitOperation::Rebase),
    ("CHERRY_PICK_HEAD", GitOperation::CherryPick),
    ("REVERT_HEAD", GitOperation::Revert),
    ("BISECT_LOG", GitOperation::Bisect),
];

impl Git {
    /// The operation in progress, if any.
    pub fn operation(&self) -> Option<GitOperation> {
        let exists = |name: &str| self.paths().in_git_dir(name).symlink_metadata().is_ok();
        OPERATION_FILES.into_iter().find(|(name, _)| exists(name)).map(|(_, operation)| operation)
    }

    /// The version of git: major and minor number, and the full text.
    pub fn version(&self) -> Result<((u32, u32), String), Error> {
        let text = lossy(&self.call(&["version"]).run()?);
        let number = text.strip_prefix("git version ").unwrap_or(&text).to_owned();
        let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
        match (parts.next().flatten(), parts.next().flatten()) {
            (Some(major), Some(minor)) => Ok(((major, minor), number)),
            _ => Err(Error::GitOutput { command: "version".to_owned() }),
        }
    }
}
