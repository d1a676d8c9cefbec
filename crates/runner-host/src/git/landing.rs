//! What `runner land` asks git for: trees without the runner's files, a rebase in a scratch work tree, and the new branch.

use std::ffi::OsString;
use std::path::Path;

use runner_core::layout::RUNNER_DIR;
use runner_core::model::object_id::{CommitId, TreeId};

use super::{Git, GitCommand, IndexEntry, PathSet, REFLOG_MESSAGE, TreeEntry, lossy, paths_in};
use crate::error::Error;
use crate::fs::atomic;

/// The result of a rebase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RebaseResult {
    Done(CommitId),
    /// The paths that both sides changed. Nothing is left of the attempt.
    Conflict(PathSet),
}

impl Git {
    /// The tree of a commit with the runner's files as `base` has them, which usually means without.
    pub(crate) fn tree_without_runner(&self, commit: &CommitId, base: &CommitId) -> Result<TreeId, Error> {
        let index = self.paths().private_index("land");
        self.read_into_index(&index, commit)?;
        let own = self.index_paths(&index, RUNNER_DIR)?.into_iter().map(IndexEntry::Remove);
        let kept = self.runner_files(base)?.into_iter().map(IndexEntry::Put);
        self.edit_index(&index, &own.chain(kept).collect::<Vec<_>>())?;
        let tree = self.write_tree(&index)?;
        atomic::remove_file(&index)?;
        Ok(tree)
    }

    /// The tree of a commit with this file of another commit; none if it has the same file already.
    pub(crate) fn tree_with_file(
        &self,
        commit: &CommitId,
        file: &TreeEntry,
    ) -> Result<Option<TreeId>, Error> {
        let index = self.paths().private_index("land");
        self.read_into_index(&index, commit)?;
        self.edit_index(&index, &[IndexEntry::Put(file.clone())])?;
        let tree = self.write_tree(&index)?;
        atomic::remove_file(&index)?;
        Ok((tree != self.tree_of(commit)?).then_some(tree))
    }

    /// Rebases the commits after `base` up to `tip` onto another commit, in a work tree at `scratch` that is removed
    /// afterwards. No branch and no other work tree changes.
    pub(crate) fn rebase_in_scratch(
        &self,
        scratch: &Path,
        base: &CommitId,
        tip: &CommitId,
        onto: &CommitId,
    ) -> Result<RebaseResult, Error> {
        self.forget_worktree(scratch)?;
        self.add_worktree(scratch, tip)?;
        let result = self.rebase_there(scratch, base, onto);
        self.forget_worktree(scratch)?;
        result
    }

    fn rebase_there(&self, scratch: &Path, base: &CommitId, onto: &CommitId) -> Result<RebaseResult, Error> {
        let args = ["rebase", "-q", "--empty=drop", "--no-gpg-sign", "--onto", onto.as_str(), base.as_str()];
        let output = self.call_as_committer(scratch, &args).output()?;
        if output.status.success() {
            let head = lossy(&self.call_in(scratch, &["rev-parse", "HEAD"]).run()?);
            let unexpected = || Error::GitOutput { command: "rev-parse HEAD".to_owned() };
            return CommitId::new(head).map(RebaseResult::Done).map_err(|_| unexpected());
        }
        let unmerged = self.call_in(scratch, &["diff", "--name-only", "--diff-filter=U", "-z"]).run()?;
        let conflicts: PathSet = paths_in(&unmerged);
        if conflicts.is_empty() {
            return Err(Error::git(args.join(" "), &output.stderr));
        }
        Ok(RebaseResult::Conflict(conflicts))
    }

    fn call_in(&self, folder: &Path, args: &[&str]) -> GitCommand<'_> {
        let mut words: Vec<OsString> = vec!["-C".into(), folder.into()];
        words.extend(args.iter().map(OsString::from));
        self.call(&words)
    }

    /// A command that makes commits in the name that the runner's own commits have.
    fn call_as_committer(&self, folder: &Path, args: &[&str]) -> GitCommand<'_> {
        let [_, committer] = self.settings().author_and_committer();
        let (name, email) = committer.split_once(" <").unwrap_or((&committer, ""));
        self.call_in(folder, args)
            .variable("GIT_COMMITTER_NAME", name)
            .variable("GIT_COMMITTER_EMAIL", email.trim_end_matches('>'))
    }

    /// Removes a linked work tree, also one that a crash left half-made.
    fn forget_worktree(&self, scratch: &Path) -> Result<(), Error> {
        if scratch.symlink_metadata().is_ok() && self.remove_worktree(scratch).is_err() {
            atomic::remove_any(scratch)?;
        }
        self.call(&["worktree", "prune"]).run().map(drop)
    }

    /// Whether git accepts this as the name of a branch.
    pub(crate) fn is_branch_name(&self, name: &str) -> Result<bool, Error> {
        Ok(self.call(&["check-ref-format", "--branch", name]).output()?.status.success())
    }

    /// Points a branch to a commit, if it still points where it did; none means that it must not exist.
    pub(crate) fn move_branch(
        &self,
        name: &str,
        from: Option<&CommitId>,
        to: &CommitId,
    ) -> Result<(), Error> {
        let reference = format!("refs/heads/{name}");
        let old = from.map_or_else(|| self.null_id(), ToString::to_string);
        self.sync()?;
        self.call(&["update-ref", "-m", REFLOG_MESSAGE, &reference, to.as_str(), &old]).run().map(drop)
    }

    /// The subjects of the commits after `base` up to `tip`, oldest first, each with its commit.
    pub(crate) fn commits_between(
        &self,
        base: &CommitId,
        tip: &CommitId,
    ) -> Result<Vec<(CommitId, String)>, Error> {
        let range = format!("{base}..{tip}");
        let args = ["log", "--reverse", "--no-show-signature", "--format=%H %s", &range];
        let output = lossy(&self.call(&args).run()?);
        let commit = |line: &str| {
            let (id, subject) = line.split_once(' ').unwrap_or((line, ""));
            Some((CommitId::new(id).ok()?, subject.to_owned()))
        };
        Ok(output.lines().filter_map(commit).collect())
    }
}
