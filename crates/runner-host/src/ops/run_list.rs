//! The runs of a repository as a set: what there is, how large it is, whether its work is safe elsewhere; and `runner
//! switch` and `runner clean`.

use std::fs;
use std::path::Path;

use runner_core::commit_message::grep_pattern;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{LeafCount, Tree};

use super::start::clean_status;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, lossy};
use crate::repo::documents::refuse_dirty;
use crate::repo::journal::PublishEntry;
use crate::repo::locked_repo::LockedRepo;
use crate::repo::publish;
use crate::repo::readonly_repo::{ReadonlyRepo, RunBranch};
use crate::repo::worktree::remove_copies;

/// A run with a branch here.
#[derive(Clone, Debug)]
pub struct RunEntry {
    pub run: RunId,
    pub branch: RunBranch,
    pub leaves: Option<LeafCount>,
    /// How many iterations are committed.
    pub iterations: u32,
    /// The work tree that has its branch checked out.
    pub worktree: Option<String>,
    /// The size of its logs, in this work tree and in the one that has its branch.
    pub log_bytes: u64,
    pub safety: WorkSafety,
}

/// Whether the work of a run is on another branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkSafety {
    /// This branch contains the run's own commits.
    Merged(String),
    /// `runner land` made commits of all that passed, on this branch.
    Landed(String),
    /// No task has passed yet.
    Empty,
    OnlyHere,
}

/// Every run that has a branch here, newest first.
pub fn list_runs(dir: &Path) -> Result<Vec<RunEntry>, Error> {
    let git = Git::open(dir)?;
    let repo = ReadonlyRepo::open(dir)?;
    repo.runs()?.into_iter().map(|branch| run_entry(&git, &repo, branch)).collect()
}

fn run_entry(git: &Git, repo: &ReadonlyRepo, branch: RunBranch) -> Result<RunEntry, Error> {
    let tree = repo.doc(&branch.commit, Doc::Tree)?.and_then(|bytes| Tree::decode(&bytes).ok());
    let state = repo.doc(&branch.commit, Doc::RunState)?.and_then(|bytes| RunState::decode(&bytes).ok());
    let worktree = git.worktree_holding(&branch.run.branch())?;
    let logs = |root: &Path| root.join(RUNNER_DIR).join("iterations").join(branch.run.as_str());
    let other = worktree.as_deref().map(Path::new).filter(|other| *other != git.root());
    let log_bytes = folder_bytes(&logs(git.root())) + other.map_or(0, |other| folder_bytes(&logs(other)));
    Ok(RunEntry {
        leaves: tree.map(|tree| tree.root().leaves()),
        iterations: state.map_or(0, |state| state.next_iter.get() - 1),
        worktree,
        log_bytes,
        safety: work_safety(git, &branch.commit)?,
        run: branch.run.clone(),
        branch,
    })
}

/// Whether another branch has the work of the run with this tip.
fn work_safety(git: &Git, tip: &CommitId) -> Result<WorkSafety, Error> {
    if let Some(branch) = other_branch_with(git, tip)? {
        return Ok(WorkSafety::Merged(branch));
    }
    let passed = format!("--grep={}", grep_pattern::passed());
    let args = ["rev-list", "-1", "--first-parent", "--extended-regexp", &passed, tip.as_str()];
    let last_pass = lossy(&git.call(&args).run()?);
    if last_pass.is_empty() {
        return Ok(WorkSafety::Empty);
    }
    let landed = format!("--grep={}", grep_pattern::landed_from(&last_pass));
    let args = ["rev-list", "-1", "--extended-regexp", &landed, "--exclude=runner/*", "--branches"];
    let commit = lossy(&git.call(&args).run()?);
    let Ok(commit) = CommitId::new(commit) else { return Ok(WorkSafety::OnlyHere) };
    Ok(other_branch_with(git, &commit)?.map_or(WorkSafety::OnlyHere, WorkSafety::Landed))
}

