//! `runner verify`: passes a run's commits to the core's auditor, from git alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runner_core::commit_message::{CommitKind, MessageParts, Trailer};
use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::checks::CheckRecord;
use runner_core::model::digest::Sha256;
use runner_core::model::heldout::HeldoutRecord;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::instructions::PinnedInstructions;
use runner_core::model::object_id::{CommitId, TreeId};
use runner_core::model::protection::Protection;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::run_state::RunState;
use runner_core::step::Outcome;
use runner_core::verify::{
    AuditBase, AuditFinding, AuditStart, AuditSummary, AuditedCommit, Auditor, CheckFileAfter, CommitAudit,
    CommitChange, FileAfter, FrozenFile, Verdict, is_read, kept,
};

use crate::error::{Error, UserError};
use crate::git::{CatFileBatch, Git, RawChange};
use crate::repo::commit_files::{ChangedEntry, changed_entries, entries_at, instructions_at, protection_at};
use crate::repo::run_history::{
    HistoryStart, RunCommit, RunHistory, RunSelector, files_at, resolve, run_history,
};

/// The result of an audit.
#[derive(Debug)]
pub struct AuditResult {
    pub target: RunSelector,
    /// How many commits were checked.
    pub commits: usize,
    /// Every violated rule, oldest commit first.
    pub findings: Vec<AuditFinding>,
    /// What could not be checked, each once.
    pub unchecked: Vec<String>,
    pub ending: AuditSummary,
    /// The iterations that passed a node, oldest first.
    pub passes: Vec<PassingCommit>,
}

impl AuditResult {
    pub fn run(&self) -> &RunId {
        &self.target.run
    }

    pub fn verdict(&self) -> Verdict {
        Verdict::new(&self.findings, &self.unchecked)
    }
}

/// An iteration that passed a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassingCommit {
    pub commit: CommitId,
    pub iter: IterationNumber,
    /// The configuration of the iteration.
    pub(crate) config: Option<Config>,
    /// The checks of the node, if it has some.
    pub(crate) checks: Option<PassedTaskChecks>,
    /// The held-out checks of the node.
    pub(crate) heldout: Vec<PassedHeldout>,
}

/// A held-out check of a node that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassedHeldout {
    pub(crate) record: HeldoutRecord,
    /// The commit on which it had to fail; none if it is not in the history.
    pub(crate) before_work: Option<CommitId>,
}

/// The checks of a node that passed, as its commit records them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PassedTaskChecks {
    pub(crate) node: NodeId,
    /// The commit before the pass, which has the frozen files.
    pub(crate) parent: CommitId,
    /// The commit before the first session on the node, on which the checks had to fail; none if it is not in the history.
    pub(crate) before_work: Option<CommitId>,
    pub(crate) records: Vec<CheckRecord>,
}

/// Audits a run, a commit of one, or a range; without a name, the run on the current branch. `on_commit` receives the
/// result of every commit.
pub fn verify(
    dir: &Path,
    wanted: Option<&str>,
    on_commit: &mut dyn FnMut(&CommitAudit),
) -> Result<AuditResult, Error> {
    let git = Git::open(dir)?;
    let target = resolve(&git, wanted)?;
    let mut batch = git.batch()?;
    let mut history = run_history(&git, &mut batch, &target)?;
    let context = AuditContext { git: &git };
    let base = context.base(&mut batch, &mut history)?;
    let protected = context.protected_changes(&mut batch, &history, &base)?;
    let mut unchecked = unchecked_notes(&history, &base);
    let mut config = config_in(&base.files);
    let mut auditor = Auditor::new(history.first_run.clone(), base);
    let mut findings = Vec::new();
    let mut passes = Vec::new();
    let mut red_runs = RedRuns::default();
    for entry in &history.entries {
        let frozen = auditor.frozen_files(&entry.message);
        let commit = audited_commit(&git, &mut batch, entry, &protected, &frozen)?;
        let audit = auditor.check(&commit);
        on_commit(&audit);
        let checks = red_runs.checks_of(entry, &audit.kind);
        let heldout = red_runs.heldout_of(entry, &audit.kind);
        if let (Some(iter), Some(Outcome::Passed)) = (audit.kind.iter(), audit.outcome) {
            let commit = entry.logged.id.clone();
            passes.push(PassingCommit { commit, iter, config: config.clone(), checks, heldout });
        }
        if let Some(bytes) = commit.changes.iter().find_map(new_config) {
            config = Config::decode(bytes).ok();
        }
        findings.extend(audit.findings);
        unchecked.extend(audit.unchecked);
    }
    let ending = auditor.finish();
    findings.extend(ending.findings.iter().cloned());
    let mut known = BTreeSet::new();
    unchecked.retain(|note| known.insert(note.clone()));
    Ok(AuditResult { target, commits: history.entries.len(), findings, unchecked, ending, passes })
}

