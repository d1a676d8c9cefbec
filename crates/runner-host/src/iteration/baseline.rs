//! The guard on the untouched repository, before a run's first session.

use std::time::Duration;

use runner_core::layout::Doc;
use runner_core::model::id::IterationNumber;
use runner_core::model::run_state::RunState;
use runner_core::step::{BaselineCommit, BaselineWorld, GuardRun, IterationRecord, Job};

use super::{KnownCleanState, RepoWorld};
use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic;
use crate::ops::edit::commit_doc;
use crate::repo::journal::{self, JournalEntry, PublishEntry};
use crate::repo::publish;
use crate::repo::worktree;
use crate::view::inspect::read_docs;

impl RepoWorld<'_> {
    /// Whether the run has made no iteration yet, as far as can be read.
    pub fn is_before_first(&self) -> bool {
        let state = read_docs(&self.git).ok().and_then(|mut docs| docs.remove(&Doc::RunState));
        let state = state.and_then(|bytes| RunState::decode(&bytes).ok());
        state.is_some_and(|state| state.next_iter == IterationNumber::FIRST)
    }

    /// Staying where the run is: what a crash leaves in the work tree meanwhile is put back, and kept aside.
    fn staying(&self, run: &runner_core::model::id::RunId) -> Result<PublishEntry, Error> {
        let head = self.head.clone().ok_or(UserError::NoCommit)?;
        Ok(PublishEntry {
            run: run.to_string(),
            branch: run.branch(),
            old_tip: Some(head.clone()),
            new_tip: head.clone(),
            from: head,
        })
    }
}

impl BaselineWorld for RepoWorld<'_> {
    fn survey(&mut self, job: &Job) -> Result<GuardRun, Error> {
        let staying = self.staying(&job.run_id)?;
        let log = self.git.paths().baseline_log(job.run_id.as_str());
        let root = self.git.root().to_owned();
        log.parent().map_or(Ok(()), |folder| atomic::create_folders(&root, folder))?;
        atomic::remove_any(&log)?;
        journal::begin(&self.git.paths().journal(), &JournalEntry::Move(staying.clone()))?;
        let (verdict, _) = self.ask_guard(job, &log, Duration::from_secs(job.limits.iteration_secs))?;
        failpoint::reach("baseline.guard");
        if matches!(verdict, GuardRun::Interrupted { .. }) {
            publish::recover(&self.git, staying)?;
        }
        Ok(verdict)
    }

    fn record(&mut self, surveyed: &BaselineCommit) -> Result<IterationRecord, Error> {
        let staying = self.staying(&surveyed.run_id)?;
        let git = &self.git;
        let index = git.paths().private_index("commit");
        let bytes = surveyed.state.to_bytes();
        let commit = commit_doc(git, &index, &staying.from, (Doc::RunState, &bytes), &surveyed.message)?;
        failpoint::reach("baseline.commit");
        git.refresh_index(&index)?;
        let beside = worktree::beside(git, &index)?;
        atomic::prepare(git.root(), &git.paths().doc(Doc::RunState), &bytes)?;
        let moving = PublishEntry { new_tip: commit.clone(), ..staying };
        publish::publish(git, &moving, (&index, beside), &[Doc::RunState])?;
        self.left = KnownCleanState::behind(git, &moving, beside, bytes);
        self.made = Some(commit.clone());
        Ok(IterationRecord { commit })
    }
}
