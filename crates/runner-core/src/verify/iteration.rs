//! Checks one iteration: settles it again from what its commit records, and compares.

use std::collections::BTreeSet;

use super::auditor::Auditor;
use super::checks;
use super::compare::{self, Difference, PromptCheck, shown};
use super::reconstruct::{self, AnnotatedFiles, RecordedFacts, reconstruct};
use super::snapshot::{self, is_runner_path};
use super::{AuditedCommit, FileAfter, Rule};
use crate::commit_message::{CommitKind, IterationTarget, MessageParts, Trailer};
use crate::config::{ProtectPolicy, RoomMode};
use crate::layout::{Doc, DocOwner};
use crate::model::agent_output::AgentStatus;
use crate::model::checks::CheckRecord;
use crate::model::object_id::TreeId;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;
use crate::prompt;
use crate::runs::edit::added_questions;
use crate::step::{
    Annotation, FileChanges, GuardExit, GuardPlace, Job, KeyReport, Outcome, ProtectedPath, RoomLevel,
    SessionFinding, SessionTarget, Snapshot, Transition, settle, target_name,
};

/// The documents that the runner itself changes in every iteration.
const DOCUMENTS: [Doc; 2] = [Doc::Tree, Doc::RunState];

/// An iteration's commit, with everything that it follows from.
pub(super) struct IterationAudit<'a> {
    pub(super) auditor: &'a Auditor,
    pub(super) commit: &'a AuditedCommit,
    pub(super) text: &'a str,
    pub(super) status: AgentStatus,
    pub(super) snapshot: &'a Snapshot,
    pub(super) job: &'a Job,
    /// The committed tree and state.
    pub(super) tree: &'a Tree,
    pub(super) state: &'a RunState,
}

/// The protected paths of an iteration.
struct ProtectedPaths {
    paths: Vec<ProtectedPath>,
    /// Those that the runner restored.
    restored: Vec<RepoPath>,
}

