//! Marks: what was lawful or undone, and should still be seen by whoever trusts the result.

use schemars::JsonSchema;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::attempt::ChangeScope;
use super::interpret::Claim;
use super::merge::{EditKind, PlanEdit};
use super::outcome::{Outcome, OutcomeClass};
use super::plan::Job;
use super::settle::Decision;
use crate::model::repo_path::RepoPath;

/// One mark on an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "annotation", rename_all = "snake_case")]
pub enum Annotation {
    /// A protected file was changed and put back.
    GuardFileRestored { path: RepoPath },
    /// A protected file was changed, and the policy lets it pass.
    GuardFileChanged { path: RepoPath },
    /// A guard file that is younger than the run took part in its first pass and is pinned from now on.
    GuardFileCreated { path: RepoPath },
    /// More guard files than are named one by one.
    GuardFilesOmitted { count: usize },
    /// The plan was edited: so many nodes, by kind of edit.
    PlanEdited { added: usize, removed: usize, moved: usize, reordered: usize, reworded: usize },
    /// The session changed what its own node asks for.
    SelectedTaskEdited,
    /// The repairs of a rejected tree ran out, and the run goes on from the last valid one.
    RepairAbandoned,
    /// Nothing changed, neither in the plan nor outside `.runner/`.
    NothingChanged,
    /// An annotation that only a newer runner knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// How many guard files are named one by one.
const FILES_MAX: usize = 20;

impl Annotation {
    /// The commit trailer that carries it.
    pub(super) fn trailer(&self) -> &'static str {
        match self {
            Self::GuardFileRestored { .. }
            | Self::GuardFileChanged { .. }
            | Self::GuardFileCreated { .. }
            | Self::GuardFilesOmitted { .. } => "Runner-Guard-Mark",
            Self::PlanEdited { .. } | Self::SelectedTaskEdited | Self::RepairAbandoned => "Runner-Plan-Mark",
            Self::NothingChanged | Self::Unknown => "Runner-Work-Mark",
        }
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GuardFileRestored { path } => write!(f, "restored {path}"),
            Self::GuardFileChanged { path } => write!(f, "changed {path}"),
            Self::GuardFileCreated { path } => write!(f, "created {path}"),
            Self::GuardFilesOmitted { count } => write!(f, "and {count} more"),
            Self::PlanEdited { added, removed, moved, reordered, reworded } => write!(
                f,
                "edited added={added} removed={removed} moved={moved} reordered={reordered} reworded={reworded}"
            ),
            Self::SelectedTaskEdited => f.write_str("selected-task-edited"),
            Self::RepairAbandoned => f.write_str("repair-abandoned"),
            Self::NothingChanged => f.write_str("nothing-changed"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// All marks on an iteration, in a fixed order.
pub(super) fn annotations(job: &Job, claim: &Claim, ruling: &Decision<'_>) -> Vec<Annotation> {
    let protected = &claim.protected;
    let created: &[RepoPath] = if ruling.outcome == Outcome::Passed { &protected.unpinned } else { &[] };
    let restored = protected.restore.iter().map(|path| Annotation::GuardFileRestored { path: path.clone() });
    let changed = protected.flagged.iter().map(|path| Annotation::GuardFileChanged { path: path.clone() });
    let created = created.iter().map(|path| Annotation::GuardFileCreated { path: path.clone() });
    let mut marks: Vec<Annotation> = restored.chain(changed).chain(created).collect();
    let unnamed = marks.len().saturating_sub(FILES_MAX);
    marks.truncate(FILES_MAX);
    marks.extend((unnamed > 0).then_some(Annotation::GuardFilesOmitted { count: unnamed }));
    marks.extend(plan_annotations(job, ruling.edits));
    marks.extend((ruling.outcome == Outcome::RepairAbandoned).then_some(Annotation::RepairAbandoned));
    let idle = ruling.edits.is_empty() && claim.work == ChangeScope::Decompose;
    let answered = ruling.outcome.class() == OutcomeClass::Answered;
    marks.extend((idle && answered).then_some(Annotation::NothingChanged));
    marks
}

fn plan_annotations(job: &Job, edits: &[PlanEdit]) -> Vec<Annotation> {
    let count = |wanted: fn(&EditKind) -> bool| edits.iter().filter(|edit| wanted(&edit.edit)).count();
    let is_reworded =
        |edit: &EditKind| matches!(edit, EditKind::Title | EditKind::Goal | EditKind::Acceptance);
    let edited = (!edits.is_empty()).then(|| Annotation::PlanEdited {
        added: count(|edit| matches!(edit, EditKind::Added { .. })),
        removed: count(|edit| matches!(edit, EditKind::Removed { .. })),
        moved: count(|edit| matches!(edit, EditKind::Moved { .. })),
        reordered: count(|edit| matches!(edit, EditKind::Reordered { .. })),
        reworded: count(is_reworded),
    });
    let asks_otherwise = |edit: &PlanEdit| {
        job.target.node() == Some(&edit.node) && matches!(edit.edit, EditKind::Goal | EditKind::Acceptance)
    };
    let selected = edits.iter().any(asks_otherwise).then_some(Annotation::SelectedTaskEdited);
    edited.into_iter().chain(selected).collect()
}
