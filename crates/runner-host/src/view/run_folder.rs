//! Finds the work tree of a run: runs in linked work trees are found from any other work tree of the repository.

use std::path::{Path, PathBuf};

use runner_core::model::id::RunId;

use crate::git::{Git, lossy, nul_separated};

/// A work tree that has the branch of a run checked out.
struct RunWorktree {
    run: RunId,
    path: PathBuf,
}

/// The folder in which a command about a run should work: the linked work tree of the named run; without a name, that of the
/// only run that is checked out anywhere, if no run is checked out here. Otherwise, and if anything is unclear, `dir` itself.
pub fn run_folder(dir: &Path, wanted: Option<&str>) -> PathBuf {
    elsewhere(dir, wanted).unwrap_or_else(|| dir.to_owned())
}

fn elsewhere(dir: &Path, wanted: Option<&str>) -> Option<PathBuf> {
    if !has_linked_worktrees(dir) {
        return None;
    }
    let git = Git::open(dir).ok()?;
    let mut worktrees = run_worktrees(&git);
    let is_here =
        |worktree: &RunWorktree| worktree.path.canonicalize().ok() == git.root().canonicalize().ok();
    match wanted {
        Some(name) => {
            let name = name.strip_prefix("runner/").unwrap_or(name);
            let named = worktrees.into_iter().find(|worktree| worktree.run.as_str() == name)?;
            (!is_here(&named)).then_some(named.path)
        }
        None if worktrees.iter().any(is_here) => None,
        None => worktrees.pop().filter(|_| worktrees.is_empty()).map(|worktree| worktree.path),
    }
}

/// Whether the repository has more than one work tree, found out without starting git. A linked work tree has a file
/// named `.git`.
fn has_linked_worktrees(dir: &Path) -> bool {
    let Ok(dir) = dir.canonicalize() else { return false };
    let Some(git) = dir.ancestors().map(|folder| folder.join(".git")).find(|path| path.exists()) else {
        return false;
    };
    git.is_file() || git.join("worktrees").is_dir()
}

fn run_worktrees(git: &Git) -> Vec<RunWorktree> {
    let output = git.call(&["worktree", "list", "--porcelain", "-z"]).run().unwrap_or_default();
    let mut found = Vec::new();
    let mut path = PathBuf::new();
    for line in nul_separated(&output) {
        if let Some(worktree) = line.strip_prefix(b"worktree ") {
            path = crate::git::path_of(worktree).to_owned();
        } else if let Some(branch) = line.strip_prefix(b"branch refs/heads/") {
            let run = RunId::of_branch(&lossy(branch));
            // For a separate git folder, git lists that folder as the main work tree.
            found.extend(
                run.filter(|_| path.join(".git").exists()).map(|run| RunWorktree { run, path: path.clone() }),
            );
        }
    }
    found
}
