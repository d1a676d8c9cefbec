//! Where the repository is, and what state it is in.

use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

use super::{Git, PINNED, configure, hardened, lossy, path_of};
use crate::error::{Error, UserError};

/// What discovery finds.
pub(super) struct RepoLocation {
    pub(super) root: PathBuf,
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    pub(super) name_digits: usize,
}

/// Asks git which repository `dir` belongs to.
pub(super) fn discover(program: &Path, dir: &Path) -> Result<RepoLocation, Error> {
    // Looked at first, because a child that cannot enter its folder fails like one that does not exist.
    std::fs::read_dir(dir).map_err(Error::io("enter", dir))?;
    let questions = ["--is-bare-repository", "--is-inside-work-tree", "--show-object-format"];
    let places = ["--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir"];
    let mut command = hardened(program, dir);
    configure(&mut command, PINNED.into_iter());
    command.arg("rev-parse").args(questions).args(places);
    let output = command.output().map_err(Error::io("run", program))?;
    let lines: Vec<&[u8]> = output.stdout.split(|byte| *byte == b'\n').collect();
    if !output.status.success() {
        let bare = lines.first() == Some(&b"true".as_slice());
        return Err(if bare {
            UserError::Bare(dir.to_owned()).into()
        } else {
            UserError::NoRepository { dir: dir.to_owned(), stderr: lossy(&output.stderr) }.into()
        });
    }
    let [_, _, format, root, git_dir, common_dir, b""] = lines.as_slice() else {
        return Err(UserError::LineBreak.into());
    };
    Ok(RepoLocation {
        root: path_of(root).to_owned(),
        git_dir: path_of(git_dir).to_owned(),
        common_dir: path_of(common_dir).to_owned(),
        name_digits: if *format == b"sha256" { 64 } else { 40 },
    })
}

/// Something that git has begun and not finished.
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
    /// The command that ends it without a result.
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

const MARKS: [(&str, GitOperation); 6] = [
    ("MERGE_HEAD", GitOperation::Merge),
    ("rebase-merge", GitOperation::Rebase),
    ("rebase-apply", GitOperation::Rebase),
    ("CHERRY_PICK_HEAD", GitOperation::CherryPick),
    ("REVERT_HEAD", GitOperation::Revert),
    ("BISECT_LOG", GitOperation::Bisect),
];

impl Git {
    /// What is under way here, if anything is.
    pub fn operation(&self) -> Option<GitOperation> {
        let is_there = |mark: &str| self.paths().in_git_dir(mark).symlink_metadata().is_ok();
        MARKS.into_iter().find(|(mark, _)| is_there(mark)).map(|(_, operation)| operation)
    }

    /// The version of git, as `(major, minor)` and as it writes it.
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
