//! Checks of passed tasks run again: at milestones, when a task with parts has passed, and in the final check. One that fails
//! reopens nothing: it becomes a task of its own, or stops the run.

use super::checks::CheckRun;
use super::event::Event;
use super::guard_place::GuardPlace;
use super::heldout::{HeldoutId, HeldoutRun};
use super::outcome::{Interruption, StopReason};
use super::recorded_guard::{GuardJob, GuardRecord, RecordResults};
use super::snapshot::Snapshot;
use super::{LoadedRun, StepResult, World};
use crate::checks::EndedCheck;
use crate::model::checks::{Check, CheckExit, TaskChecks};
use crate::model::heldout::{HeldoutResult, HeldoutTask};
use crate::model::id::{IterationNumber, NodeId};
use crate::model::object_id::{CommitId, TreeId};
use crate::model::ratchet::{CheckSource, Ratchet, RecheckRecord};
use crate::model::tree::{Node, Tree};

/// The checks of a passed task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedChecks {
    pub node: NodeId,
    pub task: TaskChecks,
}

/// An iteration of the run that is in git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastIteration {
    pub iter: IterationNumber,
    pub commit: CommitId,
    /// The task that passed in it.
    pub passed: Option<NodeId>,
}

/// How a step outside of an iteration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecordedEnd {
    /// The run goes on.
    Go,
    Stop(StopReason),
}

impl RecordedEnd {
    pub(super) fn into_result(self) -> StepResult {
        match self {
            Self::Go => StepResult::Rechecked,
            Self::Stop(stop) => StepResult::Stopped(stop),
        }
    }
}

/// The checks of all passed tasks, in the order of the plan.
pub(crate) fn passed_checks(snapshot: &Snapshot) -> Vec<PassedChecks> {
    fn collect(node: &Node, snapshot: &Snapshot, found: &mut Vec<PassedChecks>) {
        let checks = snapshot.node_files.checks.get(&node.id).filter(|_| node.passes);
        found.extend(checks.map(|task| PassedChecks { node: node.id.clone(), task: task.clone() }));
        node.children.iter().for_each(|child| collect(child, snapshot, found));
    }
    let mut found = Vec::new();
    collect(snapshot.tree.root(), snapshot, &mut found);
    found
}

/// The held-out checks of all passed tasks, in the order of their node ids.
pub(crate) fn passed_heldout(snapshot: &Snapshot) -> Vec<HeldoutTask> {
    let tasks = snapshot.state.heldout.iter();
    tasks.filter(|task| has_passed(&snapshot.tree, &task.node)).cloned().collect()
}

fn has_passed(tree: &Tree, id: &NodeId) -> bool {
    tree.path_to(id).is_some_and(|path| path.last().is_some_and(|node| node.passes))
}

/// Whether checks of passed tasks must run again before the next session.
pub(super) fn is_due(snapshot: &Snapshot) -> bool {
    let has_checks = || !passed_checks(snapshot).is_empty() || !passed_heldout(snapshot).is_empty();
    !snapshot.state.ratchet.due.is_empty() && has_checks()
}

/// What is due after an iteration: a task with parts passed, and it or an earlier task has checks. The final check follows the
/// last pass by itself.
pub(super) fn next_ratchet(snapshot: &Snapshot, tree: &Tree) -> Ratchet {
    let before = &snapshot.state.ratchet;
    let mut passed = Vec::new();
    newly_passed(tree.root(), &mut |node| {
        let is_last = node.id == tree.root().id && snapshot.config.guard.final_check;
        if !node.is_leaf() && !is_last && !has_passed(&snapshot.tree, &node.id) {
            passed.push(node.id.clone());
        }
    });
    let state = &snapshot.state;
    let has_checks = passed
        .iter()
        .any(|node| snapshot.node_files.checks.contains_key(node) || state.heldout_of(node).is_some());
    let is_checked = has_checks
        || state.proofs.iter().any(|proof| has_passed(&snapshot.tree, &proof.node))
        || state.heldout.iter().any(|task| has_passed(&snapshot.tree, &task.node));
    let due = if is_checked { [before.due.clone(), passed].concat() } else { before.due.clone() };
    Ratchet { due, tasks: before.tasks, regressed: Vec::new() }
}

