//! Rules for the files of a commit: which of them an iteration may change, and what takes effect with a start alone.

use super::auditor::{Auditor, StartState};
use super::compare::{Difference, shown};
use super::snapshot::{self, Files, is_runner_path, may_iteration_change};
use super::{AuditedCommit, Rule};
use crate::commit_message::CommitKind;
use crate::config::ProtectPolicy;
use crate::layout::{Doc, DocOwner};
use crate::model::instructions::PinnedInstructions;
use crate::model::protection::Protection;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;

impl Auditor {
    /// A commit of the runner's that follows changes which only a start may put into effect.
    pub(super) fn unstarted_differences(&mut self, kind: &CommitKind) -> Vec<Difference> {
        if matches!(kind, CommitKind::User { .. } | CommitKind::Malformed { .. }) {
            return Vec::new();
        }
        let unstarted = std::mem::take(&mut self.unstarted);
        if matches!(kind, CommitKind::Start { .. }) || !self.is_started() {
            return Vec::new();
        }
        let difference = |path: &RepoPath| {
            let expected = format!("`runner start` after the change of {path}");
            Difference::new(Rule::UnstartedChange, expected, "no start")
        };
        unstarted.iter().map(difference).collect()
    }

    /// A commit after new checks: the state before it protects what they depend on.
    pub(super) fn follow_checks(
        &mut self,
        kind: &CommitKind,
        commit: &AuditedCommit,
        is: Option<&RunState>,
    ) -> Option<Difference> {
        let derived = commit.protection.as_ref().filter(|_| kind.is_of_a_run())?;
        let state = self.docs.state.take()?;
        self.docs.state = Some(state.with_protection(derived.clone()));
        protection_difference(commit, is?)
    }

    /// Files that an iteration changed although it must not: the rules of the run, and pinned files unless the policy is
    /// "flag".
    pub(super) fn forbidden_changes(&self, commit: &AuditedCommit) -> Vec<Difference> {
        let policy = self.docs.config.as_ref().map(|config| config.guard.protect);
        let rules = commit.changes.iter().filter(|change| !may_iteration_change(&change.path));
        let protected = commit.changes.iter().filter(|change| {
            policy != Some(ProtectPolicy::Flag) && change.is_protected && self.is_pinned(&change.path)
        });
        let rules = rules.map(|change| (Rule::PinnedFile, change));
        let all = rules.chain(protected.map(|change| (Rule::ProtectedFile, change)));
        let changed = all.map(|(rule, change)| {
            let path = RepoPath::of_bytes(&change.path);
            Difference::new(rule, format!("{path} as before"), format!("{path} changed"))
        });
        changed.collect()
    }

    /// Whether a protected path existed at the start, or was pinned by a pass.
    pub(super) fn is_pinned(&self, path: &[u8]) -> bool {
        let existed_at_start = match &self.start {
            StartState::NotStarted => false,
            StartState::Started { protected } | StartState::Unreachable { protected_at_base: protected } => {
                protected.contains(path)
            }
        };
        let pinned = self.docs.state.as_ref().map(|state| state.pinned.as_slice()).unwrap_or_default();
        let path = RepoPath::of_bytes(path);
        let protection = self.docs.state.as_ref().and_then(|state| state.protection.as_ref());
        existed_at_start || pinned.contains(&path) || protection.is_some_and(|known| known.pins(&path))
    }

    /// Memory files in which an iteration changed earlier text.
    pub(super) fn rewritten_memory(&self, files_before: &Files) -> Vec<Difference> {
        let memory = Doc::ALL.into_iter().filter(|doc| doc.owner() == DocOwner::Memory);
        let is_rewritten = |doc: &Doc| {
            let before = snapshot::doc(files_before, *doc).unwrap_or_default();
            !snapshot::doc(&self.files, *doc).unwrap_or_default().starts_with(before)
        };
        let difference = |doc: Doc| {
            let expected = format!("{} with text added at its end", doc.path());
            Difference::new(Rule::MemoryRewritten, expected, "earlier text changed")
        };
        memory.filter(is_rewritten).map(difference).collect()
    }
}

/// Files outside `.runner/` that a planning session's commit changes: nothing there is its to change.
pub(super) fn plan_scope_differences(commit: &AuditedCommit) -> Vec<Difference> {
    let outside = commit.changes.iter().filter(|change| !is_runner_path(&change.path));
    let changed = outside.map(|change| {
        let path = RepoPath::of_bytes(&change.path);
        Difference::new(Rule::PlanScope, format!("{path} as before"), format!("{path} changed"))
    });
    changed.collect()
}

/// A start records exactly what its configuration and its files make protected, and the next commit what checks do.
pub(super) fn protection_difference(commit: &AuditedCommit, state: &RunState) -> Option<Difference> {
    let expected = commit.protection.as_ref().map(|derived| &derived.protection);
    if state.protection.as_ref() == expected {
        return None;
    }
    let names = |protection: Option<&Protection>| {
        let names = protection.cloned().map(|known| known.whole().names()).unwrap_or_default();
        format!("protection of {}", shown(&names.join(", ")))
    };
    let expected = names(expected);
    Some(Difference::new(Rule::Protection, expected, names(state.protection.as_ref())))
}

/// A start records exactly the instructions that its configuration names and its files contain.
pub(super) fn instructions_difference(commit: &AuditedCommit, state: &RunState) -> Option<Difference> {
    if state.instructions == commit.instructions {
        return None;
    }
    let label = |pinned: Option<&PinnedInstructions>| {
        pinned.map_or_else(|| "no instructions".to_owned(), |pinned| shown(&pinned.label()))
    };
    let found = match (&state.instructions, &commit.instructions) {
        (Some(found), Some(expected)) if found.label() == expected.label() => "another text".to_owned(),
        (found, _) => label(found.as_ref()),
    };
    Some(Difference::new(Rule::Instructions, label(commit.instructions.as_ref()), found))
}
