//! Annotations: what is valid or was undone in an iteration, and should still be seen by a reader who trusts the result.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attempt::ChangeScope;
use super::guard_place::RoomLevel;
use super::merge::EditKind;
use super::outcome::{Outcome, OutcomeClass};
use super::settle::Settling;
use crate::config::IgnoredFiles;
use crate::model::checks::{CheckFilePath, CheckName, CheckRed, RedKind};
use crate::model::repo_path::RepoPath;

/// One annotation of an iteration. `Display` gives its trailer: `guard-file-restored check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "annotation", rename_all = "snake_case")]
pub enum Annotation {
    /// The agent changed a protected file; the runner restored it.
    GuardFileRestored { path: RepoPath },
    /// The agent changed a protected file, and the policy "flag" allows it.
    GuardFileChanged { path: RepoPath },
    /// A guard file that is newer than the run took part in its first pass and is pinned from now on.
    GuardFileCreated { path: RepoPath },
    /// The agent changed checks of a task, or a check file at its destination; the runner restored it.
    CheckFileRestored { path: RepoPath },
    /// Further guard files that are not listed one by one.
    GuardFilesOmitted { count: usize },
    /// The agent changed earlier text of a memory file, which is append-only; the runner restored it.
    MemoryRestored { path: RepoPath },
    /// The agent wrote a key into a document of the run; the runner replaced it.
    KeyRedacted { path: RepoPath },
    /// A file of the commit contains what looks like a key.
    KeyCommitted { path: RepoPath },
    /// The agent edited the plan: how many nodes, by kind of edit.
    PlanEdited { added: usize, removed: usize, moved: usize, reordered: usize, reworded: usize },
    /// The agent changed the goal or the acceptance criteria of its own task.
    SelectedTaskEdited,
    /// A check that had to fail before the work did not, or gave no result: the task is unproven.
    CheckUnproven { check: CheckName, red: RedKind },
    /// The repairs of a rejected tree were used up; the run continues from the last valid one.
    RepairAbandoned,
    /// The agent answered and changed nothing, neither in the plan nor outside `.runner/`.
    NothingChanged,
    /// The task passed without a change to any file: two independent sessions answered `done`.
    ConfirmedUnchanged,
    /// The task passed without a review: the reviewer had refused it as often as it may.
    ReviewOverruled,
    /// The task passed by a guard that ran in the work tree, without a room.
    InPlace,
    /// The task passed by a guard that had the ignored files of the work tree, which are in no commit.
    IgnoredWorktree,
    /// An annotation that only a newer runner knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// How many guard files are listed one by one.
const FILES_MAX: usize = 20;

impl Annotation {
    /// Whether it is about the place of the guard, which is the same for all passes of a loop: once is enough there.
    pub fn is_about_place(&self) -> bool {
        matches!(self, Self::InPlace | Self::IgnoredWorktree)
    }

    /// The word that starts the trailer.
    fn kind(&self) -> &'static str {
        match self {
            Self::GuardFileRestored { .. } => "guard-file-restored",
            Self::GuardFileChanged { .. } => "guard-file-changed",
            Self::GuardFileCreated { .. } => "guard-file-created",
            Self::CheckFileRestored { .. } => "check-file-restored",
            Self::GuardFilesOmitted { .. } => "guard-files-omitted",
            Self::MemoryRestored { .. } => "memory-restored",
            Self::KeyRedacted { .. } => "key-redacted",
            Self::KeyCommitted { .. } => "key-committed",
            Self::PlanEdited { .. } => "plan-edited",
            Self::SelectedTaskEdited => "selected-task-edited",
            Self::CheckUnproven { .. } => "check-unproven",
            Self::RepairAbandoned => "repair-abandoned",
            Self::NothingChanged => "nothing-changed",
            Self::ConfirmedUnchanged => "confirmed-unchanged",
            Self::ReviewOverruled => "review-overruled",
            Self::InPlace => "in-place",
            Self::IgnoredWorktree => "ignored-worktree",
            Self::Unknown => "unknown",
        }
    }

    /// Parses the value of a trailer; [`Annotation::Unknown`] if this version does not know it.
    pub fn parse(value: &str) -> Self {
        Self::from_trailer(value).unwrap_or(Self::Unknown)
    }

