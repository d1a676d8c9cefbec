//! One iteration, settled again from what its commit records, and compared with what the commit holds.

use std::collections::BTreeSet;

use super::auditor::Auditor;
use super::compare::{self, Difference, shown};
use super::reconstruct::{self, RecordedFacts, rebuild};
use super::record::{CommitKind, IterationTarget, MessageParts};
use super::snapshot::{self, is_runners};
use super::{AuditedCommit, FileAfter, Rule};
use crate::config::ProtectPolicy;
use crate::layout::Doc;
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;
use crate::prompt;
use crate::step::{
    ChangeScope, Job, Outcome, ProtectedPath, SessionFinding, SessionTarget, Snapshot, settle,
};

/// More files than any session puts back: a number in a message must not fill the memory.
const FILES_MAX: usize = 100_000;

/// One iteration with everything around it.
pub(super) struct IterationAudit<'a> {
    pub(super) auditor: &'a Auditor,
    pub(super) commit: &'a AuditedCommit,
    pub(super) snapshot: &'a Snapshot,
    pub(super) job: &'a Job,
    pub(super) text: &'a str,
}

impl IterationAudit<'_> {
    /// Settles the iteration again and compares tree, state and message.
    pub(super) fn settled(
        &self,
        kind: &CommitKind,
        tree: &Tree,
        state: &RunState,
        unchecked: &mut Vec<String>,
    ) -> Vec<Difference> {
        let parts = MessageParts::of(self.text);
        let word = parts.value("Runner-Outcome").unwrap_or_default();
        let Some(outcome) = Outcome::from_name(word) else {
            return vec![(
                Rule::Outcome,
                "one of the outcomes".to_owned(),
                format!("Runner-Outcome: {}", shown(word)),
            )];
        };
        let CommitKind::Iteration { status, .. } = kind else { return Vec::new() };
        let bytes = snapshot::doc(&self.auditor.files, Doc::Tree).unwrap_or_default();
        let guard_exit = parts.value("Runner-Guard-Exit").and_then(reconstruct::guard_exit);
        let (protected, restored) = self.protected(&parts, state, outcome);
        let touched = self.commit.changes.iter().any(|change| !is_runners(&change.path)) || restored > 0;
        let work = if touched { ChangeScope::Execute } else { ChangeScope::Decompose };
        let evidence = RecordedFacts {
            outcome,
            status: *status,
            guard_exit,
            tree: bytes,
            state,
            work,
            protected,
            restored,
        };
        let (claim, verdict) = rebuild(self.snapshot, self.job, &evidence);
        let mut wrong = match &claim.finding {
            SessionFinding::RuleViolations { violations, .. } => {
                violations.iter().map(compare::violation).collect()
            }
            SessionFinding::InvalidTree { .. }
            | SessionFinding::NoAnswer { .. }
            | SessionFinding::Accepted { .. } => Vec::new(),
        };
        let transition = settle(self.snapshot, self.job, &claim, &verdict);
        if transition.outcome == outcome {
            // What the record itself tells of broken rules is no fault of the record.
            wrong.clear();
        } else if wrong.is_empty() {
            let told = |outcome: Outcome| format!("Runner-Outcome: {outcome}");
            wrong.push((Rule::Outcome, told(transition.outcome), told(outcome)));
        }
        if !wrong.is_empty() {
            return wrong;
        }
        let prompt_is_known =
            parts.value("Runner-Prompt-Edition") == Some(prompt::template_version().as_str());
        if !prompt_is_known && parts.value("Runner-Prompt-Edition").is_some() {
            unchecked.push("the prompt, which was made from other templates".to_owned());
        }
        let is_known = prompt_is_known || parts.value("Runner-Prompt-Edition").is_none();
        wrong.extend(compare::trees(&self.snapshot.tree, &transition.tree, tree));
        wrong.extend(compare::states(&transition.state, state));
        // A fingerprint of something that is wrong itself says nothing new.
        let is_new = |rule: Rule, wrong: &[Difference]| {
            wrong.is_empty() || !matches!(rule, Rule::TreeDigest | Rule::StateDigest)
        };
        let messages = compare::messages(&transition.message, self.text, is_known);
        let (first, rest): (Vec<_>, Vec<_>) = messages
            .into_iter()
            .partition(|(rule, ..)| matches!(rule, Rule::Status | Rule::Guard | Rule::Outcome));
        let rest: Vec<_> = rest.into_iter().filter(|(rule, ..)| is_new(*rule, &wrong)).collect();
        first.into_iter().chain(wrong).chain(rest).collect()
    }

    /// The protected paths as a session's end would have told them, and how many of them were put back.
    fn protected(
        &self,
        parts: &MessageParts<'_>,
        state: &RunState,
        outcome: Outcome,
    ) -> (Vec<ProtectedPath>, usize) {
        let auditor = self.auditor;
        let is_pinned = |path: &[u8]| auditor.is_pinned(path) && !self.became_pinned(path, state);
        let is_changed = |path: &[u8]| self.commit.changes.iter().any(|change| change.path == path);
        let there = auditor.protected.iter().map(Vec::as_slice);
        let gone = self.commit.changes.iter().filter(|change| change.now == FileAfter::Deleted);
        let all: BTreeSet<&[u8]> = there.chain(gone.map(|change| change.path.as_slice())).collect();
        let mut told: Vec<ProtectedPath> = all
            .into_iter()
            .map(|path| ProtectedPath {
                path: RepoPath::of_bytes(path),
                existed_at_start: is_pinned(path),
                changed: is_changed(path),
                exists: auditor.protected.contains(path),
            })
            // A pinned file that was put back is not in the commit; one that was not, was told as a fault of its own.
            .filter(|path| !path.existed_at_start || path.changed && self.job.protect == ProtectPolicy::Flag)
            .collect();
        let made = told.iter().filter(|path| !path.existed_at_start && path.exists).count();
        let flagged = told.iter().filter(|path| path.existed_at_start).count();
        let others = flagged + if outcome == Outcome::Passed { made } else { 0 };
        let restored = self.restored(parts, state, others);
        told.extend(restored.iter().map(|path| ProtectedPath {
            path: path.clone(),
            existed_at_start: auditor.is_pinned(&path.to_bytes()) || reconstruct::is_unnamed(path),
            changed: true,
            exists: true,
        }));
        (told, restored.len())
    }

    /// The files that the commit says were put back, where so many of its marks are about other files.
    fn restored(&self, parts: &MessageParts<'_>, state: &RunState, others: usize) -> Vec<RepoPath> {
        let marks: Vec<&str> = parts.values("Runner-Guard-Mark").collect();
        let named: Vec<RepoPath> = marks
            .iter()
            .filter_map(|mark| mark.strip_prefix("restored "))
            .filter_map(|path| serde_json::from_value(path.into()).ok())
            .collect();
        let unnamed = marks.iter().find_map(|mark| mark.strip_prefix("and ")?.strip_suffix(" more"));
        let count = match unnamed.and_then(|count| count.parse::<usize>().ok()) {
            Some(unnamed) => (marks.len() - 1).saturating_add(unnamed).saturating_sub(others).min(FILES_MAX),
            None => named.len(),
        };
        let lesson = self.job.target.node().and_then(|node| state.history_of(node));
        reconstruct::restored(&named, count, lesson)
    }

    /// Where the start cannot be reached: whether the commit itself says that the file is younger.
    fn became_pinned(&self, path: &[u8], state: &RunState) -> bool {
        let path = RepoPath::of_bytes(path);
        self.auditor.at_start.is_none()
            && state.pinned.contains(&path)
            && !self.snapshot.state.pinned.contains(&path)
    }
}

/// What the job says and what the subject says.
pub(super) fn aim_differences(job: &Job, kind: &CommitKind) -> Vec<Difference> {
    let CommitKind::Iteration { iter, target, .. } = kind else { return Vec::new() };
    let mut wrong = Vec::new();
    if *iter != job.iteration {
        wrong.push((Rule::Numbering, format!("iter {}", job.iteration), format!("iter {iter}")));
    }
    let told =
        |node: Option<&NodeId>| node.map_or_else(|| "repair".to_owned(), |node| format!("node {node}"));
    let expected = match &job.target {
        SessionTarget::Leaf(node) | SessionTarget::Replan(node) => Some(node),
        SessionTarget::Repair(_) => None,
    };
    let found = match target {
        IterationTarget::Node(node) => Some(node),
        IterationTarget::Repair => None,
    };
    if expected != found {
        wrong.push((Rule::Selection, told(expected), told(found)));
    }
    wrong
}
