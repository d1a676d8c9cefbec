//! Runs the guard on the files of the last commit, before a run's first session or after its last one, and commits what it and
//! the checks of passed tasks showed.

use std::path::PathBuf;
use std::time::Duration;

use runner_core::config::GuardConfig;
use runner_core::layout::Doc;
use runner_core::model::id::IterationNumber;
use runner_core::model::object_id::CommitId;
use runner_core::runs::start::DocSet;
use runner_core::step::{
    Event, GuardExit, GuardJob, GuardOccasion, GuardRecord, GuardRun, IterationWorld, LoadedRun,
    RecordContent, RecordFile, RegressionTask,
};

use super::guard::{self, GuardInputs, TimedGuardRun};
use super::known_state::KnownState;
use super::repo_world::RepoWorld;
use super::room_proposal;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{EntryMode, Git, Head, IndexEntry, TreeEntry};
use crate::repo::commit_scope::check_scope;
use crate::repo::documents::{commit_docs, store_docs};
use crate::repo::journal::{self, JournalEntry, PublishEntry};
use crate::repo::publish::{self, PreparedCommit};
use crate::repo::repo_guard::SessionRef;
use crate::repo::worktree::{self, WorktreeState};
use crate::room::{Candidate, GuardRoom};

/// Runs the guard. Unless it gave a result to commit, everything is as it was before.
pub(super) fn run(world: &mut RepoWorld<'_>, run: &LoadedRun, job: &GuardJob) -> Result<GuardRun, Error> {
    let git = world.repo.git();
    let log = new_log(git, job)?;
    begin(git, run, job)?;
    let candidate = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
    let protected = git.matching_in(&run.commit, &job.protection.files)?;
    world.room.at(git, &job.run_id, &job.guard, &candidate)?;
    if let Some(why) = world.room.take_reason() {
        world.announce(&Event::GuardInPlace { why });
    }
    let git = world.repo.git();
    let guard = guard_config(job);
    let inputs = GuardInputs {
        guard: &guard,
        output_bytes: job.limits.guard_output_bytes,
        candidate: &candidate,
        session: SessionRef::of_guard(&job.run_id, run.snapshot.state.next_iter, &run.commit),
        protected: &protected,
        log: &log,
        wall: Duration::from_secs(job.limits.iteration_secs),
        laid: None,
    };
    let TimedGuardRun { run: result, .. } = match job.occasion {
        GuardOccasion::Baseline | GuardOccasion::Milestone => {
            let room = world.room.at(git, &job.run_id, &job.guard, &candidate)?;
            let result = guard::run(git, &world.programs, room, &inputs)?;
            // No session ran before the first baseline: what it leaves comes from the user's own files. Later, only a guard
            // that succeeded is accepted.
            if run.snapshot.state.next_iter == IterationNumber::FIRST || !has_failed(&result.run) {
                room.accept()?;
            }
            // Without something that it waits for, a guard may hang in the room.
            let is_red = has_failed(&result.run) || result.run == GuardRun::TimedOut;
            let is_proposed = is_red && matches!(room, GuardRoom::Room(_));
            if is_proposed && let Some(keys) = room_proposal::propose(git, &world.programs, job, &inputs)? {
                world.announce(&Event::RoomProposal { command: job.guard.command.clone(), keys });
            }
            result
        }
        GuardOccasion::Final => {
            let room = GuardRoom::fresh(git, &job.run_id, &guard, &candidate)?;
            guard::run(git, &world.programs, world.fresh_room.insert(room), &inputs)?
        }
    };
    failpoint::reach("recorded_guard.run");
    if !is_committed(job.occasion, &result) {
        discard(world, run, job)?;
    }
    Ok(result)
}

/// Writes the journal: a publication of the current commit. After a crash, recovery restores what guard or checks changed, and
/// keeps a copy.
pub(super) fn begin(git: &Git, run: &LoadedRun, job: &GuardJob) -> Result<(), Error> {
    let current = PublishEntry::next_commit(&job.run_id, &run.commit, &run.commit);
    journal::begin(&git.paths().journal(), &JournalEntry::Publish(current))
}

/// Ends a recorded run without a commit: everything is as it was before.
pub(super) fn discard(world: &mut RepoWorld<'_>, run: &LoadedRun, job: &GuardJob) -> Result<(), Error> {
    remove_fresh_room(world)?;
    let current = PublishEntry::next_commit(&job.run_id, &run.commit, &run.commit);
    publish::recover(world.repo.git(), current).map(drop)
}

fn remove_fresh_room(world: &mut RepoWorld<'_>) -> Result<(), Error> {
    match world.fresh_room.take() {
        Some(room) => {
            drop(room);
            atomic::remove_any(&world.repo.git().paths().fresh_room())
        }
        None => Ok(()),
    }
}

/// How guard and checks run on this occasion.
pub(super) fn guard_config(job: &GuardJob) -> GuardConfig {
    GuardConfig { ignored: job.occasion.ignored_files(&job.guard), ..job.guard.clone() }
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
        GuardOccasion::Baseline | GuardOccasion::Milestone => git.paths().baseline_log(job.run_id.as_str()),
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
    remove_fresh_room(world)?;
    if let Some(task) = &record.regression {
        return commit_with_task(world, run, record, task);
    }
    let git = world.repo.git();
    let index = git.paths().private_index("commit");
    let state = record.state.to_bytes();
    let docs = DocSet::from([(Doc::RunState, state.clone())]);
    let commit = commit_docs(git, &index, &run.commit, &docs, &record.message)?;
    failpoint::reach("recorded_guard.commit");
    git.mark_absent_files(&index)?;
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

/// Commits a record that adds a task with its checks. The work tree is first as it was before the checks.
fn commit_with_task(
    world: &mut RepoWorld<'_>,
    run: &LoadedRun,
    record: &GuardRecord,
    task: &RegressionTask,
) -> Result<CommitId, Error> {
    world.known = None;
    let git = world.repo.git();
    let current = PublishEntry::next_commit(&record.run_id, &run.commit, &run.commit);
    publish::recover(git, current)?;
    let index = git.paths().private_index("commit");
    let docs =
        DocSet::from([(Doc::RunState, record.state.to_bytes()), (Doc::Tree, task.tree.bytes().to_vec())]);
    git.read_into_index(&index, &run.commit)?;
    let mut edits = store_docs(git, &docs)?;
    for file in &task.files {
        edits.extend(added_file(git, &run.commit, file)?);
    }
    git.edit_index(&index, &edits)?;
    let tree = git.write_tree(&index)?;
    let commit = git.store_commit(&tree, &run.commit, &record.message)?;
    check_scope(git, &run.commit, &commit)?;
    atomic::remove_file(&index)?;
    failpoint::reach("recorded_guard.commit");
    let entry = PublishEntry::next_commit(&record.run_id, &run.commit, &commit);
    publish::publish_by_checkout(git, &entry)?;
    Ok(commit)
}

/// The index entry of a file that a record adds.
fn added_file(git: &Git, commit: &CommitId, file: &RecordFile) -> Result<Option<IndexEntry>, Error> {
    let path = file.path.clone().into_bytes();
    Ok(match &file.content {
        RecordContent::Bytes(bytes) => {
            let object = git.store_blob(bytes)?;
            Some(IndexEntry::Put(TreeEntry { mode: EntryMode::File, object, path }))
        }
        RecordContent::CopyOf(source) => {
            let found =
                git.files_of(commit, source)?.into_iter().find(|entry| entry.path == source.as_bytes());
            found.map(|entry| IndexEntry::Put(TreeEntry { path, ..entry }))
        }
    })
}