    fn from_trailer(value: &str) -> Option<Self> {
        let (kind, details) = value.split_once(' ').unwrap_or((value, ""));
        // A path is serialized as it is written in the trailer.
        let path = || serde_json::from_value::<RepoPath>(details.into()).ok().filter(|_| !details.is_empty());
        let parsed = match kind {
            "guard-file-restored" => Self::GuardFileRestored { path: path()? },
            "guard-file-changed" => Self::GuardFileChanged { path: path()? },
            "guard-file-created" => Self::GuardFileCreated { path: path()? },
            "check-file-restored" => Self::CheckFileRestored { path: path()? },
            "guard-files-omitted" => Self::GuardFilesOmitted { count: details.parse().ok()? },
            "memory-restored" => Self::MemoryRestored { path: path()? },
            "key-redacted" => Self::KeyRedacted { path: path()? },
            "key-committed" => Self::KeyCommitted { path: path()? },
            "plan-edited" => plan_edited(details)?,
            "selected-task-edited" => Self::SelectedTaskEdited,
            "check-unproven" => check_unproven(details)?,
            "repair-abandoned" => Self::RepairAbandoned,
            "nothing-changed" => Self::NothingChanged,
            "confirmed-unchanged" => Self::ConfirmedUnchanged,
            "review-overruled" => Self::ReviewOverruled,
            "in-place" => Self::InPlace,
            "ignored-worktree" => Self::IgnoredWorktree,
            _ => return None,
        };
        (parsed.to_string() == value).then_some(parsed)
    }
}

fn check_unproven(details: &str) -> Option<Annotation> {
    let (check, red) = details.split_once(' ')?;
    let red = RedKind::ALL.into_iter().find(|kind| kind.as_str() == red)?;
    Some(Annotation::CheckUnproven { check: CheckName::new(check)?, red })
}

/// `added=1 removed=0 moved=0 reordered=0 reworded=2`.
fn plan_edited(details: &str) -> Option<Annotation> {
    let mut words = details.split(' ');
    let mut count = |key: &str| words.next()?.strip_prefix(key)?.strip_prefix('=')?.parse().ok();
    Some(Annotation::PlanEdited {
        added: count("added")?,
        removed: count("removed")?,
        moved: count("moved")?,
        reordered: count("reordered")?,
        reworded: count("reworded")?,
    })
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::GuardFileRestored { path }
            | Self::GuardFileChanged { path }
            | Self::GuardFileCreated { path }
            | Self::CheckFileRestored { path }
            | Self::KeyRedacted { path }
            | Self::KeyCommitted { path }
            | Self::MemoryRestored { path } => write!(f, "{kind} {path}"),
            Self::CheckUnproven { check, red } => write!(f, "{kind} {check} {red}"),
            Self::GuardFilesOmitted { count } => write!(f, "{kind} {count}"),
            Self::PlanEdited { added, removed, moved, reordered, reworded } => write!(
                f,
                "{kind} added={added} removed={removed} moved={moved} reordered={reordered} reworded={reworded}"
            ),
            Self::SelectedTaskEdited
            | Self::RepairAbandoned
            | Self::NothingChanged
            | Self::ConfirmedUnchanged
            | Self::ReviewOverruled
            | Self::InPlace
            | Self::IgnoredWorktree
            | Self::Unknown => f.write_str(kind),
        }
    }
}