/// The commits on which checks ran before the work, by node and digest.
#[derive(Debug, Default)]
struct RedRuns {
    checks: BTreeMap<(NodeId, Sha256), CommitId>,
    heldout: BTreeMap<(NodeId, Sha256), CommitId>,
}

impl RedRuns {
    /// The checks that an iteration records. The first record of a digest is that of the run before the work, on the parent.
    fn checks_of(&mut self, entry: &RunCommit, kind: &CommitKind) -> Option<PassedTaskChecks> {
        let text = String::from_utf8_lossy(&entry.message);
        let parts = MessageParts::parse(&text);
        let records: Vec<CheckRecord> = parts.values(Trailer::Check).filter_map(CheckRecord::parse).collect();
        let (node, parent) = (kind.node()?.clone(), entry.parents.first()?.clone());
        let digest = records.first()?.digest;
        let before = self.checks.entry((node.clone(), digest)).or_insert_with(|| parent.clone()).clone();
        Some(PassedTaskChecks { node, parent, before_work: Some(before), records })
    }

    /// The held-out checks of an iteration's own task that it records.
    fn heldout_of(&mut self, entry: &RunCommit, kind: &CommitKind) -> Vec<PassedHeldout> {
        let text = String::from_utf8_lossy(&entry.message);
        let parts = MessageParts::parse(&text);
        let records: Vec<HeldoutRecord> =
            parts.values(Trailer::Heldout).filter_map(HeldoutRecord::parse).collect();
        let Some(parent) = entry.parents.first() else { return Vec::new() };
        let mut passed = Vec::new();
        for record in records {
            let key = (record.node.clone(), record.digest);
            let before = self.heldout.entry(key).or_insert_with(|| parent.clone()).clone();
            if kind.node() == Some(&record.node) {
                passed.push(PassedHeldout { record, before_work: Some(before) });
            }
        }
        passed
    }
}

fn is_start(batch: &mut CatFileBatch, commit: &CommitId, run: &RunId) -> Result<bool, Error> {
    let object = batch.commit(commit)?.unwrap_or_default();
    Ok(CommitKind::parse(&object.message) == CommitKind::Start { run_id: run.clone() })
}

fn new_config(change: &CommitChange) -> Option<&[u8]> {
    match &change.now {
        FileAfter::File(Some(bytes)) if change.path == Doc::Config.path().as_bytes() => Some(bytes),
        FileAfter::File(_) | FileAfter::Deleted | FileAfter::Other => None,
    }
}

fn config_in(files: &BTreeMap<Vec<u8>, Vec<u8>>) -> Option<Config> {
    files.get(Doc::Config.path().as_bytes()).and_then(|bytes| Config::decode(bytes).ok())
}

/// What the state in a set of documents protects.
fn protection_in(files: &BTreeMap<Vec<u8>, Vec<u8>>) -> Protection {
    let bytes = files.get(Doc::RunState.path().as_bytes());
    bytes.map(|bytes| protection_of(bytes)).unwrap_or_default()
}

fn protection_of(state: &[u8]) -> Protection {
    RunState::decode(state).ok().and_then(|state| state.protection).unwrap_or_default()
}

/// Commits and the protected paths that each changed.
type ProtectedChanges = BTreeMap<CommitId, ProtectedChange>;

/// The protected paths of one commit.
#[derive(Clone, Debug, Default)]
struct ProtectedChange {
    changed: BTreeSet<Vec<u8>>,
    /// Entries of files that the commit changed.
    entries: Vec<ChangedEntry>,
    /// All of them, where they may be others than before.
    all: Option<BTreeSet<Vec<u8>>>,
    /// What a start must protect.
    derived: Option<Protection>,
    /// The instructions that a start must pin.
    instructions: Option<PinnedInstructions>,
}

/// Consecutive commits with the same patterns of protected files.
struct CommitRange {
    after: CommitId,
    tip: CommitId,
}

struct AuditContext<'a> {
    git: &'a Git,
}

