//! Runs the guard on the untouched repository before a run's first session, and commits its result.

use std::time::Duration;

use runner_core::layout::Doc;
use runner_core::model::object_id::CommitId;
use runner_core::runs::start::DocSet;
use runner_core::step::{BaselineCommit, BaselineWorld, Event, GuardRun, IterationWorld, Job, LoadedRun};

use super::guard::{self, GuardInputs, TimedGuardRun};
use super::known_state::KnownState;
use super::repo_world::RepoWorld;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic;
use crate::git::Head;
use crate::repo::documents::commit_docs;
use crate::repo::journal::{self, JournalEntry, PublishEntry};
use crate::repo::publish::{self, PreparedCommit};
use crate::repo::worktree::{self, WorktreeState};
use crate::room::Candidate;

impl BaselineWorld for RepoWorld<'_> {
    fn run_baseline_guard(&mut self, run: &LoadedRun, job: &Job) -> Result<GuardRun, Error> {
        let git = self.repo.git();
        let log = git.paths().baseline_log(job.run_id.as_str());
        log.parent().map_or(Ok(()), |folder| atomic::create_folders(git.root(), folder))?;
        atomic::remove_any(&log)?;
        // A publication of the current commit: after a crash, recovery restores what the guard changed and keeps a copy.
        let current = PublishEntry::next_commit(&job.run_id, &run.commit, &run.commit);
        journal::begin(&git.paths().journal(), &JournalEntry::Publish(current.clone()))?;
        let wall = Duration::from_secs(job.limits.iteration_secs);
        let candidate = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
        let protected = git.matching_in(&run.commit, &job.guard.protected)?;
        let inputs = GuardInputs { job, candidate: &candidate, protected: &protected, log: &log, wall };
        self.room.at(git, job, &candidate)?;
        if let Some(why) = self.room.take_reason() {
            self.announce(&Event::GuardInPlace { why });
        }
        let git = self.repo.git();
        let room = self.room.at(git, job, &candidate)?;
        let TimedGuardRun { run: guard, .. } = guard::run(git, &self.programs, room, &inputs)?;
        failpoint::reach("baseline.guard");
        if matches!(guard, GuardRun::Interrupted { .. }) {
            publish::recover(git, current)?;
        }
        Ok(guard)
    }

    fn commit_baseline(&mut self, run: &LoadedRun, baseline: &BaselineCommit) -> Result<CommitId, Error> {
        let git = self.repo.git();
        let index = git.paths().private_index("commit");
        let state = baseline.state.to_bytes();
        let docs = DocSet::from([(Doc::RunState, state.clone())]);
        let commit = commit_docs(git, &index, &run.commit, &docs, &baseline.message)?;
        failpoint::reach("baseline.commit");
        git.refresh_index(&index)?;
        let worktree = worktree::scan(git, &index)?;
        atomic::prepare(git.root(), &git.paths().doc(Doc::RunState), &state)?;
        let entry = PublishEntry::next_commit(&baseline.run_id, &run.commit, &commit);
        let prepared = PreparedCommit { entry: &entry, index, worktree, docs: &[Doc::RunState] };
        publish::publish_in_place(git, &prepared)?;
        self.known = (worktree == WorktreeState::Clean).then(|| KnownState {
            head: Head::Branch { name: baseline.run_id.branch(), commit: commit.clone() },
            index: atomic::stamp(&git.paths().index()),
            state,
            tree: run.snapshot.tree.clone(),
            tree_file: None,
            protected: None,
        });
        Ok(commit)
    }
}