impl Settling<'_> {
    /// All annotations of the iteration, in a fixed order.
    pub(super) fn annotations(&self) -> Vec<Annotation> {
        let outcome = self.decision.outcome;
        let mut annotations = self.guard_file_annotations();
        let memory = self.claim.protected.memory.iter();
        annotations.extend(memory.map(|path| Annotation::MemoryRestored { path: path.clone() }));
        annotations.extend(self.key_annotations());
        annotations.extend(self.plan_edited());
        if self.edits_selected_task() {
            annotations.push(Annotation::SelectedTaskEdited);
        }
        annotations.extend(self.unproven_checks());
        if outcome == Outcome::RepairAbandoned {
            annotations.push(Annotation::RepairAbandoned);
        }
        let is_unchanged = self.decision.edits.is_empty() && self.claim.work == ChangeScope::Decompose;
        // A planning session that asks something did what it should.
        let is_expected = outcome == Outcome::PlanQuestions;
        if is_unchanged && !is_expected && outcome.class() == OutcomeClass::Answered {
            annotations.push(Annotation::NothingChanged);
        }
        if self.decision.is_confirmed {
            annotations.push(Annotation::ConfirmedUnchanged);
        }
        if self.decision.is_overruled {
            annotations.push(Annotation::ReviewOverruled);
        }
        annotations.extend(self.weak_place());
        annotations
    }

    /// What a reader must know about the place in which the guard let the task pass.
    fn weak_place(&self) -> Option<Annotation> {
        if self.decision.outcome != Outcome::Passed {
            return None;
        }
        match self.evidence.guard.place()?.room {
            RoomLevel::InPlace => Some(Annotation::InPlace),
            RoomLevel::Bubblewrap { ignored: IgnoredFiles::Worktree } => Some(Annotation::IgnoredWorktree),
            RoomLevel::Bubblewrap { ignored: IgnoredFiles::Room | IgnoredFiles::None } => None,
        }
    }

    /// Where the session wrote keys. A file that the runner restored is not in the commit.
    fn key_annotations(&self) -> Vec<Annotation> {
        let protected = &self.claim.protected;
        let redacted =
            protected.keys.redacted.iter().map(|path| Annotation::KeyRedacted { path: path.clone() });
        let committed = protected.keys.committed.iter().filter(|path| !protected.restore.contains(path));
        redacted.chain(committed.map(|path| Annotation::KeyCommitted { path: path.clone() })).collect()
    }

    fn guard_file_annotations(&self) -> Vec<Annotation> {
        let protected = &self.claim.protected;
        let mut annotations = Vec::new();
        for path in &protected.restore {
            let is_check = CheckFilePath::parse(&path.to_bytes()).is_some();
            annotations.push(if is_check {
                Annotation::CheckFileRestored { path: path.clone() }
            } else {
                Annotation::GuardFileRestored { path: path.clone() }
            });
        }
        for path in &protected.check_files {
            annotations.push(Annotation::CheckFileRestored { path: path.clone() });
        }
        for path in &protected.flagged {
            annotations.push(Annotation::GuardFileChanged { path: path.clone() });
        }
        if self.decision.outcome == Outcome::Passed {
            for path in &protected.unpinned {
                annotations.push(Annotation::GuardFileCreated { path: path.clone() });
            }
        }
        let omitted = annotations.len().saturating_sub(FILES_MAX);
        annotations.truncate(FILES_MAX);
        if omitted > 0 {
            annotations.push(Annotation::GuardFilesOmitted { count: omitted });
        }
        annotations
    }

    /// The checks that prove nothing, in every iteration in which checks ran.
    fn unproven_checks(&self) -> Vec<Annotation> {
        let evidence = &self.evidence.checks;
        let mut unproven = Vec::new();
        if let Some(checks) = &self.job.task.checks
            && !evidence.records(Some(checks)).is_empty()
        {
            let proof = evidence.red.as_ref().or(checks.red.as_ref());
            unproven.extend(proof.map(|proof| checks.unproven(proof)).unwrap_or_default());
        }
        unproven.extend(evidence.unproven_heldout(self.job));
        unproven
            .into_iter()
            .map(|CheckRed { name: check, red, .. }| Annotation::CheckUnproven { check, red })
            .collect()
    }

    fn plan_edited(&self) -> Option<Annotation> {
        let edits = self.decision.edits;
        let count =
            |is_counted: fn(&EditKind) -> bool| edits.iter().filter(|edit| is_counted(&edit.edit)).count();
        (!edits.is_empty()).then(|| Annotation::PlanEdited {
            added: count(|edit| matches!(edit, EditKind::Added { .. })),
            removed: count(|edit| matches!(edit, EditKind::Removed { .. })),
            moved: count(|edit| matches!(edit, EditKind::Moved { .. })),
            reordered: count(|edit| matches!(edit, EditKind::Reordered { .. })),
            reworded: count(|edit| matches!(edit, EditKind::Title | EditKind::Goal | EditKind::Acceptance)),
        })
    }

    fn edits_selected_task(&self) -> bool {
        self.decision.edits.iter().any(|edit| {
            self.job.target.node() == Some(&edit.node)
                && matches!(edit.edit, EditKind::Goal | EditKind::Acceptance)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_parsed_as_it_was_written() {
        let path = RepoPath::of_bytes(b"a b\n");
        for annotation in [
            Annotation::GuardFileRestored { path: path.clone() },
            Annotation::GuardFileChanged { path: path.clone() },
            Annotation::GuardFileCreated { path: path.clone() },
            Annotation::MemoryRestored { path: path.clone() },
            Annotation::KeyRedacted { path: path.clone() },
            Annotation::KeyCommitted { path },
            Annotation::CheckFileRestored { path: RepoPath::of_bytes(b"tests/a.rs") },
            Annotation::CheckUnproven { check: CheckName::new("a").unwrap(), red: RedKind::Green },
            Annotation::GuardFilesOmitted { count: 7 },
            Annotation::PlanEdited { added: 3, removed: 0, moved: 1, reordered: 0, reworded: 2 },
            Annotation::SelectedTaskEdited,
            Annotation::RepairAbandoned,
            Annotation::NothingChanged,
            Annotation::ConfirmedUnchanged,
            Annotation::ReviewOverruled,
            Annotation::InPlace,
            Annotation::IgnoredWorktree,
        ] {
            assert_eq!(Annotation::parse(&annotation.to_string()), annotation);
        }
    }

    #[test]
    fn a_trailer_in_another_form_is_unknown() {
        for value in
            ["", "guard-file-restored", "guard-files-omitted 07", "plan-edited added=3", "nothing-changed x"]
        {
            assert_eq!(Annotation::parse(value), Annotation::Unknown, "{value}");
        }
    }
}
