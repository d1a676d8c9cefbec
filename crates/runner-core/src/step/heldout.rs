//! Held-out checks in an iteration. The core knows their names and digests; the world has the folder and runs them, in a room that
//! is thrown away. What they print goes nowhere that a session can read.

use serde::{Deserialize, Serialize};

use super::event::Event;
use super::guard_place::GuardPlace;
use super::interpret::Claim;
use super::outcome::Interruption;
use super::plan::Job;
use super::{CheckEvidence, IterationWorld};
use crate::model::checks::{CheckName, CheckRed, RedKind};
use crate::model::digest::Sha256;
use crate::model::heldout::{HeldoutCheck, HeldoutRecord, HeldoutResult, HeldoutTask};
use crate::model::id::NodeId;

/// One held-out check, as far as a world needs it to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldoutId<'a> {
    pub node: &'a NodeId,
    /// The digest that the checks of the task must have.
    pub digest: Sha256,
    pub name: &'a CheckName,
}

/// One run of a held-out check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldoutRun {
    /// `kind` is what its end would mean before the work: only `green` is a success.
    Ended { kind: RedKind, place: GuardPlace },
    /// A signal interrupted the runner.
    Interrupted { by: Interruption },
}

/// The held-out checks of a task after an accepted `done`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HeldoutGreen {
    /// The task has none, or another check failed before them.
    #[default]
    Skipped,
    Ended {
        /// One result for each check, in their order.
        results: Vec<HeldoutEnd>,
        place: GuardPlace,
    },
    /// A signal interrupted the runner.
    Interrupted { by: Interruption },
}

/// How one held-out check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldoutEnd {
    pub name: CheckName,
    pub result: HeldoutResult,
}

impl HeldoutGreen {
    pub fn is_skipped(&self) -> bool {
        *self == Self::Skipped
    }

    /// Whether all succeeded, or there are none.
    pub fn is_green(&self) -> bool {
        match self {
            Self::Skipped => true,
            Self::Ended { results, .. } => results.iter().all(|end| end.result == HeldoutResult::Pass),
            Self::Interrupted { .. } => false,
        }
    }

    /// Where they ran, if they ran to their end.
    pub fn place(&self) -> Option<&GuardPlace> {
        match self {
            Self::Ended { place, .. } => Some(place),
            Self::Skipped | Self::Interrupted { .. } => None,
        }
    }

    pub(super) fn result_of(&self, name: &CheckName) -> Option<HeldoutResult> {
        match self {
            Self::Ended { results, .. } => results.iter().find(|end| end.name == *name).map(|end| end.result),
            Self::Skipped | Self::Interrupted { .. } => None,
        }
    }

    /// What the next session learns: the names of those that failed, and nothing else.
    pub(super) fn failure_text(&self) -> String {
        let Self::Ended { results, .. } = self else { return String::new() };
        let failed = results.iter().filter(|end| end.result == HeldoutResult::Fail);
        let names: Vec<String> = failed.map(|end| format!("Held-out check `{}` failed.", end.name)).collect();
        format!(
            "{}\n\nHeld-out checks are not in the repository, and what they print is not shown. Check every acceptance \
             criterion of the task yourself.",
            names.join("\n")
        )
    }
}

impl Job {
    /// The held-out checks of the task itself.
    pub fn own_heldout(&self) -> Option<&HeldoutTask> {
        let node = self.target.node()?;
        self.task.heldout.iter().find(|task| task.node == *node)
    }
}

impl CheckEvidence {
    /// The held-out checks of a job with a red on record, this iteration's or an earlier one's.
    fn heldout_task<'a>(&'a self, task: &'a HeldoutTask) -> &'a HeldoutTask {
        self.heldout_red.iter().find(|red| red.node == task.node).unwrap_or(task)
    }

    /// What a commit records about held-out checks: those that ran in its iteration.
    pub fn heldout_records(&self, job: &Job) -> Vec<HeldoutRecord> {
        let own = job.own_heldout().map(|task| &task.node);
        let mut records = Vec::new();
        for task in &job.task.heldout {
            let is_own = own == Some(&task.node);
            let has_red = self.heldout_red.iter().any(|red| red.node == task.node);
            if !(has_red || is_own && matches!(self.heldout, HeldoutGreen::Ended { .. })) {
                continue;
            }
            let record = |check: &HeldoutCheck| HeldoutRecord {
                node: task.node.clone(),
                name: check.name.clone(),
                red: check.red.unwrap_or(RedKind::Broken),
                result: self.heldout.result_of(&check.name).filter(|_| is_own),
                digest: task.digest,
            };
            records.extend(self.heldout_task(task).checks.iter().map(record));
        }
        records
    }

    /// How many held-out checks of the task went from red to green.
    pub(super) fn proven_heldout(&self, job: &Job) -> usize {
        let Some(task) = job.own_heldout() else { return 0 };
        let is_proven = |check: &&HeldoutCheck| {
            self.heldout.result_of(&check.name) == Some(HeldoutResult::Pass)
                && check.red.is_some_and(RedKind::is_proof)
        };
        self.heldout_task(task).checks.iter().filter(is_proven).count()
    }

    /// The held-out checks of the task that prove nothing, if any ran in this iteration.
    pub(super) fn unproven_heldout(&self, job: &Job) -> Vec<CheckRed> {
        let Some(task) = job.own_heldout().filter(|_| !self.heldout_records(job).is_empty()) else {
            return Vec::new();
        };
        self.heldout_task(task).unproven()
    }
}

/// Runs all held-out checks of a task on what its session left, even if one fails.
pub(super) fn run_green<W: IterationWorld>(
    world: &mut W,
    job: &Job,
    claim: &Claim,
    iteration: &mut W::Iteration,
) -> Result<HeldoutGreen, W::Error> {
    let Some(task) = job.own_heldout() else { return Ok(HeldoutGreen::Skipped) };
    let mut results = Vec::new();
    let mut last_place = None;
    for check in &task.checks {
        let id = HeldoutId { node: &task.node, digest: task.digest, name: &check.name };
        let (kind, place) = match world.run_heldout(iteration, job, id, &claim.restored_before_guard())? {
            HeldoutRun::Ended { kind, place } => (kind, place),
            HeldoutRun::Interrupted { by } => return Ok(HeldoutGreen::Interrupted { by }),
        };
        let result = HeldoutResult::of(kind);
        let (node, name) = (task.node.clone(), check.name.clone());
        world.announce(&Event::HeldoutEnded { node, check: name, red: None, result: Some(result) });
        results.push(HeldoutEnd { name: check.name.clone(), result });
        last_place = Some(place);
    }
    Ok(match last_place {
        Some(place) => HeldoutGreen::Ended { results, place },
        None => HeldoutGreen::Skipped,
    })
}
