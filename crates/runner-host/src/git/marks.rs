//! Marks in an index that make git ignore changes to a file: assume-unchanged and skip-worktree.
//!
//! The runner compares the work tree with a private index without marks, except for files that are not checked out: those do
//! not count as deleted. The marks of the user's index stay in it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::objects::Treeish;
use super::{Git, PathSet, nul_separated, nul_terminated, path_of};
use crate::error::Error;
use crate::fs::atomic;
use crate::paths::is_runner_path;

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

/// A tracked file with a mark that can hide a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkedFile {
    pub(crate) path: Vec<u8>,
    pub(crate) mark: IndexMark,
}

/// What is known about the marks of the user's index.
#[derive(Debug, Default)]
pub(super) struct MarkState {
    /// Those that a private index does not have.
    kept: Mutex<Vec<MarkedFile>>,
    /// Whether a private index has files that are not checked out.
    has_absent: AtomicBool,
}

impl Git {
    /// Changes of the work tree that `git status` does not show because of marks in the user's index.
    pub(crate) fn hidden_changes(&self) -> Result<Vec<MarkedFile>, Error> {
        let user_index = self.paths().index();
        let marked = self.read_marks(&user_index)?.hiding;
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

    /// Removes the marks of an index that hide changes, so that git compares each file again. [`Self::restore_marks`] sets them
    /// again.
    pub(crate) fn clear_marks(&self, index: &Path) -> Result<(), Error> {
        let marks = self.read_marks(index)?;
        self.clear(index, &marks.hiding)?;
        self.keep_marks(marks);
        Ok(())
    }

    fn keep_marks(&self, marks: IndexMarks) {
        self.marks.has_absent.store(!marks.absent.is_empty(), Ordering::Relaxed);
        let is_users =
            |file: &MarkedFile| file.mark == IndexMark::AssumeUnchanged || !is_runner_path(&file.path);
        let kept = marks.hiding.into_iter().filter(is_users).collect();
        *self.marks.kept.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }

    /// Whether the user's index has marks that [`Self::clear_marks`] removes from a copy.
    pub(crate) fn has_kept_marks(&self) -> bool {
        !self.marks.kept.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Sets the marks of the user's index in one that replaces it.
    pub(crate) fn restore_marks(&self, index: &Path) -> Result<(), Error> {
        let marked = self.marks.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if marked.is_empty() { Ok(()) } else { self.set_marks(index, &marked) }
    }

    /// Fills an index from a tree, to compare the work tree with it. A file that is not checked out is marked so.
    pub(crate) fn read_for_worktree(&self, index: &Path, tree: &impl Treeish) -> Result<(), Error> {
        let marks = self.readable_marks(&[&self.paths().index(), index]);
        self.read_into_index(index, tree)?;
        self.mark_absent(index, marks)
    }

    /// Marks the files of an index that are not checked out, to compare the work tree with it.
    pub(crate) fn mark_absent_files(&self, index: &Path) -> Result<(), Error> {
        self.mark_absent(index, self.readable_marks(&[&self.paths().index()]))
    }

    /// The marks of the first of these indexes that git can read.
    fn readable_marks(&self, indexes: &[&Path]) -> Option<IndexMarks> {
        indexes.iter().filter(|index| index.is_file()).find_map(|index| self.read_marks(index).ok())
    }

    fn mark_absent(&self, index: &Path, marks: Option<IndexMarks>) -> Result<(), Error> {
        let absent = match marks {
            Some(marks) => {
                let absent = marks.absent.clone();
                self.keep_marks(marks);
                absent
            }
            // It is not known which files were checked out.
            None if self.settings().is_sparse() => {
                let paths = self.index_paths(index, ".")?;
                paths.into_iter().filter(|path| !is_runner_path(path) && !self.exists(path)).collect()
            }
            None => Vec::new(),
        };
        if absent.is_empty() {
            return Ok(());
        }
        let mark = |path: Vec<u8>| MarkedFile { path, mark: IndexMark::SkipWorktree };
        self.set_marks(index, &absent.into_iter().map(mark).collect::<Vec<_>>())
    }

    /// Removes the marks of files that were not checked out and that exist now. In a sparse checkout git does that itself.
    pub(crate) fn reveal_new_files(&self, index: &Path) -> Result<(), Error> {
        if !self.marks.has_absent.load(Ordering::Relaxed) || self.settings().is_sparse() {
            return Ok(());
        }
        self.clear(index, &self.read_marks(index)?.hiding)
    }

    /// Files of an index that are checked out.
    pub(crate) fn checked_out_paths(&self, index: &Path) -> Result<Vec<Vec<u8>>, Error> {
        let listed = self.call(&["ls-files", "-z", "-t", "--cached"]).index(index).run()?;
        let paths = nul_separated(&listed).filter(|line| !line.starts_with(b"S"));
        Ok(paths.filter_map(|line| line.get(2..)).map(<[u8]>::to_vec).collect())
    }

    fn exists(&self, path: &[u8]) -> bool {
        self.root().join(path_of(path)).symlink_metadata().is_ok()
    }

    /// Marks files, as far as the index has them.
    fn set_marks(&self, index: &Path, marked: &[MarkedFile]) -> Result<(), Error> {
        let listed: PathSet = self.index_paths(index, ".")?.into_iter().collect();
        let marked: Vec<MarkedFile> =
            marked.iter().filter(|file| listed.contains(&file.path)).cloned().collect();
        self.change_marks(index, "--", &marked)
    }

    fn clear(&self, index: &Path, marked: &[MarkedFile]) -> Result<(), Error> {
        self.change_marks(index, "--no-", marked)
    }

    fn change_marks(&self, index: &Path, prefix: &str, marked: &[MarkedFile]) -> Result<(), Error> {
        for mark in [IndexMark::AssumeUnchanged, IndexMark::SkipWorktree] {
            let paths: Vec<Vec<u8>> =
                marked.iter().filter(|file| file.mark == mark).map(|file| file.path.clone()).collect();
            if !paths.is_empty() {
                let option = format!("{prefix}{}", mark.as_str());
                let call = self.call(&["update-index", "-z", &option, "--stdin"]).index(index);
                call.input(&nul_terminated(&paths)).run()?;
            }
        }
        Ok(())
    }

    /// The marks of an index. In a sparse checkout, a file that exists has no mark in git itself.
    fn read_marks(&self, index: &Path) -> Result<IndexMarks, Error> {
        let listed = self.call(&["ls-files", "-z", "-v", "--cached"]).index(index).run()?;
        let mut marks = IndexMarks::default();
        for line in nul_separated(&listed) {
            let (Some(tag), Some(path)) = (line.first(), line.get(2..)) else { continue };
            let marked = |mark| MarkedFile { path: path.to_vec(), mark };
            if tag.is_ascii_lowercase() {
                marks.hiding.push(marked(IndexMark::AssumeUnchanged));
            }
            if !tag.eq_ignore_ascii_case(&b's') {
                continue;
            }
            // Nothing of the runner's is ever left out of a checkout.
            if is_runner_path(path) || self.exists(path) {
                marks.hiding.push(marked(IndexMark::SkipWorktree));
            } else {
                marks.absent.push(path.to_vec());
            }
        }
        Ok(marks)
    }
}

/// The marks of an index.
#[derive(Debug, Default)]
struct IndexMarks {
    /// Those that can hide a change.
    hiding: Vec<MarkedFile>,
    /// Files that are not checked out.
    absent: Vec<Vec<u8>>,
}
