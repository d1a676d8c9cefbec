//! Which protected paths each commit of a run changed, and what each must record as protected.

use std::collections::{BTreeMap, BTreeSet};

use super::super::AuditBase;
use super::super::audit_source::{AuditSource, CommitRecord};
use super::super::snapshot::Files;
use crate::commit_message::{CommitKind, MessageParts, Trailer};
use crate::config::Config;
use crate::guard_files::{ChangedEntry, DerivedProtection, RunChecks, changed_entries_of, entry_value};
use crate::layout::Doc;
use crate::model::checks::CheckFilePath;
use crate::model::id::NodeId;
use crate::model::instructions::PinnedInstructions;
use crate::model::object_id::CommitId;
use crate::model::protection::Protection;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;
use crate::step::Outcome;

/// Commits and the protected paths that each changed.
pub(super) type ProtectedChanges = BTreeMap<CommitId, ProtectedChange>;

/// The protected paths of one commit.
#[derive(Clone, Debug, Default)]
pub(super) struct ProtectedChange {
    pub(super) changed: BTreeSet<Vec<u8>>,
    /// Entries of files that the commit changed.
    pub(super) entries: Vec<ChangedEntry>,
    /// All of them, where they may be others than before.
    pub(super) all: Option<BTreeSet<Vec<u8>>>,
    /// What the commit must record as protected.
    pub(super) derived: Option<DerivedProtection>,
    /// The instructions that a start must pin.
    pub(super) instructions: Option<PinnedInstructions>,
}

/// Consecutive commits with the same patterns of protected files.
struct CommitRange {
    after: CommitId,
    tip: CommitId,
}

/// What the state in a set of documents protects.
pub(super) fn protection_in(files: &Files) -> Protection {
    let bytes = files.get(Doc::RunState.path().as_bytes());
    bytes.map(|bytes| protection_of(bytes)).unwrap_or_default()
}

fn protection_of(state: &[u8]) -> Protection {
    let protection = RunState::decode(state).ok().and_then(|state| state.protection);
    protection.map(Protection::whole).unwrap_or_default()
}

/// The protected files and entries that exist in a commit.
pub(super) fn protected_at<S: AuditSource>(
    source: &mut S,
    commit: &CommitId,
    protection: &Protection,
) -> Result<BTreeSet<Vec<u8>>, S::Error> {
    let mut paths = match protection.files.as_slice() {
        [] => BTreeSet::new(),
        patterns => source.matching_paths(commit, patterns)?,
    };
    for file in protection.entry_files() {
        let bytes = source.file(commit, file.as_str())?;
        let entries = protection.entries.iter().filter(|entry| entry.file == file);
        let existing = entries.filter(|entry| entry_value(entry, bytes.as_deref()).is_some());
        paths.extend(existing.map(|entry| entry.path().to_bytes()));
    }
    Ok(paths)
}