fn newly_passed(node: &Node, found: &mut impl FnMut(&Node)) {
    if node.passes {
        found(node);
    }
    node.children.iter().for_each(|child| newly_passed(child, found));
}

/// Runs the checks of all passed tasks again after a task with parts passed, and commits the result.
pub(super) fn run_milestone<W: World>(
    world: &mut W,
    run: &LoadedRun,
    job: &GuardJob,
) -> Result<RecordedEnd, W::Error> {
    let (records, place) = match run_all(world, run, job)? {
        Rechecks::Ended { records, place } => (records, place),
        Rechecks::Interrupted { by } => {
            world.discard_guard_record(run, job)?;
            return Ok(RecordedEnd::Stop(StopReason::Interrupted { by }));
        }
    };
    let results = RecordResults {
        guard: None,
        room: place.map(|place| place.room),
        candidate: TreeId::none(),
        rechecks: records,
    };
    commit(world, run, job, &results)
}

/// Commits the results of a step outside of an iteration. Checks that failed become a task, or stop the run.
pub(super) fn commit<W: World>(
    world: &mut W,
    run: &LoadedRun,
    job: &GuardJob,
    results: &RecordResults,
) -> Result<RecordedEnd, W::Error> {
    let record = GuardRecord::new(job.occasion, &run.snapshot, results);
    world.commit_guard_record(run, &record)?;
    if let (Some(task), Some(red)) = (&record.regression, first_red(&results.rechecks)) {
        world.announce(&Event::RegressionAdded {
            task: task.node.clone(),
            node: red.node.clone(),
            check: red.name.clone(),
            broken_by: red.broken_by,
        });
        return Ok(RecordedEnd::Go);
    }
    Ok(regressed(&record.state.ratchet).map_or(RecordedEnd::Go, RecordedEnd::Stop))
}

fn first_red(records: &[RecheckRecord]) -> Option<&RecheckRecord> {
    records.iter().find(|record| !record.exit.is_green())
}

/// The stop of a run whose checks failed again and for which no task is added.
pub(crate) fn regressed(ratchet: &Ratchet) -> Option<StopReason> {
    let red = ratchet.regressed.first()?;
    Some(StopReason::Regressed { node: red.node.clone(), check: red.name.clone(), broken_by: red.broken_by })
}

/// The results of all checks that ran again.
pub(super) enum Rechecks {
    Ended { records: Vec<RecheckRecord>, place: Option<GuardPlace> },
    Interrupted { by: Interruption },
}

/// One check that ran on the files of a commit.
enum Rerun {
    Ended { exit: CheckExit, place: GuardPlace },
    Interrupted { by: Interruption },
}