/// A local branch that contains a commit and is no run's.
fn other_branch_with(git: &Git, commit: &CommitId) -> Result<Option<String>, Error> {
    let contains = format!("--contains={commit}");
    let output =
        lossy(&git.call(&["for-each-ref", "--format=%(refname:lstrip=2)", &contains, "refs/heads/"]).run()?);
    Ok(output.lines().find(|name| RunId::of_branch(name).is_none()).map(str::to_owned))
}

fn folder_bytes(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += folder_bytes(&entry.path()),
            Ok(metadata) => bytes += metadata.len(),
            Err(_) => {}
        }
    }
    bytes
}

/// Checks a run's branch out. Refuses uncommitted changes, and a branch that another work tree has.
pub fn switch_run(dir: &Path, run: &str) -> Result<RunId, Error> {
    let repo = LockedRepo::open(dir)?;
    let git = repo.git();
    let status = clean_status(git)?;
    refuse_dirty(&status.inside)?;
    let entry = find_run(git, run)?;
    let branch = entry.run.branch();
    if status.head.branch() == Some(&branch) {
        return Ok(entry.run);
    }
    if let Some(worktree) = entry.worktree {
        return Err(UserError::HeldElsewhere { branch: branch.to_string(), worktree }.into());
    }
    let head = status.head.commit().ok_or(UserError::NoCommit)?;
    let tip = entry.branch.commit;
    let publication = PublishEntry {
        run: entry.run.clone(),
        old_tip: git.branch_tip(&branch)?,
        new_tip: tip,
        from: head.clone(),
    };
    publish::publish_by_checkout(git, &publication)?;
    Ok(entry.run)
}

fn find_run(git: &Git, wanted: &str) -> Result<RunEntry, Error> {
    let repo = ReadonlyRepo::open(git.root())?;
    let runs = repo.runs()?;
    let short = wanted.strip_prefix("runner/").unwrap_or(wanted);
    let found = runs.iter().find(|branch| branch.run.as_str() == short).cloned();
    let all = || runs.iter().map(|branch| branch.run.to_string()).collect();
    let branch = found.ok_or_else(|| UserError::NoSuchRun { wanted: wanted.to_owned(), runs: all() })?;
    run_entry(git, &repo, branch)
}

/// What `runner clean` would remove.
pub struct PlannedClean {
    repo: LockedRepo,
    pub entry: RunEntry,
    /// The references besides the branch: copies of files, and work that was found.
    pub references: Vec<String>,
}

/// Which runs `runner clean` may remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanPolicy {
    /// Only those whose work is on another branch.
    OnlySafe,
    Any,
}

/// Finds out what belongs to a run. Refuses one that is checked out, or whose work is nowhere else.
pub fn plan_clean(dir: &Path, run: &str, policy: CleanPolicy) -> Result<PlannedClean, Error> {
    let repo = LockedRepo::open(dir)?;
    let git = repo.git();
    let entry = find_run(git, run)?;
    if let Some(worktree) = &entry.worktree {
        let is_linked = git.is_linked_worktree(Path::new(worktree));
        return Err(UserError::RunCheckedOut { run: entry.run, worktree: worktree.clone(), is_linked }.into());
    }
    if entry.safety == WorkSafety::OnlyHere && policy == CleanPolicy::OnlySafe {
        return Err(UserError::RunNotLanded(entry.run).into());
    }
    let prefix = format!("refs/runner/{}/", entry.run);
    let references = git.all_refs()?.into_keys().filter(|name| name.starts_with(&prefix)).collect();
    Ok(PlannedClean { entry, references, repo })
}

impl PlannedClean {
    /// Removes logs, references and the local branch, in this order: what proves the run goes last.
    pub fn remove(&self) -> Result<(), Error> {
        let git = self.repo.git();
        atomic::remove_any(&git.paths().iterations().join(self.entry.run.as_str()))?;
        remove_copies(git, &self.entry.run)?;
        let references = git.all_refs()?;
        let branch = self.entry.run.branch().reference();
        for name in self.references.iter().chain([&branch]) {
            if let Some(object) = references.get(name) {
                git.remove_ref(name, object)?;
            }
        }
        Ok(())
    }
}