/// Which protected paths each commit changed: the source is asked once for every list of protected files.
pub(super) fn protected_changes<S: AuditSource>(
    source: &mut S,
    commits: &[CommitRecord<'_>],
    base: &AuditBase,
) -> Result<ProtectedChanges, S::Error> {
    let mut walk = Walk {
        changes: ProtectedChanges::new(),
        protection: protection_in(&base.files),
        range: None,
        checks: base.files.keys().filter_map(|path| checked_node(path)).collect(),
        is_followed: false,
    };
    let mut before = base.commit.as_deref().and_then(|id| CommitId::new(id).ok());
    for commit in commits {
        let kind = CommitKind::parse(commit.message);
        if matches!(kind, CommitKind::Start { .. }) {
            walk.start(source, *commit)?;
        } else if let Some(before) = before {
            walk.follow(source, *commit, &kind, &before)?;
            let entries = changed_entries(source, *commit, &walk.protection)?;
            walk.changes.entry(commit.id.clone()).or_default().entries = entries;
            let after = walk.range.take().map_or(before, |range| range.after);
            walk.range = Some(CommitRange { after, tip: commit.id.clone() });
        }
        walk.note_checks(*commit);
        before = Some(commit.id.clone());
    }
    walk.end_range(source)?;
    Ok(walk.changes)
}

/// The state of a walk through the commits of a run.
struct Walk {
    changes: ProtectedChanges,
    protection: Protection,
    range: Option<CommitRange>,
    /// The nodes that have a checks.toml.
    checks: BTreeSet<NodeId>,
    /// Whether the protection follows all of these, as far as the commits show without their documents.
    is_followed: bool,
}

impl Walk {
    /// A start: the protection follows from its own files.
    fn start<S: AuditSource>(&mut self, source: &mut S, commit: CommitRecord<'_>) -> Result<(), S::Error> {
        self.end_range(source)?;
        self.protection =
            source.file(commit.id, Doc::RunState.path())?.as_deref().map(protection_of).unwrap_or_default();
        let all = protected_at(source, commit.id, &self.protection)?;
        let change = self.changes.entry(commit.id.clone()).or_default();
        change.all = Some(all);
        let config = source.file(commit.id, Doc::Config.path())?.unwrap_or_default();
        if let Ok(config) = Config::decode(&config) {
            let protection = source.protection(commit.id, &config.guard)?;
            change.derived = Some(DerivedProtection { protection, pinned: Vec::new() });
            change.instructions = source.instructions(commit.id, &config.executor)?;
        }
        self.is_followed = false;
        Ok(())
    }

    /// The first commit after new checks that an agent's session or a guard run made: it protects what they depend on.
    fn follow<S: AuditSource>(
        &mut self,
        source: &mut S,
        commit: CommitRecord<'_>,
        kind: &CommitKind,
        before: &CommitId,
    ) -> Result<(), S::Error> {
        if self.is_followed || self.checks.is_empty() || !kind.is_of_a_run() {
            return Ok(());
        }
        self.is_followed = true;
        let mut document = |doc: Doc| Ok(source.file(before, doc.path())?.unwrap_or_default());
        let config = Config::decode(&document(Doc::Config)?);
        let state = RunState::decode(&document(Doc::RunState)?);
        let tree = Tree::decode(&document(Doc::Tree)?);
        let (Ok(config), Ok(state), Ok(tree)) = (config, state, tree) else { return Ok(()) };
        let nodes: Vec<NodeId> = self.checks.iter().cloned().collect();
        let checks = RunChecks { guard: &config.guard, state: &state, tree: &tree, nodes: &nodes };
        if !checks.has_unfollowed() {
            return Ok(());
        }
        let Some(derived) = source.followed(before, checks)? else { return Ok(()) };
        self.end_range(source)?;
        self.protection = derived.protection.clone().whole();
        let all = protected_at(source, commit.id, &self.protection)?;
        let change = self.changes.entry(commit.id.clone()).or_default();
        change.all = Some(all);
        change.derived = Some(derived);
        Ok(())
    }

    /// Notes which checks a commit adds, and whether a task with checks may have passed.
    fn note_checks(&mut self, commit: CommitRecord<'_>) {
        for change in commit.changes {
            let Some(node) = checked_node(&change.path) else { continue };
            self.is_followed = false;
            if change.mode == "000000" {
                self.checks.remove(&node);
            } else {
                self.checks.insert(node);
            }
        }
        let text = String::from_utf8_lossy(commit.message);
        if MessageParts::parse(&text).value(Trailer::Outcome) == Some(Outcome::Passed.as_str()) {
            self.is_followed = false;
        }
    }

    fn end_range<S: AuditSource>(&mut self, source: &mut S) -> Result<(), S::Error> {
        let patterns = &self.protection.files;
        let Some(range) = self.range.take().filter(|_| !patterns.is_empty()) else { return Ok(()) };
        for (id, paths) in source.matching_changes(&range.after, &range.tip, patterns)? {
            self.changes.entry(id).or_default().changed.extend(paths);
        }
        Ok(())
    }
}

/// The node whose checks.toml this is.
fn checked_node(path: &[u8]) -> Option<NodeId> {
    CheckFilePath::parse(path).filter(CheckFilePath::is_checks_toml).map(|file| file.node)
}

/// The protected entries that a commit changed against its first parent.
fn changed_entries<S: AuditSource>(
    source: &mut S,
    commit: CommitRecord<'_>,
    protection: &Protection,
) -> Result<Vec<ChangedEntry>, S::Error> {
    let mut changed = Vec::new();
    for file in protection.entry_files() {
        let Some(parent) = commit.parents.first() else { break };
        if !commit.changes.iter().any(|change| change.path == file.to_bytes()) {
            continue;
        }
        let before = source.file(parent, file.as_str())?;
        let after = source.file(commit.id, file.as_str())?;
        changed.extend(changed_entries_of(protection, &file, before.as_deref(), after.as_deref()));
    }
    Ok(changed)
}