impl AuditContext<'_> {
    /// The state before the first commit that is checked.
    fn base(&self, batch: &mut CatFileBatch, history: &mut RunHistory) -> Result<AuditBase, Error> {
        if history.start == HistoryStart::Shallow {
            // The oldest commit of a shallow clone is the base for the rest.
            let oldest = history.entries.remove(0).logged.id;
            return self.base_within(batch, &oldest, None);
        }
        let parent = history.entries.first().and_then(|entry| entry.parents.first().cloned());
        let Some(parent) = parent else { return Ok(AuditBase::default()) };
        let files = files_at(self.git, batch, &parent)?;
        let state = files.get(Doc::RunState.path().as_bytes()).and_then(|bytes| RunState::decode(bytes).ok());
        let is_within = state.and_then(|state| state.run_id).as_ref() == Some(&history.first_run);
        if history.start == HistoryStart::Named && is_within {
            let start = self.git.start_commit(&history.first_run, &parent)?;
            let is_known = start != parent || is_start(batch, &parent, &history.first_run)?;
            return self.base_within(batch, &parent, is_known.then_some(&start));
        }
        let protected = self.protected_at(batch, &parent, &protection_in(&files))?;
        Ok(AuditBase { commit: Some(parent.to_string()), files, protected, start: AuditStart::Before })
    }

    fn base_within(
        &self,
        batch: &mut CatFileBatch,
        commit: &CommitId,
        start: Option<&CommitId>,
    ) -> Result<AuditBase, Error> {
        let files = files_at(self.git, batch, commit)?;
        let protection = protection_in(&files);
        let protected = self.protected_at(batch, commit, &protection)?;
        let at_start = start.map(|start| self.protected_at(batch, start, &protection)).transpose()?;
        Ok(AuditBase {
            commit: Some(commit.to_string()),
            files,
            protected,
            start: AuditStart::Within(at_start),
        })
    }

    /// The protected files and entries that exist in a commit.
    fn protected_at(
        &self,
        batch: &mut CatFileBatch,
        commit: &CommitId,
        protection: &Protection,
    ) -> Result<BTreeSet<Vec<u8>>, Error> {
        let mut paths = self.git.matching_paths(commit, &protection.files)?;
        paths.extend(entries_at(batch, commit, protection)?);
        Ok(paths)
    }

    /// Which protected paths each commit changed: one `git log` for every list of protected files.
    fn protected_changes(
        &self,
        batch: &mut CatFileBatch,
        history: &RunHistory,
        base: &AuditBase,
    ) -> Result<ProtectedChanges, Error> {
        let mut changes = ProtectedChanges::new();
        let mut protection = protection_in(&base.files);
        let mut range: Option<CommitRange> = None;
        let mut before = base.commit.as_deref().and_then(|id| CommitId::new(id).ok());
        for entry in &history.entries {
            let id = &entry.logged.id;
            let is_start = matches!(CommitKind::parse(&entry.message), CommitKind::Start { .. });
            if is_start {
                self.add_changes(range.take(), &protection.files, &mut changes)?;
                let state = batch.object(&format!("{id}:{}", Doc::RunState.path()))?.unwrap_or_default();
                protection = protection_of(&state);
                let change = changes.entry(id.clone()).or_default();
                change.all = Some(self.protected_at(batch, id, &protection)?);
                if let Some(config) = config_at(batch, id)? {
                    change.derived = Some(protection_at(self.git, id, &config.guard)?);
                    change.instructions = instructions_at(self.git, id, &config.executor)?;
                }
            } else if let Some(before) = before {
                let after = range.map_or(before, |range| range.after);
                range = Some(CommitRange { after, tip: id.clone() });
                changes.entry(id.clone()).or_default().entries =
                    changed_entries(batch, &entry.logged, &protection)?;
            }
            before = Some(id.clone());
        }
        self.add_changes(range, &protection.files, &mut changes)?;
        Ok(changes)
    }

    fn add_changes(
        &self,
        range: Option<CommitRange>,
        patterns: &[String],
        changes: &mut ProtectedChanges,
    ) -> Result<(), Error> {
        let Some(range) = range.filter(|_| !patterns.is_empty()) else { return Ok(()) };
        for entry in self.git.log(&range.tip, Some(&range.after), patterns)? {
            let entry = entry?;
            let paths = entry.changes.into_iter().map(|change| change.path);
            changes.entry(entry.id).or_default().changed.extend(paths);
        }
        Ok(())
    }
}

/// The configuration of a start; none if it cannot be decoded.
fn config_at(batch: &mut CatFileBatch, start: &CommitId) -> Result<Option<Config>, Error> {
    let config = batch.object(&format!("{start}:{}", Doc::Config.path()))?.unwrap_or_default();
    Ok(Config::decode(&config).ok())
}

