//! Marks in an index that make git ignore changes to a file: assume-unchanged and skip-worktree.

use std::path::Path;

use super::{Git, nul_separated, nul_terminated, path_of};
use crate::error::Error;
use crate::fs::atomic;

/// A mark that hides changes to a tracked file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexMark {
    AssumeUnchanged,
    /// Set by a sparse checkout for files that are not checked out, or by the user.
    SkipWorktree,
}

impl IndexMark {
    /// The option of `git update-index` without `--` or `--no-`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::AssumeUnchanged => "assume-unchanged",
            Self::SkipWorktree => "skip-worktree",
        }
    }
}

/// A change to a tracked file that a mark hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HiddenChange {
    pub(crate) path: Vec<u8>,
    pub(crate) mark: IndexMark,
}

impl Git {
    /// Changes of the work tree that `git status` does not show because of marks in the user's index.
    pub(crate) fn hidden_changes(&self) -> Result<Vec<HiddenChange>, Error> {
        let user_index = self.paths().index();
        let marked = self.marked_files(&user_index)?;
        if marked.is_empty() {
            return Ok(Vec::new());
        }
        let index = self.paths().private_index("marks");
        atomic::copy_with_mtime(&user_index, &index)?;
        self.clear(&index, &marked)?;
        let differing = self.differing_paths(&index)?;
        atomic::remove_any(&index)?;
        Ok(marked.into_iter().filter(|marked| differing.contains(&marked.path)).collect())
    }

    /// Removes the marks of an index that hide changes, so that git compares each file again.
    pub(crate) fn clear_marks(&self, index: &Path) -> Result<(), Error> {
        let marked = self.marked_files(index)?;
        self.clear(index, &marked)
    }

    fn clear(&self, index: &Path, marked: &[HiddenChange]) -> Result<(), Error> {
        for mark in [IndexMark::AssumeUnchanged, IndexMark::SkipWorktree] {
            let paths: Vec<Vec<u8>> =
                marked.iter().filter(|file| file.mark == mark).map(|file| file.path.clone()).collect();
            if !paths.is_empty() {
                let option = format!("--no-{}", mark.as_str());
                let call = self.call(&["update-index", "-z", &option, "--stdin"]).index(index);
                call.input(&nul_terminated(&paths)).run()?;
            }
        }
        Ok(())
    }

    /// Files with marks. A file that exists outside a sparse checkout loses its mark in git itself.
    fn marked_files(&self, index: &Path) -> Result<Vec<HiddenChange>, Error> {
        let listed = self.call(&["ls-files", "-z", "-v", "--cached"]).index(index).run()?;
        let mut marked = Vec::new();
        for line in nul_separated(&listed) {
            let (Some(tag), Some(path)) = (line.first(), line.get(2..)) else { continue };
            if tag.is_ascii_lowercase() {
                marked.push(HiddenChange { path: path.to_vec(), mark: IndexMark::AssumeUnchanged });
            }
            if tag.eq_ignore_ascii_case(&b's') {
                marked.push(HiddenChange { path: path.to_vec(), mark: IndexMark::SkipWorktree });
            }
        }
        if marked.iter().any(|file| file.mark == IndexMark::SkipWorktree) {
            let is_sparse = self.is_sparse()?;
            let exists =
                |file: &HiddenChange| self.root().join(path_of(&file.path)).symlink_metadata().is_ok();
            marked.retain(|file| file.mark == IndexMark::AssumeUnchanged || (!is_sparse && exists(file)));
        }
        Ok(marked)
    }

    fn is_sparse(&self) -> Result<bool, Error> {
        let call = self.call(&["config", "--type=bool", "--get", "core.sparseCheckout"]);
        Ok(call.output()?.stdout.starts_with(b"true"))
    }
}