impl IterationAudit<'_> {
    /// Settles the iteration again and compares tree, state and message.
    pub(super) fn differences(&self, unchecked: &mut Vec<String>) -> Vec<Difference> {
        let parts = MessageParts::parse(self.text);
        let word = parts.value(Trailer::Outcome).unwrap_or_default();
        let Some(outcome) = Outcome::from_name(word) else {
            let found = format!("{}: {}", Trailer::Outcome, shown(word));
            return vec![Difference::new(Rule::Outcome, "one of the outcomes", found)];
        };
        let protected = self.protected_paths(&parts, outcome);
        let records: Vec<CheckRecord> = parts.values(Trailer::Check).filter_map(CheckRecord::parse).collect();
        let changes = self.file_changes(&protected.restored);
        let facts = RecordedFacts {
            outcome,
            status: self.status,
            guard_exit: parts.value(Trailer::GuardExit).and_then(GuardExit::parse),
            place: self.guard_place(&parts),
            tree: snapshot::doc(&self.auditor.files, Doc::Tree).unwrap_or_default(),
            state: self.state,
            changes,
            protected: protected.paths,
            checks: &records,
            annotated: self.annotated_files(&parts),
        };
        let session = reconstruct(self.snapshot, self.job, &facts, self.new_questions());
        let transition = settle(self.snapshot, self.job, &session.claim, &session.evidence);
        let mut of_checks = checks::red_differences(self.job, &records);
        of_checks.extend(checks::green_differences(&session.evidence.checks, outcome));
        of_checks.extend(checks::file_differences(self.commit, self.job, outcome));
        if !of_checks.is_empty() {
            return of_checks;
        }
        if transition.outcome == outcome {
            return self.transition_differences(&transition, prompt_check(&parts, unchecked));
        }
        // The recorded outcome cannot follow from the recorded results: name the violated rules, if that is the reason.
        match &session.claim.finding {
            SessionFinding::RuleViolations { violations, .. } if !violations.is_empty() => {
                violations.iter().map(compare::violation).collect()
            }
            SessionFinding::RuleViolations { .. }
            | SessionFinding::InvalidTree { .. }
            | SessionFinding::NoAnswer { .. }
            | SessionFinding::Accepted { .. } => {
                let line = |outcome: Outcome| format!("{}: {outcome}", Trailer::Outcome);
                let is_confirmation =
                    transition.outcome == Outcome::Unconfirmed && outcome == Outcome::Passed;
                let is_of_review = [outcome, transition.outcome]
                    .iter()
                    .any(|outcome| matches!(outcome, Outcome::ReviewFailed | Outcome::ReviewRefused));
                let rule = if is_confirmation {
                    Rule::Confirmation
                } else if is_of_review {
                    Rule::Review
                } else {
                    Rule::Outcome
                };
                vec![Difference::new(rule, line(transition.outcome), line(outcome))]
            }
        }
    }

    /// How many questions a planning session added.
    fn new_questions(&self) -> u32 {
        if !matches!(self.job.target, SessionTarget::Plan(_)) {
            return 0;
        }
        let after = snapshot::doc(&self.auditor.files, Doc::Questions).unwrap_or_default();
        added_questions(self.snapshot.memory.questions.as_bytes(), after)
    }

    /// How many files the session changed: those that the commit changes, and those that the runner restored.
    fn file_changes(&self, restored: &[RepoPath]) -> FileChanges {
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let changes = &self.commit.changes;
        let destinations: Vec<Vec<u8>> = self.job.destinations().iter().map(RepoPath::to_bytes).collect();
        let is_work = |path: &[u8]| !is_runner_path(path) && !destinations.iter().any(|file| file == path);
        let of_work = changes.iter().filter(|change| is_work(&change.path)).count();
        let restored = restored.iter().filter(|path| is_work(&path.to_bytes())).count();
        let is_document = |path: &[u8]| DOCUMENTS.iter().any(|doc| doc.path().as_bytes() == path);
        let of_runner = changes
            .iter()
            .filter(|change| is_runner_path(&change.path) && !is_document(&change.path))
            .count();
        FileChanges { work_files: count(of_work.saturating_add(restored)), runner_files: count(of_runner) }
    }

    /// Where the guard ran, as far as the commit can be right: at the recorded level if the configuration allows it, on the
    /// tree that the commit holds.
    fn guard_place(&self, parts: &MessageParts<'_>) -> GuardPlace {
        let recorded = parts.value(Trailer::Room).and_then(RoomLevel::parse);
        let allowed = match self.job.guard.room {
            RoomMode::InPlace => RoomLevel::InPlace,
            RoomMode::Auto | RoomMode::Require => RoomLevel::Bubblewrap { ignored: self.job.guard.ignored },
        };
        GuardPlace {
            room: recorded.filter(|level| level.is_allowed(&self.job.guard)).unwrap_or(allowed),
            candidate: self.commit.candidate.clone().unwrap_or_else(TreeId::none),
        }
    }

    fn transition_differences(&self, transition: &Transition, prompt: PromptCheck) -> Vec<Difference> {
        let mut documents: Vec<Difference> = Vec::new();
        documents.extend(compare::trees(&self.snapshot.tree, &transition.tree, self.tree));
        documents.extend(compare::states(&transition.state, self.state));
        let mut first = Vec::new();
        let mut last = Vec::new();
        for difference in compare::messages(&transition.message, self.text, prompt) {
            let is_digest = matches!(difference.rule, Rule::TreeDigest | Rule::StateDigest);
            if matches!(difference.rule, Rule::Status | Rule::Guard | Rule::Outcome) {
                first.push(difference);
            } else if documents.is_empty() || !is_digest {
                // The digest of a wrong document is not a further violation.
                last.push(difference);
            }
        }
        first.into_iter().chain(documents).chain(last).collect()
    }

    /// The protected paths as the host would have reported them at the end of the session.
    fn protected_paths(&self, parts: &MessageParts<'_>, outcome: Outcome) -> ProtectedPaths {
        let auditor = self.auditor;
        let deleted = self.commit.changes.iter().filter(|change| change.now == FileAfter::Deleted);
        let mut candidates: BTreeSet<&[u8]> = auditor.protected.iter().map(Vec::as_slice).collect();
        candidates.extend(deleted.map(|change| change.path.as_slice()));
        let mut paths = Vec::new();
        for path in candidates {
            let reported = ProtectedPath {
                path: RepoPath::of_bytes(path),
                existed_at_start: auditor.is_pinned(path) && !self.became_pinned(path),
                changed: self.commit.changes.iter().any(|change| change.path == path),
                exists: auditor.protected.contains(path),
            };
            // A pinned file that was restored is unchanged in the commit; one that was not is a violation of its own.
            let is_flagged = reported.changed && self.job.guard.protect == ProtectPolicy::Flag;
            if !reported.existed_at_start || is_flagged {
                paths.push(reported);
            }
        }
        let created = paths.iter().filter(|path| !path.existed_at_start && path.exists).count();
        let flagged = paths.iter().filter(|path| path.existed_at_start).count();
        let others = flagged + if outcome == Outcome::Passed { created } else { 0 };
        let annotations: Vec<Annotation> = parts.values(Trailer::Annotation).map(Annotation::parse).collect();
        let history = self.job.target.node().and_then(|node| self.state.history_of(node));
        let restored = reconstruct::restored_files(&annotations, others, history);
        for path in &restored {
            paths.push(ProtectedPath {
                path: path.clone(),
                existed_at_start: auditor.is_pinned(&path.to_bytes()) || reconstruct::is_unnamed(path),
                changed: true,
                exists: true,
            });
        }
        ProtectedPaths { paths, restored }
    }

    /// The files that annotations name and nothing else shows: documents that agents write to, and files that the commit has
    /// changed.
    fn annotated_files(&self, parts: &MessageParts<'_>) -> AnnotatedFiles {
        let annotations: Vec<Annotation> = parts.values(Trailer::Annotation).map(Annotation::parse).collect();
        let is_document = |path: &RepoPath| Doc::at(&path.to_bytes()).is_some_and(Doc::is_for_agents);
        let is_committed = |path: &RepoPath| {
            let bytes = path.to_bytes();
            let mut changes = self.commit.changes.iter();
            changes.any(|change| change.path == bytes && change.now != FileAfter::Deleted)
        };
        let mut keys = KeyReport::default();
        for annotation in &annotations {
            if let Annotation::KeyRedacted { path } = annotation
                && is_document(path)
            {
                keys.redacted.push(path.clone());
            }
            if let Annotation::KeyCommitted { path } = annotation
                && is_committed(path)
            {
                keys.committed.push(path.clone());
            }
        }
        keys.committed.truncate(KeyReport::FILES_MAX);
        AnnotatedFiles { memory: restored_memory(&annotations), keys }
    }

    /// Whether the commit itself pinned the file, where the start cannot be reached to compare with.
    fn became_pinned(&self, path: &[u8]) -> bool {
        let path = RepoPath::of_bytes(path);
        self.auditor.is_start_unreachable()
            && self.state.pinned.contains(&path)
            && !self.snapshot.state.pinned.contains(&path)
    }
}

