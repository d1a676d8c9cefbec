//! An iteration between the end of its session and its commit.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use runner_core::agents::SessionIdentity;
use runner_core::layout::Doc;
use runner_core::model::object_id::CommitId;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tree::{BYTES_MAX, Tree};
use runner_core::step::{
    Attempt, ChangeScope, GuardRun, Job, LeftFile, LoadedRun, ProtectedPath, SessionExit, Usage,
};

use super::iteration_dir::IterationDir;
use super::protected_paths::{IndexOrigin, ProtectedPaths, SessionChanges, StagedIndex};
use super::session_files::{answer_path, read_left_file};
use crate::agent::sandbox::SandboxKind;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::{Git, PathSet, path_of};
use crate::repo::paths::is_runner_path;
use crate::repo::repo_guard::RestoreReport;
use crate::repo::worktree::{self, SetAsideFile, StagedChanges};

const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What is fixed when an iteration begins, except for the times in its directory.
pub(super) struct IterationSetup {
    /// The commit that the iteration begins from, and its tree.
    pub(super) base: CommitId,
    pub(super) tree: Tree,
    pub(super) index: PathBuf,
    pub(super) dir: IterationDir,
    /// When the time of agent and guard together is over.
    pub(super) deadline: Instant,
    pub(super) sandbox: SandboxKind,
    pub(super) protected: ProtectedPaths,
}

impl IterationSetup {
    /// Opens the iteration's directory, and starts its clock.
    pub(super) fn new(
        git: &Git,
        run: &LoadedRun,
        job: &Job,
        index: PathBuf,
        sandbox: SandboxKind,
        protected: ProtectedPaths,
    ) -> Result<Self, Error> {
        let dir = IterationDir::open(git.paths(), &job.run_id, job.iteration)?;
        dir.write("prompt.md", job.prompt.text.as_bytes())?;
        Ok(Self {
            base: run.commit.clone(),
            tree: run.snapshot.tree.clone(),
            index,
            dir,
            deadline: Instant::now() + Duration::from_secs(job.limits.iteration_secs),
            sandbox,
            protected,
        })
    }
}

/// How the process of a session ended.
#[derive(Clone, Debug)]
pub(super) struct SessionOutcome {
    pub(super) exit: SessionExit,
    pub(super) usage: Usage,
    pub(super) processes_left: u32,
}

/// A session that has ended, in a repository that is restored. Its changes are not staged yet.
pub(super) struct EndedSession {
    pub(super) setup: IterationSetup,
    pub(super) outcome: SessionOutcome,
    pub(super) restored: RestoreReport,
    pub(super) identity: SessionIdentity,
    pub(super) index_origin: IndexOrigin,
}

impl EndedSession {
    /// Stages what the session left, and returns it as values.
    pub(super) fn collect(self, git: &Git, job: &Job) -> Result<(OpenIteration, Attempt), Error> {
        let setup = &self.setup;
        atomic::create_folders(git.root(), &git.paths().context())?;
        let answer = read_left_file(&answer_path(git, job), ANSWER_BYTES_MAX);
        if let LeftFile::Bytes(bytes) = &answer {
            setup.dir.write_log("output.json", bytes);
        }
        let tree = read_left_file(&git.paths().doc(Doc::Tree), BYTES_MAX as u64);
        let StagedChanges { changed: staged, set_aside } = worktree::stage(git, &setup.index, job.iteration)?;
        let index = StagedIndex {
            git,
            path: &setup.index,
            origin: self.index_origin,
            base: &setup.base,
            staged: &staged,
        };
        let SessionChanges { changed, protected_now, protected } =
            setup.protected.changes(&index, &job.protected)?;
        let attempt = attempt(self.outcome, answer, tree, &changed, protected);
        let iteration = OpenIteration {
            setup: self.setup,
            restored: self.restored,
            identity: self.identity,
            attempt: attempt.clone(),
            guard: GuardRun::Skipped,
            has_changes: !changed.is_empty(),
            set_aside,
            protected_now,
        };
        Ok((iteration, attempt))
    }
}

fn attempt(
    outcome: SessionOutcome,
    answer: LeftFile,
    tree: LeftFile,
    changed: &PathSet,
    protected: Vec<ProtectedPath>,
) -> Attempt {
    let changed_workspace = changed.iter().any(|path| !is_runner_path(path));
    Attempt {
        exit: outcome.exit,
        answer,
        tree,
        work: if changed_workspace { ChangeScope::Execute } else { ChangeScope::Decompose },
        protected,
        usage: outcome.usage,
        processes_left: outcome.processes_left,
    }
}

/// An iteration whose session has ended and whose changes are staged. Committing it consumes it.
pub struct OpenIteration {
    pub(super) setup: IterationSetup,
    pub(super) restored: RestoreReport,
    pub(super) identity: SessionIdentity,
    /// The attempt and the guard run, for session.json.
    pub(super) attempt: Attempt,
    pub(super) guard: GuardRun,
    /// Whether the private index differs from the base commit.
    pub(super) has_changes: bool,
    pub(super) set_aside: Vec<SetAsideFile>,
    /// The protected paths after the session.
    pub(super) protected_now: PathSet,
}

impl OpenIteration {
    /// Restores protected files to their committed content, in the index and in the work tree.
    pub(super) fn restore_files(&self, git: &Git, paths: &[RepoPath]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let paths: Vec<Vec<u8>> = paths.iter().map(RepoPath::to_bytes).collect();
        worktree::restore_in_index(git, &self.setup.index, &self.setup.base, &paths)?;
        for path in paths.iter().map(|path| git.root().join(path_of(path))) {
            // A link on the way points elsewhere, and nothing there belongs to the run.
            path.parent().map_or(Ok(()), |folder| atomic::create_folders(git.root(), folder))?;
            atomic::remove_any(&path)?;
        }
        git.check_out(&self.setup.index, &paths)
    }
}