/// Runs the checks of all passed tasks on the last commit, and finds the iterations that broke those that fail.
pub(super) fn run_all<W: World>(
    world: &mut W,
    run: &LoadedRun,
    job: &GuardJob,
) -> Result<Rechecks, W::Error> {
    let mut records = Vec::new();
    let mut last_place = None;
    for task in &job.checks {
        for check in &task.task.checks {
            let (node, name) = (task.node.clone(), check.name.clone());
            let command = check.command.clone();
            world.announce(&Event::RecheckStarted { node: node.clone(), check: name.clone(), command });
            let (exit, place) = match rerun(world, run, job, task, check, &run.commit)? {
                Rerun::Ended { exit, place } => (exit, place),
                Rerun::Interrupted { by } => return Ok(Rechecks::Interrupted { by }),
            };
            let broken_by = if exit.is_green() {
                None
            } else {
                match broken_by(world, run, job, task, check)? {
                    Blame::Found(iter) => iter,
                    Blame::Interrupted { by } => return Ok(Rechecks::Interrupted { by }),
                }
            };
            world.announce(&Event::RecheckEnded { node: node.clone(), check: name.clone(), exit, broken_by });
            let (digest, source) = (task.task.digest, CheckSource::Task);
            records.push(RecheckRecord { node, name, exit, digest, broken_by, source });
            last_place = Some(place);
        }
    }
    for task in &job.heldout {
        for check in &task.checks {
            let id = HeldoutId { node: &task.node, digest: task.digest, name: &check.name };
            let (result, place) = match world.run_heldout_at_tip(run, id)? {
                HeldoutRun::Ended { kind, place } => (HeldoutResult::of(kind), place),
                HeldoutRun::Interrupted { by } => return Ok(Rechecks::Interrupted { by }),
            };
            let (node, name) = (task.node.clone(), check.name.clone());
            let event = Event::HeldoutEnded {
                node: node.clone(),
                check: name.clone(),
                red: None,
                result: Some(result),
            };
            world.announce(&event);
            records.push(RecheckRecord {
                node,
                name,
                exit: result.to_exit(),
                digest: task.digest,
                broken_by: None,
                source: CheckSource::Heldout,
            });
            last_place = last_place.or(Some(place));
        }
    }
    Ok(Rechecks::Ended { records, place: last_place })
}

fn rerun<W: World>(
    world: &mut W,
    run: &LoadedRun,
    job: &GuardJob,
    task: &PassedChecks,
    check: &Check,
    at: &CommitId,
) -> Result<Rerun, W::Error> {
    Ok(match world.run_recheck(run, job, task, check, at)? {
        CheckRun::Ended { exit, output, junit, place, .. } => {
            // Later work may remove tests and add files: it is not compared with what was before this task.
            let ended =
                EndedCheck { check, exit, output: &output, junit: junit.as_deref(), redirects: Vec::new() };
            Rerun::Ended { exit: ended.verdict(None).exit, place }
        }
        CheckRun::Interrupted { by } => Rerun::Interrupted { by },
    })
}

enum Blame {
    Found(Option<IterationNumber>),
    Interrupted { by: Interruption },
}

/// The first iteration after which a check fails, from the one in which its task passed. None if the check succeeds after the
/// last iteration, so that the user's own commits broke it, or if earlier commits cannot be tried.
///
/// It is found by bisection: a check that failed, succeeded and failed again may be blamed on either iteration.
fn broken_by<W: World>(
    world: &mut W,
    run: &LoadedRun,
    job: &GuardJob,
    task: &PassedChecks,
    check: &Check,
) -> Result<Blame, W::Error> {
    let past = world.past_iterations(run)?;
    let is_below = |id: &NodeId| {
        let path = run.snapshot.tree.path_to(id).unwrap_or_default();
        path.iter().any(|node| node.id == task.node)
    };
    let passed = past.iter().rposition(|past| past.passed.as_ref().is_some_and(is_below));
    let past = past.get(passed.unwrap_or(past.len())..).unwrap_or_default();
    let mut is_red = |at: usize| -> Result<Result<bool, Interruption>, W::Error> {
        let Some(past) = past.get(at) else { return Ok(Ok(true)) };
        Ok(match rerun(world, run, job, task, check, &past.commit)? {
            Rerun::Ended { exit, .. } => Ok(!exit.is_green()),
            Rerun::Interrupted { by } => Err(by),
        })
    };
    let (mut first, mut last) = (0, past.len().saturating_sub(1));
    if past.is_empty() {
        return Ok(Blame::Found(None));
    }
    match is_red(last)? {
        Ok(true) => {}
        Ok(false) => return Ok(Blame::Found(None)),
        Err(by) => return Ok(Blame::Interrupted { by }),
    }
    while first < last {
        let middle = first.midpoint(last);
        match is_red(middle)? {
            Ok(true) => last = middle,
            Ok(false) => first = middle + 1,
            Err(by) => return Ok(Blame::Interrupted { by }),
        }
    }
    Ok(Blame::Found(past.get(first).map(|past| past.iter)))
}
