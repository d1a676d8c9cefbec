//! The end of an iteration: its commit, its record, and the repository at that commit.

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::model::tree::Tree;
use runner_core::step::{IterationRecord, Job, Transition};
use serde_json::json;

use super::{KnownCleanState, OpenIteration, RepoWorld};
use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{EntryMode, Git, IndexEntry, TreeEntry};
use crate::iteration::iteration_dir::IterationDir;
use crate::ops::replay;
use crate::repo::journal::PublishEntry;
use crate::repo::publish;
use crate::repo::worktree;

impl RepoWorld<'_> {
    /// Stores what an iteration made, and takes the repository there.
    pub(super) fn commit_iteration(
        &mut self,
        job: &Job,
        transition: &Transition,
    ) -> Result<IterationRecord, Error> {
        self.restore_files(&transition.restore)?;
        let git = &self.git;
        let bench = self.bench.as_mut().ok_or(UserError::NoCommit)?;
        let docs = [Doc::Tree, Doc::RunState];
        let state = transition.state.to_bytes();
        let contents = [transition.tree.bytes(), &state];
        // None of the three has to wait for another.
        let (folder, index) = (&mut bench.folder, &bench.index);
        let change = CommitInputs { index, base: &bench.base, has_files: bench.has_changes };
        let (commit, laid, beside) = std::thread::scope(|scope| {
            let laying = scope.spawn(|| {
                lay_ready(git, docs, contents)?;
                folder.write_after(&transition.tree)
            });
            let looking = scope.spawn(|| worktree::beside(git, index));
            let commit = change.store(git, docs, contents, &transition.message);
            (commit, joined(laying), joined(looking))
        });
        laid?;
        let (commit, beside) = (commit?, beside?);
        failpoint::reach("iter.commit");
        let moving = PublishEntry {
            run: bench.run.to_string(),
            branch: bench.run.branch(),
            old_tip: Some(bench.base.clone()),
            new_tip: commit.clone(),
            from: bench.base.clone(),
        };
        write_logs(git, bench, (job, self.tree.as_ref()), transition, &commit)?;
        publish::publish(git, &moving, (&bench.index, beside), &docs)?;
        self.left = KnownCleanState::behind(git, &moving, beside, state);
        if !transition.restore.is_empty() {
            self.at_head = None;
        }
        // Its answer is in the folder by now.
        atomic::remove_any(&git.paths().answer(&job.iteration.to_string()))?;
        self.last = self.bench.take().map(|bench| bench.folder).inspect(IterationDir::let_go);
        self.made = Some(commit.clone());
        self.tree = Some(transition.tree.clone());
        Ok(IterationRecord { commit })
    }
}

/// What an iteration commits: what an index has, and the runner's own documents.
struct CommitInputs<'b> {
    index: &'b Path,
    base: &'b str,
    /// Whether the index differs from the base's.
    has_files: bool,
}

impl CommitInputs<'_> {
    /// Stores the commit, and leaves the index describing it.
    fn store(&self, git: &Git, docs: [Doc; 2], contents: [&[u8]; 2], message: &str) -> Result<String, Error> {
        let objects = git.store_blobs(&contents)?;
        let named: Vec<(&str, String)> = docs.iter().map(|doc| doc.path()).zip(objects).collect();
        let put = |(path, object): &(&str, String)| {
            let (object, path) = (object.clone(), path.as_bytes().to_vec());
            IndexEntry::Put(TreeEntry { mode: EntryMode::File, object, path })
        };
        let edits: Vec<IndexEntry> = named.iter().map(put).collect();
        // A session that left no file behind needs no look at all of them.
        let planted = if self.has_files { None } else { git.tree_with(self.base, &named)? };
        let tree = if let Some(tree) = planted {
            git.finish_index(self.index, &edits)?;
            tree
        } else {
            git.edit_index(self.index, &edits)?;
            git.write_tree(self.index)?
        };
        git.store_commit(&tree, self.base, message)
    }
}

/// Writes documents down beside the places that they will have.
fn lay_ready(git: &Git, docs: [Doc; 2], contents: [&[u8]; 2]) -> Result<(), Error> {
    for (doc, bytes) in docs.into_iter().zip(contents) {
        atomic::prepare(git.root(), &git.paths().doc(doc), bytes)
            .and_then(|path| atomic::backdate_mtime(&path))?;
    }
    Ok(())
}

/// The result of a thread. A panic in it goes on here.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The rest of the iteration's folder: what was decided and what changed.
fn write_logs(
    git: &Git,
    bench: &mut OpenIteration,
    (job, before): (&Job, Option<&Tree>),
    transition: &Transition,
    commit: &str,
) -> Result<(), Error> {
    let folder = &mut bench.folder;
    replay::keep(folder, &bench.base, before, bench.attempt.take(), &bench.verdict)?;
    let patch = match bench.has_changes {
        true => git.patch(&bench.base, commit, &[Doc::Tree.path(), Doc::RunState.path()])?,
        false => Vec::new(),
    };
    folder.write("diff.patch", &patch)?;
    let findings = &transition.meta.findings;
    if !findings.is_empty() {
        folder.write("error.log", (findings.join("\n") + "\n").as_bytes())?;
    }
    let set_aside: Vec<_> =
        bench.set_aside.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect();
    let more = json!({
        "commit_before": bench.base,
        "commit_after": commit,
        "executor": job.executor.kind.as_str(),
        "sandbox": bench.sandbox,
        "identity": bench.identity,
        "mended": bench.mended,
        "set_aside": set_aside,
    });
    folder.write_meta(&transition.meta, more)
}
