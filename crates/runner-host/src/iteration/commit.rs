//! The end of an iteration: its commit, its logs, and the repository moved to that commit.

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::model::object_id::CommitId;
use runner_core::model::tree::Tree;
use runner_core::step::{CheckEvidence, Job, RecordedIteration, Transition};

use super::known_state::{KnownState, TreeFile};
use super::open_iteration::OpenIteration;
use super::parallel::in_parallel;
use super::protected_paths::ProtectedPaths;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{EntryMode, Git, Head, IndexEntry, ReplacedFile, TreeEntry};
use crate::ops::replay::{self, SessionResults};
use crate::redaction::redactor;
use crate::repo::journal::PublishEntry;
use crate::repo::publish::{self, PreparedCommit};
use crate::repo::worktree::{self, WorktreeState};

/// The documents that every iteration changes.
pub(super) const DOCS: [Doc; 2] = [Doc::Tree, Doc::RunState];

pub(super) struct CommittedIteration {
    pub(super) commit: CommitId,
    /// What is known of the repository, if nothing else is in the work tree.
    pub(super) known: Option<KnownState>,
}

/// Stores the commit of an iteration and publishes it.
pub(super) fn commit_iteration(
    git: &Git,
    mut iteration: OpenIteration,
    job: &Job,
    transition: &Transition,
) -> Result<CommittedIteration, Error> {
    iteration.restore_files(git, &transition.restore, &job.permissions.protection)?;
    // The guard ran the agent's code, which may have written to the index.
    iteration.ensure_index(git)?;
    let state = transition.state.to_bytes();
    let inputs = CommitInputs {
        iteration: &iteration,
        contents: [transition.tree.bytes(), &state],
        message: &transition.message,
    };
    let stored = inputs.store(git, &transition.tree).or_else(|error| {
        if !error.is_disk_full() {
            return Err(error);
        }
        iteration.setup.dir.drop_large_logs();
        inputs.store(git, &transition.tree)
    })?;
    let StoredIteration { commit, worktree, tree_file } = stored;
    failpoint::reach("iter.commit");
    write_logs(git, &iteration, job, transition, &commit)?;
    let entry = PublishEntry::next_commit(&job.run_id, &iteration.setup.base, &commit);
    let index = iteration.setup.index.clone();
    publish::publish_in_place(git, &PreparedCommit { entry: &entry, index, worktree, docs: &DOCS })?;
    git.note_iteration_commit(&iteration.setup.base, &commit);
    let user_index = atomic::stamp(&git.paths().index());
    // The answer is in the iteration's directory by now.
    atomic::remove_any(&git.paths().answer(&job.iteration.to_string()))?;
    iteration.setup.dir.evict_tree_after();
    let known = (worktree == WorktreeState::Clean).then(|| KnownState {
        head: Head::Branch { name: job.run_id.branch(), commit: commit.clone() },
        index: user_index,
        state,
        tree: transition.tree.clone(),
        tree_file,
        protected: protected_after(iteration, transition),
    });
    Ok(CommittedIteration { commit, known })
}

/// The protected paths at the new commit; unknown if the runner restored some.
fn protected_after(iteration: OpenIteration, transition: &Transition) -> Option<ProtectedPaths> {
    let at_start = iteration.setup.protected.at_start;
    // The check files of the task are among the paths only while it is worked on.
    let is_known = transition.restore.is_empty() && transition.checks == CheckEvidence::default();
    is_known.then_some(ProtectedPaths { at_start, at_base: iteration.protected_now })
}

/// What an iteration commits: the files in its private index, and the runner's documents.
struct CommitInputs<'i> {
    iteration: &'i OpenIteration,
    /// The contents of [`DOCS`].
    contents: [&'i [u8]; 2],
    message: &'i str,
}

/// An iteration that is stored, but not published.
struct StoredIteration {
    commit: CommitId,
    worktree: WorktreeState,
    tree_file: Option<TreeFile>,
}

impl CommitInputs<'_> {
    /// Stores the commit, and leaves the index describing it.
    fn store_commit(&self, git: &Git) -> Result<CommitId, Error> {
        let base = &self.iteration.setup.base;
        let index: &Path = &self.iteration.setup.index;
        let mut edits = Vec::new();
        let mut files = Vec::new();
        for (doc, blob) in DOCS.into_iter().zip(git.store_blobs(&self.contents)?) {
            let entry = TreeEntry { mode: EntryMode::File, object: blob.clone(), path: doc.path().into() };
            edits.push(IndexEntry::Put(entry));
            files.push(ReplacedFile { path: doc.path(), blob });
        }
        // The new tree follows from the candidate, whose id only this process knows; the index is only what git shows.
        let store = || {
            let tree = match &self.iteration.candidate {
                Some(candidate) => git.tree_with(candidate, &files)?,
                None => git.tree_with(base, &files)?,
            };
            tree.map(|tree| git.store_commit(&tree, base, self.message)).transpose()
        };
        let ((), commit) = in_parallel(|| git.finish_index(index, &edits), store)?;
        match commit {
            Some(commit) => Ok(commit),
            // The documents are no regular files in that tree.
            None => git.store_commit(&git.write_tree(index)?, base, self.message),
        }
    }

    /// Stores the commit, prepares the documents of the work tree, and scans it. The three need nothing from each other, and
    /// the scan of a large work tree takes longer than the rest. May be repeated after a failure.
    fn store(&self, git: &Git, tree: &Tree) -> Result<StoredIteration, Error> {
        let dir = &self.iteration.setup.dir;
        let write_files = || self.write_documents(git).map(|()| dir.write_tree_after(tree));
        let (worktree, (tree_file, commit)) = in_parallel(
            || worktree::scan(git, &self.iteration.setup.index),
            || in_parallel(write_files, || self.store_commit(git)),
        )?;
        Ok(StoredIteration { commit, worktree, tree_file })
    }

    /// Writes the documents beside their final paths.
    fn write_documents(&self, git: &Git) -> Result<(), Error> {
        for (doc, bytes) in DOCS.into_iter().zip(self.contents) {
            let prepared = atomic::prepare(git.root(), &git.paths().doc(doc), bytes)?;
            atomic::backdate_mtime(&prepared)?;
        }
        Ok(())
    }
}

/// Writes the rest of the iteration's directory: what was decided and what changed.
fn write_logs(
    git: &Git,
    iteration: &OpenIteration,
    job: &Job,
    transition: &Transition,
    commit: &CommitId,
) -> Result<(), Error> {
    let setup = &iteration.setup;
    let results = SessionResults {
        attempt: &iteration.attempt,
        guard: &iteration.guard,
        checks: &transition.checks,
        review: &transition.review,
    };
    replay::write_session(&setup.dir, &setup.base, &setup.tree, &results);
    let patch = if iteration.candidate.is_some() {
        git.patch(&setup.base, commit, &DOCS.map(Doc::path))?
    } else {
        Vec::new()
    };
    setup.dir.write_log("diff.patch", &redactor().redact(&patch));
    let findings = &transition.meta.findings;
    if !findings.is_empty() {
        setup.dir.write_log("error.log", (findings.join("\n") + "\n").as_bytes());
    }
    setup.dir.write_meta(RecordedIteration {
        commit_before: setup.base.to_string(),
        commit_after: commit.to_string(),
        executor: job.agent.executor.kind.as_str().to_owned(),
        sandbox: setup.sandbox.as_str().to_owned(),
        identity: iteration.identity.clone(),
        restored: iteration.restored.clone(),
        file_notices: iteration.notices.clone(),
        ..RecordedIteration::new(transition.meta.clone())
    });
    Ok(())
}