/// The memory files that the annotations name, in the order of the documents.
fn restored_memory(annotations: &[Annotation]) -> Vec<RepoPath> {
    let memory = Doc::ALL.into_iter().filter(|doc| doc.owner() == DocOwner::Memory);
    let paths = memory.map(|doc| RepoPath::of_bytes(doc.path().as_bytes()));
    paths.filter(|path| annotations.contains(&Annotation::MemoryRestored { path: path.clone() })).collect()
}

/// Whether the prompt can be derived; notes it where the commit names other templates.
fn prompt_check(parts: &MessageParts<'_>, unchecked: &mut Vec<String>) -> PromptCheck {
    match parts.value(Trailer::PromptVersion) {
        Some(version) if version != prompt::template_version() => {
            unchecked.push("the prompt, which was made from other templates".to_owned());
            PromptCheck::OtherTemplates
        }
        Some(_) | None => PromptCheck::Derivable,
    }
}

/// Compares number and target of the planned session with those in the subject.
pub(super) fn subject_differences(job: &Job, kind: &CommitKind) -> Vec<Difference> {
    let CommitKind::Iteration { iter, target, .. } = kind else { return Vec::new() };
    let mut differences = Vec::new();
    if *iter != job.iteration {
        let expected = format!("iter {}", job.iteration);
        differences.push(Difference::new(Rule::Numbering, expected, format!("iter {iter}")));
    }
    let expected = target_name(&job.target);
    if expected != *target {
        let text = |target: &IterationTarget| match target {
            IterationTarget::Node(node) => format!("node {node}"),
            IterationTarget::Repair => "repair".to_owned(),
            IterationTarget::Plan => "plan".to_owned(),
        };
        differences.push(Difference::new(Rule::Selection, text(&expected), text(target)));
    }
    differences
}
