//! Finds the work tree of a run: runs in linked work trees are found from any other work tree of the repository.

use std::path::{Path, PathBuf};

use runner_core::model::id::RunId;

use crate::git::{Git, lossy, nul_separated};
use crate::repo::readonly_repo::{ReadonlyRepo, lock_holder};

/// A work tree that has the branch of a run checked out.
struct RunWorktree {
    run: RunId,
    path: PathBuf,
}

/// The folder in which a command about a run should work: the linked work tree of the named run; without a name, if no run is
/// checked out here, that of the only run that is checked out anywhere, or of the only one on which a runner works.
/// Otherwise, and if anything is unclear, `dir` itself.
pub fn run_folder(dir: &Path, wanted: Option<&str>) -> PathBuf {
    let folder = || {
        let (git, worktrees) = worktrees_seen_from(dir)?;
        match wanted {
            Some(name) => {
                let name = name.strip_prefix("runner/").unwrap_or(name);
                let named = worktrees.into_iter().find(|worktree| worktree.run.as_str() == name)?;
                (!named.is_root_of(&git)).then_some(named.path)
            }
            None => only(unnamed(&git, worktrees)?),
        }
    };
    folder().unwrap_or_else(|| dir.to_owned())
}

/// The same for a command that only shows the run: if several could be meant, the newest of them.
pub fn shown_run_folder(dir: &Path) -> PathBuf {
    let folder = || {
        let (git, worktrees) = worktrees_seen_from(dir)?;
        newest(dir, unnamed(&git, worktrees)?)
    };
    folder().unwrap_or_else(|| dir.to_owned())
}

/// The other work tree that has the branch of a run checked out.
pub fn other_worktree(dir: &Path, run: &RunId) -> Option<PathBuf> {
    let (git, worktrees) = worktrees_seen_from(dir)?;
    let holder = worktrees.into_iter().find(|worktree| worktree.run == *run)?;
    (!holder.is_root_of(&git)).then_some(holder.path)
}

impl RunWorktree {
    fn is_root_of(&self, git: &Git) -> bool {
        self.path.canonicalize().ok() == git.root().canonicalize().ok()
    }

    fn is_live(&self) -> bool {
        Git::open(&self.path).is_ok_and(|git| lock_holder(&git).is_some())
    }
}

/// The work trees with a run, if the repository has more than one work tree.
fn worktrees_seen_from(dir: &Path) -> Option<(Git, Vec<RunWorktree>)> {
    if !has_linked_worktrees(dir) {
        return None;
    }
    let git = Git::open(dir).ok()?;
    let worktrees = run_worktrees(&git);
    Some((git, worktrees))
}

/// The work trees that a command without the name of a run can mean: those in which a runner works, if there are several. None
/// if a run is checked out here.
fn unnamed(git: &Git, worktrees: Vec<RunWorktree>) -> Option<Vec<RunWorktree>> {
    if worktrees.iter().any(|worktree| worktree.is_root_of(git)) {
        return None;
    }
    if worktrees.len() < 2 {
        return Some(worktrees);
    }
    let (live, idle): (Vec<_>, Vec<_>) = worktrees.into_iter().partition(RunWorktree::is_live);
    Some(if live.is_empty() { idle } else { live })
}

fn only(mut worktrees: Vec<RunWorktree>) -> Option<PathBuf> {
    worktrees.pop().filter(|_| worktrees.is_empty()).map(|worktree| worktree.path)
}

fn newest(dir: &Path, mut worktrees: Vec<RunWorktree>) -> Option<PathBuf> {
    if worktrees.len() > 1 {
        let runs = ReadonlyRepo::open(dir).and_then(|repo| repo.runs()).ok()?;
        let place = |worktree: &RunWorktree| runs.iter().position(|branch| branch.run == worktree.run);
        worktrees.sort_by_key(|worktree| place(worktree).unwrap_or(usize::MAX));
    }
    worktrees.into_iter().next().map(|worktree| worktree.path)
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
