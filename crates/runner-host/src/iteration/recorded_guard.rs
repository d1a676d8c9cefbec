//! Runs the guard on the files of the last commit, before a run's first session or after its last one, and commits the result.

use std::path::PathBuf;
use std::time::Duration;

use runner_core::config::{GuardConfig, IgnoredFiles};
use runner_core::layout::Doc;
use runner_core::model::object_id::CommitId;
use runner_core::runs::start::DocSet;
use runner_core::step::{
    Event, GuardExit, GuardJob, GuardOccasion, GuardRecord, GuardRun, IterationWorld, LoadedRun,
};

use super::guard::{self, GuardInputs, TimedGuardRun};
use super::known_state::KnownState;
use super::repo_world::RepoWorld;
use super::room_proposal;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{Git, Head};
use crate::repo::documents::commit_docs;
use crate::repo::journal::{self, JournalEntry, PublishEntry};
use crate::repo::publish::{self, PreparedCommit};
use crate::repo::worktree::{self, WorktreeState};
use crate::room::{Candidate, GuardRoom};

/// Runs the guard. Unless it gave a result to commit, everything is as it was before.
pub(super) fn run(world: &mut RepoWorld<'_>, run: &LoadedRun, job: &GuardJob) -> Result<GuardRun, Error> {
    let git = world.repo.git();
    let log = new_log(git, job)?;
    // A publication of the current commit: after a crash, recovery restores what the guard changed and keeps a copy.
    let current = PublishEntry::next_commit(&job.run_id, &run.commit, &run.commit);
    journal::begin(&git.paths().journal(), &JournalEntry::Publish(current.clone()))?;
    let candidate = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
    let protected = git.matching_in(&run.commit, &job.protection.files)?;
    world.room.at(git, &job.run_id, &job.guard, &candidate)?;
    if let Some(why) = world.room.take_reason() {
        world.announce(&Event::GuardInPlace { why });
    }
    let git = world.repo.git();
    let guard = match job.occasion {
        GuardOccasion::Baseline => job.guard.clone(),
        GuardOccasion::Final => GuardConfig { ignored: IgnoredFiles::None, ..job.guard.clone() },
    };
    let inputs = GuardInputs {
        guard: &guard,
        output_bytes: job.limits.guard_output_bytes,
        candidate: &candidate,
        protected: &protected,
        log: &log,
        wall: Duration::from_secs(job.limits.iteration_secs),
    };
    let TimedGuardRun { run: result, .. } = match job.occasion {
        GuardOccasion::Baseline => {
            let room = world.room.at(git, &job.run_id, &job.guard, &candidate)?;
            let result = guard::run(git, &world.programs, room, &inputs)?;
            let is_proposed = has_failed(&result.run) && matches!(room, GuardRoom::Room(_));
            if is_proposed && let Some(keys) = room_proposal::propose(git, &world.programs, job, &inputs)? {
                world.announce(&Event::RoomProposal { command: job.guard.command.clone(), keys });
            }
            result
        }
        GuardOccasion::Final => {
            let mut room = GuardRoom::fresh(git, &job.run_id, &guard, &candidate)?;
            let result = guard::run(git, &world.programs, &mut room, &inputs);
            drop(room);
            atomic::remove_any(&git.paths().fresh_room())?;
            result?
        }
    };
    let git = world.repo.git();
    failpoint::reach("recorded_guard.run");
    if !is_committed(job.occasion, &result) {
        publish::recover(git, current)?;
    }
    Ok(result)
}

fn has_failed(guard: &GuardRun) -> bool {
    matches!(guard, GuardRun::Ended { exit, .. } if *exit != GuardExit::Code(0))
}

/// Whether [`commit`] follows. A baseline without a result is committed too: the first prompt mentions it.
fn is_committed(occasion: GuardOccasion, guard: &GuardRun) -> bool {
    match guard {
        GuardRun::Ended { .. } => true,
        GuardRun::Interrupted { .. } => false,
        GuardRun::Skipped | GuardRun::NotStarted { .. } | GuardRun::TimedOut => {
            occasion == GuardOccasion::Baseline
        }
    }
}

/// The path of an empty log.
fn new_log(git: &Git, job: &GuardJob) -> Result<PathBuf, Error> {
    let log = match job.occasion {
        GuardOccasion::Baseline => git.paths().baseline_log(job.run_id.as_str()),
        GuardOccasion::Final => git.paths().final_log(job.run_id.as_str()),
    };
    log.parent().map_or(Ok(()), |folder| atomic::create_folders(git.root(), folder))?;
    atomic::make_private(&git.paths().iterations());
    atomic::remove_any(&log)?;
    Ok(log)
}

pub(super) fn commit(
    world: &mut RepoWorld<'_>,
    run: &LoadedRun,
    record: &GuardRecord,
) -> Result<CommitId, Error> {
    let git = world.repo.git();
    let index = git.paths().private_index("commit");
    let state = record.state.to_bytes();
    let docs = DocSet::from([(Doc::RunState, state.clone())]);
    let commit = commit_docs(git, &index, &run.commit, &docs, &record.message)?;
    failpoint::reach("recorded_guard.commit");
    git.refresh_index(&index)?;
    let worktree = worktree::scan(git, &index)?;
    atomic::prepare(git.root(), &git.paths().doc(Doc::RunState), &state)?;
    let entry = PublishEntry::next_commit(&record.run_id, &run.commit, &commit);
    let prepared = PreparedCommit { entry: &entry, index, worktree, docs: &[Doc::RunState] };
    publish::publish_in_place(git, &prepared)?;
    world.known = (worktree == WorktreeState::Clean).then(|| KnownState {
        head: Head::Branch { name: record.run_id.branch(), commit: commit.clone() },
        index: atomic::stamp(&git.paths().index()),
        state,
        tree: run.snapshot.tree.clone(),
        tree_file: None,
        protected: None,
    });
    Ok(commit)
}
