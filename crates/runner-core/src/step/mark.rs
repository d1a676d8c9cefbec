//! Marks: what was lawful or undone, and should still be seen by whoever trusts the result.

use schemars::JsonSchema;
use std::fmt;

use serde::Serialize;

use super::attempt::Work;
use super::interpret::Claim;
use super::merge::{Edit, PlanEdit};
use super::outcome::{Nature, Outcome};
use super::plan::Job;
use super::settle::Ruling;
use crate::repo_path::RepoPath;

/// One mark on an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "mark", rename_all = "snake_case")]
pub enum Mark {
    /// A protected file was changed and put back.
    GuardFileRestored { path: RepoPath },
    /// A protected file was changed, and the policy lets it pass.
    GuardFileChanged { path: RepoPath },
    /// A guard file that is younger than the run took part in its first pass and is pinned from now on.
    GuardFileCreated { path: RepoPath },
    /// More guard files than are named one by one.
    GuardFilesUnnamed { count: usize },
    /// The plan was edited: so many nodes, by kind of edit.
    PlanEdited { added: usize, removed: usize, moved: usize, reordered: usize, reworded: usize },
    /// The session changed what its own node asks for.
    SelectedReworded,
    /// The repairs of a rejected tree ran out, and the run goes on from the last valid one.
    RepairGivenUp,
    /// Nothing changed, neither in the plan nor outside `.runner/`.
    NothingChanged,
}

/// How many guard files are named one by one.
const FILES_MAX: usize = 20;

impl Mark {
    /// The commit trailer that carries it.
    pub(super) fn trailer(&self) -> &'static str {
        match self {
            Self::GuardFileRestored { .. }
            | Self::GuardFileChanged { .. }
            | Self::GuardFileCreated { .. }
            | Self::GuardFilesUnnamed { .. } => "Runner-Guard-Mark",
            Self::PlanEdited { .. } | Self::SelectedReworded | Self::RepairGivenUp => "Runner-Plan-Mark",
            Self::NothingChanged => "Runner-Work-Mark",
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GuardFileRestored { path } => write!(f, "restored {path}"),
            Self::GuardFileChanged { path } => write!(f, "changed {path}"),
            Self::GuardFileCreated { path } => write!(f, "created {path}"),
            Self::GuardFilesUnnamed { count } => write!(f, "and {count} more"),
            Self::PlanEdited { added, removed, moved, reordered, reworded } => write!(
                f,
                "edited added={added} removed={removed} moved={moved} reordered={reordered} reworded={reworded}"
            ),
            Self::SelectedReworded => f.write_str("selected-reworded"),
            Self::RepairGivenUp => f.write_str("repair-given-up"),
            Self::NothingChanged => f.write_str("nothing-changed"),
        }
    }
}

/// All marks on an iteration, in a fixed order.
pub(super) fn marks(job: &Job, claim: &Claim, ruling: &Ruling<'_>) -> Vec<Mark> {
    let protected = &claim.protected;
    let created: &[RepoPath] = if ruling.outcome == Outcome::Passed { &protected.unpinned } else { &[] };
    let restored = protected.restore.iter().map(|path| Mark::GuardFileRestored { path: path.clone() });
    let changed = protected.flagged.iter().map(|path| Mark::GuardFileChanged { path: path.clone() });
    let created = created.iter().map(|path| Mark::GuardFileCreated { path: path.clone() });
    let mut marks: Vec<Mark> = restored.chain(changed).chain(created).collect();
    let unnamed = marks.len().saturating_sub(FILES_MAX);
    marks.truncate(FILES_MAX);
    marks.extend((unnamed > 0).then_some(Mark::GuardFilesUnnamed { count: unnamed }));
    marks.extend(plan_marks(job, ruling.edits));
    marks.extend((ruling.outcome == Outcome::RepairGivenUp).then_some(Mark::RepairGivenUp));
    let idle = ruling.edits.is_empty() && claim.work == Work::Decompose;
    let answered = ruling.outcome.nature() == Nature::Answered;
    marks.extend((idle && answered).then_some(Mark::NothingChanged));
    marks
}

fn plan_marks(job: &Job, edits: &[PlanEdit]) -> Vec<Mark> {
    let count = |wanted: fn(&Edit) -> bool| edits.iter().filter(|edit| wanted(&edit.edit)).count();
    let is_reworded = |edit: &Edit| matches!(edit, Edit::Title | Edit::Goal | Edit::Acceptance);
    let edited = (!edits.is_empty()).then(|| Mark::PlanEdited {
        added: count(|edit| matches!(edit, Edit::Added { .. })),
        removed: count(|edit| matches!(edit, Edit::Removed { .. })),
        moved: count(|edit| matches!(edit, Edit::Moved { .. })),
        reordered: count(|edit| matches!(edit, Edit::Reordered { .. })),
        reworded: count(is_reworded),
    });
    let asks_otherwise = |edit: &PlanEdit| {
        job.aim.node() == Some(&edit.node) && matches!(edit.edit, Edit::Goal | Edit::Acceptance)
    };
    let selected = edits.iter().any(asks_otherwise).then_some(Mark::SelectedReworded);
    edited.into_iter().chain(selected).collect()
}
