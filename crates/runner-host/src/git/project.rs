//! What commands around a run ask git for: the tracked files, where a run started, and linked work trees.

use std::ffi::OsString;
use std::path::Path;

use runner_core::commit_message::grep_pattern;
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;

use super::{Git, PathSet, lossy, paths_in};
use crate::error::Error;

impl Git {
    /// Every path in the user's index.
    pub(crate) fn tracked_paths(&self) -> Result<PathSet, Error> {
        Ok(paths_in(&self.call(&["ls-files", "-z", "--full-name", ":/"]).run()?))
    }

    /// The oldest commit with which a run was started, along first parents.
    pub(crate) fn first_start(&self, run: &RunId, tip: &CommitId) -> Result<Option<CommitId>, Error> {
        let subject = format!("--grep={}", grep_pattern::start_of(run.as_str()));
        let args = ["rev-list", "--first-parent", "--extended-regexp", &subject, tip.as_str()];
        let output = lossy(&self.call(&args).run()?);
        Ok(output.lines().last().and_then(|id| CommitId::new(id).ok()))
    }

    /// Creates a linked work tree at a commit, on no branch.
    pub(crate) fn add_worktree(&self, path: &Path, commit: &CommitId) -> Result<(), Error> {
        let mut args: Vec<OsString> = ["worktree", "add", "-q", "--detach"].map(OsString::from).into();
        args.extend([path.into(), commit.as_str().into()]);
        self.call(&args).run().map(drop)
    }

    /// Removes a linked work tree and everything in it.
    pub(crate) fn remove_worktree(&self, path: &Path) -> Result<(), Error> {
        let mut args: Vec<OsString> = ["worktree", "remove", "--force"].map(OsString::from).into();
        args.push(path.into());
        self.call(&args).run().map(drop)
    }
}
