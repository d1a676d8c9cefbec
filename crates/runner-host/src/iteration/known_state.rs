//! What the runner knows about the repository after its own commit, so that the next iteration need not read it again.

use std::path::PathBuf;

use runner_core::layout::Doc;
use runner_core::model::tree::Tree;
use runner_core::runs::start::DocSet;

use super::protected_paths::ProtectedPaths;
use crate::fs::atomic::{self, FileStamp};
use crate::git::{Git, Head};

/// The state of a repository in which the runner made the last commit and the work tree was clean. Valid while
/// [`is_current`](Self::is_current); dropped whenever others had time to change the work tree: after a wait, a pause or a
/// hook.
pub(super) struct KnownState {
    pub(super) head: Head,
    /// The stamp of the user's index.
    pub(super) index: Option<FileStamp>,
    pub(super) state: Vec<u8>,
    pub(super) tree: Tree,
    /// A file outside the work tree's documents with the same tree.
    pub(super) tree_file: Option<TreeFile>,
    /// The protected paths at the run's start and at HEAD.
    pub(super) protected: Option<ProtectedPaths>,
}

/// A file that holds a tree, as long as it has this stamp.
#[derive(Clone, Debug)]
pub(super) struct TreeFile {
    pub(super) path: PathBuf,
    pub(super) stamp: FileStamp,
}

impl KnownState {
    /// Whether HEAD, its branch, the index and the runner's documents are unchanged.
    pub(super) fn is_current(&self, git: &Git, docs: &DocSet) -> bool {
        docs.get(&Doc::RunState) == Some(&self.state)
            && docs.get(&Doc::Tree).map(Vec::as_slice) == Some(self.tree.bytes())
            && atomic::stamp(&git.paths().index()) == self.index
            && git.is_at(&self.head)
    }
}
