//! An iteration between the end of its session and its commit.

use std::path::PathBuf;
use std::time::Duration;

use runner_core::agents::SessionIdentity;
use runner_core::commit_message::snapshot_subject;
use runner_core::layout::Doc;
use runner_core::model::object_id::{CommitId, TreeId};
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tree::{BYTES_MAX, Tree};
use runner_core::step::{
    Attempt, ChangeScope, FileNotice, GuardRun, Job, LeftFile, LoadedRun, ProtectedPath, SessionExit, Usage,
};

use super::iteration_dir::IterationDir;
use super::protected_paths::{ProtectedPaths, SessionChanges, StagedIndex};
use super::session_files::{answer_path, read_left_file};
use super::stored_attempt::StoredAttempt;
use crate::agent::sandbox::SandboxKind;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic::{self, FileStamp};
use crate::git::{Git, PathSet, path_of};
use crate::repo::journal::{self, IterationEntry, IterationPhase, JournalEntry, StoredSession};
use crate::repo::paths::is_runner_path;
use crate::repo::repo_guard::RestoreReport;
use crate::repo::worktree::{self, StagedChanges};
use crate::room::Candidate;

const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What is fixed when an iteration begins, except for the times in its directory.
pub(super) struct IterationSetup {
    /// The commit that the iteration begins from, and its tree.
    pub(super) base: CommitId,
    pub(super) tree: Tree,
    pub(super) index: PathBuf,
    pub(super) dir: IterationDir,
    /// The time that agent and guard may still use together. Only the time in which one of them runs is taken from it.
    pub(super) time_left: Duration,
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
            time_left: Duration::from_secs(job.limits.iteration_secs),
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

/// A session that has ended, in a repository that is restored. Its changes are not stored yet.
pub(super) struct EndedSession {
    pub(super) setup: IterationSetup,
    /// The iteration as the journal has it.
    pub(super) entry: Box<IterationEntry>,
    pub(super) outcome: SessionOutcome,
    pub(super) restored: RestoreReport,
    pub(super) identity: SessionIdentity,
}

impl EndedSession {
    /// Stores what the session left as git objects, records that in the journal, and returns it as values. From then on the
    /// iteration depends on nothing that another process can change.
    pub(super) fn store(self, git: &Git, job: &Job) -> Result<(OpenIteration, Attempt), Error> {
        let Self { setup, mut entry, outcome, restored, identity } = self;
        atomic::create_folders(git.root(), &git.paths().context())?;
        let answer = read_left_file(&answer_path(git, job), ANSWER_BYTES_MAX);
        if let LeftFile::Bytes(bytes) = &answer {
            setup.dir.write_log("output.json", bytes);
        }
        let tree = read_left_file(&git.paths().doc(Doc::Tree), BYTES_MAX as u64);
        let StagedChanges { changed: staged, mut notices, withheld } =
            worktree::stage(git, &setup.index, job.iteration)?;
        notices.extend(worktree::keep_edits(git, &job.run_id, job.iteration, &withheld)?);
        let index = StagedIndex { git, path: &setup.index, base: &setup.base, staged: &staged };
        let SessionChanges { changed, protected_now, protected } =
            setup.protected.changes(&index, &job.guard.protected)?;
        let attempt = attempt(outcome, answer, tree, &changed, protected);
        let candidate = if changed.is_empty() { None } else { Some(git.write_candidate(&setup.index)?) };
        let commit = match &candidate {
            Some(tree) => store_snapshot(git, job, &setup.base, tree)?,
            None => setup.base.clone(),
        };
        entry.phase = IterationPhase::Stored(Box::new(StoredSession {
            commit,
            attempt: StoredAttempt::new(&attempt, &setup.tree),
        }));
        journal::begin(&git.paths().journal(), &JournalEntry::Iteration(entry))?;
        failpoint::reach("iter.stored");
        let iteration = OpenIteration {
            restored,
            identity,
            attempt: attempt.clone(),
            guard: GuardRun::Skipped,
            index_stamp: atomic::stamp(&setup.index),
            candidate,
            notices,
            protected_now,
            setup,
        };
        Ok((iteration, attempt))
    }
}

/// Stores the files of a session as a commit under `refs/runner/<run>/wip`. One sync of the file system covers all of its
/// objects, however many they are; the reference follows when they are on the disk.
fn store_snapshot(git: &Git, job: &Job, base: &CommitId, tree: &TreeId) -> Result<CommitId, Error> {
    let message = format!("{}\n", snapshot_subject(job.run_id.as_str(), job.iteration));
    let commit = git.store_commit(tree, base, &message)?;
    git.sync()?;
    git.point_ref(&format!("refs/runner/{}/wip", job.run_id), &commit)?;
    Ok(commit)
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

/// An iteration whose session has ended and whose changes are stored. Committing it consumes it.
pub struct OpenIteration {
    pub(super) setup: IterationSetup,
    pub(super) restored: RestoreReport,
    pub(super) identity: SessionIdentity,
    /// The attempt and the guard run, for session.json.
    pub(super) attempt: Attempt,
    pub(super) guard: GuardRun,
    /// The tree that is committed, but for the runner's documents; none if it is the base commit's.
    pub(super) candidate: Option<TreeId>,
    /// The private index, which describes the candidate, when the runner wrote it last.
    pub(super) index_stamp: Option<FileStamp>,
    /// Files that are not committed as the session left them.
    pub(super) notices: Vec<FileNotice>,
    /// The protected paths after the session.
    pub(super) protected_now: PathSet,
}

impl OpenIteration {
    /// The files to commit, but for the runner's documents, as a tree and as a commit.
    pub(super) fn candidate(&self, git: &Git) -> Result<Candidate, Error> {
        let base = &self.setup.base;
        let Some(tree) = self.candidate.clone() else {
            return Ok(Candidate { tree: git.tree_of(base)?, commit: base.clone() });
        };
        let commit = git.store_commit(&tree, base, "candidate\n")?;
        Ok(Candidate { tree, commit })
    }

    /// Restores protected files to their committed content, in the candidate and in the work tree.
    pub(super) fn restore_files(&mut self, git: &Git, paths: &[RepoPath]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        self.ensure_index(git)?;
        let paths: Vec<Vec<u8>> = paths.iter().map(RepoPath::to_bytes).collect();
        worktree::restore_in_index(git, &self.setup.index, &self.setup.base, &paths)?;
        for path in paths.iter().map(|path| git.root().join(path_of(path))) {
            // A link on the way points elsewhere, and nothing there belongs to the run.
            path.parent().map_or(Ok(()), |folder| atomic::create_folders(git.root(), folder))?;
            atomic::remove_any(&path)?;
        }
        git.check_out(&self.setup.index, &paths)?;
        self.candidate = Some(git.write_tree(&self.setup.index)?);
        self.index_stamp = atomic::stamp(&self.setup.index);
        Ok(())
    }

    /// Makes the private index describe the candidate again, if anything but the runner wrote to it.
    pub(super) fn ensure_index(&mut self, git: &Git) -> Result<(), Error> {
        let index = &self.setup.index;
        if self.index_stamp.is_some() && atomic::stamp(index) == self.index_stamp {
            return Ok(());
        }
        match &self.candidate {
            Some(tree) => git.read_into_index(index, tree)?,
            None => git.read_into_index(index, &self.setup.base)?,
        }
        git.refresh_index(index)?;
        self.index_stamp = atomic::stamp(index);
        Ok(())
    }
}
