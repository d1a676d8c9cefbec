//! Runs checks of passed tasks again, on the files of the last commit or of an earlier one.

use std::path::PathBuf;
use std::time::Duration;

use runner_core::commit_message::{CommitKind, MessageParts, Trailer};
use runner_core::model::checks::Check;
use runner_core::model::object_id::CommitId;
use runner_core::step::{
    CheckRun, Event, GuardJob, GuardOccasion, IterationWorld, LoadedRun, Outcome, PassedChecks, PastIteration,
};

use super::guard::{self, GuardInputs};
use super::laid_files::LaidFiles;
use super::recorded_guard;
use super::repo_world::RepoWorld;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic;
use crate::git::{Git, PathSet};
use crate::repo::journal::PublishEntry;
use crate::repo::publish;
use crate::repo::repo_guard::SessionRef;
use crate::repo::run_history::{RunSelector, run_history};
use crate::room::{Candidate, GuardRoom};

/// One run of a check of a passed task.
pub(super) struct Recheck<'a> {
    pub(super) run: &'a LoadedRun,
    pub(super) job: &'a GuardJob,
    pub(super) task: &'a PassedChecks,
    pub(super) check: &'a Check,
    /// The commit whose files it runs on.
    pub(super) at: &'a CommitId,
}

impl Recheck<'_> {
    pub(super) fn run(&self, world: &mut RepoWorld<'_>) -> Result<CheckRun, Error> {
        let Self { run, job, task, check, at } = *self;
        let git = world.repo.git();
        recorded_guard::begin(git, run, job)?;
        // The frozen files, whatever later sessions did to those that the pass committed.
        let laid = LaidFiles::of_task(git, &task.node, &task.task, &run.commit)?;
        let candidate = laid.candidate(git, at)?;
        let protected: PathSet =
            git.matching_in(at, &job.protection.files)?.union(&laid.paths()).cloned().collect();
        let log = self.new_log(git)?;
        let guard = recorded_guard::guard_config(job);
        let inputs = GuardInputs {
            guard: &guard,
            output_bytes: job.limits.guard_output_bytes,
            candidate: &candidate,
            session: SessionRef::of_guard(&job.run_id, run.snapshot.state.next_iter, &run.commit),
            protected: &protected,
            log: &log,
            wall: Duration::from_secs(u64::try_from(check.timeout_secs.get()).unwrap_or(u64::MAX)),
            laid: None,
        };
        if world.fresh_room.is_none() {
            let base = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
            world.room.at(git, &job.run_id, &job.guard, &base)?;
            if let Some(why) = world.room.take_reason() {
                world.announce(&Event::GuardInPlace { why });
            }
        }
        let git = world.repo.git();
        let base = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
        let room = match &mut world.fresh_room {
            Some(room) => room,
            None => world.room.at(git, &job.run_id, &job.guard, &base)?,
        };
        let result = match room {
            GuardRoom::Room(_) => guard::run_check(git, &world.programs, room, &inputs, check)?,
            GuardRoom::InPlace { .. } => {
                world.known = None;
                laid.lay(git)?;
                let result = guard::run_check(git, &world.programs, room, &inputs, check)?;
                laid.remove(git)?;
                // What the check changed must not reach the next one.
                publish::recover(git, PublishEntry::next_commit(&job.run_id, &run.commit, &run.commit))?;
                recorded_guard::begin(git, run, job)?;
                result
            }
        };
        failpoint::reach("recheck.run");
        Ok(result)
    }

    /// The path of an empty log. An earlier commit has none of its own: the last run of a check is the one on the last commit.
    fn new_log(&self, git: &Git) -> Result<PathBuf, Error> {
        let when = match self.job.occasion {
            GuardOccasion::Baseline | GuardOccasion::Milestone => "milestone",
            GuardOccasion::Final => "final",
        };
        let place = if *self.at == self.run.commit { "" } else { ".bisect" };
        let name = format!("{when}-{}-{}{place}.log", self.task.node, self.check.name);
        let log = git.paths().final_log(self.job.run_id.as_str()).with_file_name(name);
        log.parent().map_or(Ok(()), |folder| atomic::create_folders(git.root(), folder))?;
        atomic::remove_any(&log)?;
        Ok(log)
    }
}

/// The iterations of the run so far. In place, no other commit than the last one can be tried.
pub(super) fn past_iterations(
    world: &mut RepoWorld<'_>,
    run: &LoadedRun,
) -> Result<Vec<PastIteration>, Error> {
    let git = world.repo.git();
    let snapshot = &run.snapshot;
    let base = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
    let place = match &world.fresh_room {
        Some(room) => room,
        None => world.room.at(git, &snapshot.run_id, &snapshot.config.guard, &base)?,
    };
    if matches!(place, GuardRoom::InPlace { .. }) {
        return Ok(Vec::new());
    }
    let mut batch = git.batch()?;
    let run_id = snapshot.run_id.clone();
    let target = RunSelector { name: run_id.to_string(), run: run_id, tip: run.commit.clone(), after: None };
    let mut past = Vec::new();
    for entry in run_history(git, &mut batch, &target)?.entries {
        let text = String::from_utf8_lossy(&entry.message);
        let kind = CommitKind::parse(&entry.message);
        let is_passed = MessageParts::parse(&text).value(Trailer::Outcome) == Some(Outcome::Passed.as_str());
        if let Some(iter) = kind.iter() {
            let passed = kind.node().filter(|_| is_passed).cloned();
            past.push(PastIteration { iter, commit: entry.logged.id, passed });
        }
    }
    Ok(past)
}