/// What cannot be checked in a history that does not begin with a start.
fn unchecked_notes(history: &RunHistory, base: &AuditBase) -> Vec<String> {
    let mut notes = Vec::new();
    if history.start == HistoryStart::Shallow {
        let short: String = base.commit.iter().flat_map(|commit| commit.chars()).take(12).collect();
        notes.push(format!("everything up to {short}, where this shallow clone ends"));
    }
    if base.start == AuditStart::Within(None) {
        notes.push("which of the guard's files are older than the run".to_owned());
    }
    notes
}

/// A commit as the auditor reads it.
fn audited_commit(
    git: &Git,
    batch: &mut CatFileBatch,
    entry: &RunCommit,
    protected: &ProtectedChanges,
    frozen: &[FrozenFile],
) -> Result<AuditedCommit, Error> {
    let protection = protected.get(&entry.logged.id).cloned().unwrap_or_default();
    let is_users = matches!(CommitKind::parse(&entry.message), CommitKind::User { .. });
    let mut changes = Vec::new();
    let mut damaged = Vec::new();
    for change in &entry.logged.changes {
        let now = match change.mode.as_str() {
            "000000" => FileAfter::Deleted,
            "100644" | "100755" | "100664" if is_read(&change.path) => {
                let bytes = batch.object(&change.object)?;
                let bytes = bytes.ok_or_else(|| UserError::MissingObject(change.object.clone()))?;
                if !git.is_object("blob", &change.object, &bytes) {
                    damaged.push(RepoPath::of_bytes(&change.path));
                }
                FileAfter::File(Some(kept(&change.path, bytes)))
            }
            "100644" | "100755" | "100664" => {
                // What the user commits may be large and is theirs; what a run commits is checked byte by byte.
                let bytes = if is_users { None } else { batch.object(&change.object)? };
                if bytes.is_some_and(|bytes| !git.is_object("blob", &change.object, &bytes)) {
                    damaged.push(RepoPath::of_bytes(&change.path));
                }
                FileAfter::File(None)
            }
            _ => FileAfter::Other,
        };
        let is_protected = protection.changed.contains(&change.path);
        changes.push(CommitChange { path: change.path.clone(), now, is_protected });
    }
    changes.extend(protection.entries.into_iter().map(|ChangedEntry { path, exists }| CommitChange {
        path,
        now: if exists { FileAfter::File(None) } else { FileAfter::Deleted },
        is_protected: true,
    }));
    Ok(AuditedCommit {
        id: entry.logged.id.to_string(),
        parents: entry.parents.iter().map(ToString::to_string).collect(),
        message: entry.message.clone(),
        changes,
        protected: protection.all,
        candidate: recorded_candidate(git, batch, entry, frozen)?,
        check_files: check_files(batch, entry, frozen)?,
        protection: protection.derived,
        instructions: protection.instructions,
        damaged,
    })
}

/// What a commit has at the destinations of check files, compared with the files of its parent that go there.
fn check_files(
    batch: &mut CatFileBatch,
    entry: &RunCommit,
    frozen: &[FrozenFile],
) -> Result<Vec<CheckFileAfter>, Error> {
    let Some(parent) = entry.parents.first() else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for FrozenFile { destination, source } in frozen {
        let (path, source) = (String::from_utf8_lossy(destination), String::from_utf8_lossy(source));
        let is_file = |change: &RawChange| matches!(change.mode.as_str(), "100644" | "100755");
        let change = entry.logged.changes.iter().find(|change| change.path == *destination);
        let committed = batch.object(&format!("{}:{path}", entry.logged.id))?;
        let wanted = batch.object(&format!("{parent}:{source}"))?;
        let is_frozen = change.is_none_or(is_file) && committed.is_some() && committed == wanted;
        files.push(CheckFileAfter { destination: destination.clone(), is_frozen });
    }
    Ok(files)
}

/// The tree that the guard must have seen, if it ran by the commit's message.
fn recorded_candidate(
    git: &Git,
    batch: &mut CatFileBatch,
    entry: &RunCommit,
    frozen: &[FrozenFile],
) -> Result<Option<TreeId>, Error> {
    let text = String::from_utf8_lossy(&entry.message);
    let is_recorded = MessageParts::parse(&text).value(Trailer::Candidate).is_some();
    // A final check may add a task; the guard saw the files before that.
    let is_final = matches!(CommitKind::parse(&entry.message), CommitKind::Final { .. });
    match entry.parents.first().filter(|_| is_recorded) {
        Some(parent) if is_final => git.candidate_of(batch, parent, parent, &[]),
        Some(parent) => git.candidate_of(batch, &entry.logged.id, parent, frozen),
        None => Ok(None),
    }
}
