//! What runs before the first session on a task: its own checks, those of the tasks above it, and held-out ones. They must fail.

use serde::{Deserialize, Serialize};

use super::checks::{JobChecks, RedFirst, red_first};
use super::event::Event;
use super::heldout::{HeldoutId, HeldoutRun};
use super::outcome::StopReason;
use super::plan::{Job, SessionTarget};
use super::snapshot::Snapshot;
use super::{LoadedRun, World};
use crate::config::VacuousPolicy;
use crate::model::checks::{RedKind, RedRule, TaskProof};
use crate::model::heldout::{HeldoutCheck, HeldoutTask};

/// How checks ended before a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedResults {
    /// The checks of the task itself, if they ran.
    pub task: Option<TaskProof>,
    /// The checks of tasks above it that ran.
    pub above: Vec<TaskProof>,
    /// The held-out checks that ran, of the task and of those above it.
    pub heldout: Vec<HeldoutTask>,
}

/// What ran before a session.
pub(super) enum BeforeWork {
    Ready(RedResults),
    Stop(StopReason),
}

/// The checks of tasks above a session's task that have no red on record, from the root down. A task with parts is worked on by
/// many sessions: its checks run before the first of them.
pub(super) fn above(snapshot: &Snapshot, target: &SessionTarget) -> Vec<JobChecks> {
    let SessionTarget::Leaf(leaf) = target else { return Vec::new() };
    let path = snapshot.tree.path_to(leaf).unwrap_or_default();
    let above = path.iter().map(|node| &node.id).filter(|node| *node != leaf);
    let due = above.filter_map(|node| {
        let task = snapshot.node_files.checks.get(node)?.clone();
        let is_known = snapshot.state.proof_of(node).is_some_and(|proof| proof.digest == task.digest);
        let vacuous = snapshot.config.checks.vacuous;
        (!is_known).then(|| JobChecks { node: node.clone(), task, red: None, vacuous })
    });
    due.collect()
}

/// The held-out checks of a session's task and of those above it, from the root down.
pub(super) fn heldout(snapshot: &Snapshot, target: &SessionTarget) -> Vec<HeldoutTask> {
    let SessionTarget::Leaf(leaf) = target else { return Vec::new() };
    let path = snapshot.tree.path_to(leaf).unwrap_or_default();
    path.iter().filter_map(|node| snapshot.state.heldout_of(&node.id).cloned()).collect()
}

/// Runs every check that must fail before the session and has no red on record.
pub(super) fn run<W: World>(world: &mut W, run: &LoadedRun, job: &Job) -> Result<BeforeWork, W::Error> {
    let mut red = RedResults::default();
    for above in &job.task.above {
        let mut above_job = job.clone();
        above_job.task.checks = Some(above.clone());
        match red_first(world, run, &above_job)? {
            RedFirst::Ready(proof) => red.above.extend(proof),
            RedFirst::Stop(stop) => return Ok(BeforeWork::Stop(stop)),
        }
    }
    match red_first(world, run, job)? {
        RedFirst::Ready(proof) => red.task = proof,
        RedFirst::Stop(stop) => return Ok(BeforeWork::Stop(stop)),
    }
    for task in job.task.heldout.iter().filter(|task| task.is_red_due()) {
        let task = match run_heldout_red(world, run, task)? {
            Ok(task) => task,
            Err(stop) => return Ok(BeforeWork::Stop(stop)),
        };
        let unproven = task.unproven();
        if run.snapshot.config.checks.vacuous == VacuousPolicy::Stop && !unproven.is_empty() {
            let checks = unproven.into_iter().map(|red| red.name).collect();
            return Ok(BeforeWork::Stop(StopReason::VacuousChecks { node: task.node, checks }));
        }
        red.heldout.push(task);
    }
    Ok(BeforeWork::Ready(red))
}

/// Runs the held-out checks of a task before the work; those that must fail run twice.
pub fn run_heldout_red<W: World>(
    world: &mut W,
    run: &LoadedRun,
    task: &HeldoutTask,
) -> Result<Result<HeldoutTask, StopReason>, W::Error> {
    let mut checks = Vec::new();
    for check in &task.checks {
        let id = HeldoutId { node: &task.node, digest: task.digest, name: &check.name };
        let mut kind = None;
        let is_twice = |kind: RedKind| check.required == RedRule::Required && kind.is_proof();
        while kind.is_none() || kind.is_some_and(is_twice) {
            let ended = match world.run_heldout_at_tip(run, id)? {
                HeldoutRun::Ended { kind, .. } => kind,
                HeldoutRun::Interrupted { by } => return Ok(Err(StopReason::Interrupted { by })),
            };
            match kind {
                None => kind = Some(ended),
                // It differs from run to run.
                Some(first) if first != ended => kind = Some(RedKind::Broken),
                Some(_) => break,
            }
        }
        let (node, name) = (task.node.clone(), check.name.clone());
        world.announce(&Event::HeldoutEnded { node, check: name, red: kind, result: None });
        checks.push(HeldoutCheck { red: kind, ..check.clone() });
    }
    Ok(Ok(HeldoutTask { checks, ..task.clone() }))
}
