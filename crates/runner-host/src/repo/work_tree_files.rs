//! The files of the work tree, read by name: what a run that starts now would protect, and what its agents would be told.

use std::fs;
use std::path::{Path, PathBuf};

use runner_core::config::{Executor, GuardConfig};
use runner_core::guard_files::{self, RepoFiles};
use runner_core::model::instructions::PinnedInstructions;
use runner_core::model::protection::Protection;

use crate::fs::atomic;
use crate::git::Git;

/// The most bytes of a file that are read.
const FILE_BYTES_MAX: u64 = 4 << 20;

struct WorkTreeFiles<'g> {
    root: &'g Path,
}

impl RepoFiles for WorkTreeFiles<'_> {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let file = self.root.join(path).canonicalize().ok()?;
        let root = self.root.canonicalize().ok()?;
        if !file.starts_with(root) {
            return None;
        }
        atomic::read(&file, FILE_BYTES_MAX).ok().flatten()
    }

    fn is_folder(&self, path: &str) -> bool {
        self.root.join(path).is_dir()
    }

    fn link(&self, path: &str) -> Option<String> {
        let target: PathBuf = fs::read_link(self.root.join(path)).ok()?;
        Some(target.to_str()?.to_owned())
    }
}

/// What a configuration protects, with the files of the work tree.
pub(crate) fn work_tree_protection(git: &Git, guard: &GuardConfig) -> Protection {
    guard_files::protection(guard, &WorkTreeFiles { root: git.root() })
}

/// The instructions that a configuration names, with the files of the work tree.
pub(crate) fn work_tree_instructions(git: &Git, executor: &Executor) -> Option<PinnedInstructions> {
    PinnedInstructions::of(&executor.instructions, &WorkTreeFiles { root: git.root() })
}

/// What the guard's command and its setup depend on, whatever the configuration lists.
pub(crate) fn guard_dependencies(git: &Git, guard: &GuardConfig) -> Protection {
    guard_files::derived(guard, &WorkTreeFiles { root: git.root() })
}
