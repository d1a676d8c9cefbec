//! `runner verify`: hands a run's commits to the core's audit, one by one, from git alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runner_core::commit_message::CommitKind;
use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::verify::{
    AuditBase, AuditFinding, AuditStart, AuditSummary, AuditedCommit, Auditor, CommitAudit, CommitChange,
    FileAfter, is_read, kept,
};

use crate::error::{Error, UserError};
use crate::git::{CatFileBatch, Git};
use crate::repo::run_history::{HistoryStart, RunCommit, RunHistory, RunSelector, files_at, line, resolve};

/// What an audit came to.
#[derive(Debug)]
pub struct AuditResult {
    /// What was audited.
    pub target: RunSelector,
    /// How many commits there were.
    pub commits: usize,
    /// Every rule that does not hold, oldest commit first.
    pub findings: Vec<AuditFinding>,
    /// What could not be checked, each once.
    pub unchecked: Vec<String>,
    /// What the end says.
    pub ending: AuditSummary,
    /// The iterations that passed a node, oldest first.
    pub passes: Vec<PassingCommit>,
}

/// An iteration that passed a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassingCommit {
    /// Its commit.
    pub commit: String,
    /// The iteration.
    pub iter: runner_core::model::id::IterationNumber,
    /// The configuration that it was made with.
    pub(crate) config: Option<Config>,
}

/// Audits a run: `wanted` is a run, a commit of one, or a range; nothing means the run here. Every commit is told as it
/// is checked.
pub fn verify(
    dir: &Path,
    wanted: Option<&str>,
    tell: &mut dyn FnMut(&CommitAudit),
) -> Result<AuditResult, Error> {
    let git = Git::open(dir)?;
    let target = resolve(&git, wanted)?;
    let mut batch = git.batch()?;
    let mut run = line(&git, &mut batch, &target)?;
    let scene = AuditContext { git: &git, target: &target };
    let base = scene.base(&mut batch, &mut run)?;
    let protected = scene.protected_changes(&mut batch, &run, &base)?;
    let mut unchecked = scene.unseen(&run, &base);
    let mut config = config_in(&base.files);
    let first = run.run.clone().unwrap_or_else(|| target.run.clone());
    let mut auditor = Auditor::new(first, base);
    let (mut findings, mut passes) = (Vec::new(), Vec::new());
    for entry in &run.entries {
        let commit = scene.commit(&mut batch, entry, &protected)?;
        let checked = auditor.check(&commit);
        tell(&checked);
        if let (Some(iter), Some(runner_core::step::Outcome::Passed)) = (checked.kind.iter(), checked.outcome)
        {
            passes.push(PassingCommit { commit: checked.commit.clone(), iter, config: config.clone() });
        }
        if let Some(bytes) = commit.changes.iter().find_map(new_config) {
            config = Config::decode(bytes).ok();
        }
        findings.extend(checked.findings);
        unchecked.extend(checked.unchecked);
    }
    let ending = auditor.finish();
    findings.extend(ending.findings.iter().cloned());
    let mut known = BTreeSet::new();
    unchecked.retain(|note| known.insert(note.clone()));
    let commits = run.entries.len();
    Ok(AuditResult { target, commits, findings, unchecked, ending, passes })
}

fn is_start(batch: &mut CatFileBatch, commit: &str, run: &RunId) -> Result<bool, Error> {
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

/// Commits and the protected paths that each changed.
type Protected = BTreeMap<String, ProtectedChange>;

/// What a commit has to do with protected paths.
#[derive(Clone, Debug, Default)]
struct ProtectedChange {
    changed: BTreeSet<Vec<u8>>,
    /// All of them, where the patterns may be new.
    all: Option<BTreeSet<Vec<u8>>>,
}

/// What is audited, and where.
struct AuditContext<'a> {
    git: &'a Git,
    target: &'a RunSelector,
}

impl AuditContext<'_> {
    /// The state before the first commit that is checked.
    fn base(&self, batch: &mut CatFileBatch, run: &mut RunHistory) -> Result<AuditBase, Error> {
        if run.origin == HistoryStart::Shallow {
            // The oldest commit of a shallow clone is what the rest is measured by.
            let oldest = run.entries.remove(0).logged.id;
            return self.base_within(batch, oldest, None);
        }
        let parent = run.entries.first().and_then(|entry| entry.parents.first().cloned());
        let Some(parent) = parent else { return Ok(AuditBase::default()) };
        let files = files_at(self.git, batch, &parent)?;
        let state = files.get(Doc::RunState.path().as_bytes());
        let state = state.and_then(|bytes| runner_core::model::run_state::RunState::decode(bytes).ok());
        let is_within = run.run.is_some() && state.and_then(|state| state.run_id) == run.run;
        if run.origin == HistoryStart::Named && is_within {
            let first = run.run.as_ref().unwrap_or(&self.target.run);
            let start = self.git.start_commit(first.as_str(), &parent)?;
            let at_start = (start != parent || is_start(batch, &parent, first)?).then_some(start);
            return self.base_within(batch, parent, at_start);
        }
        let patterns = config_in(&files).map(|config| config.guard.protected).unwrap_or_default();
        let protected = self.git.matching_paths(&parent, &patterns)?;
        Ok(AuditBase { commit: Some(parent), files, protected, start: AuditStart::Before })
    }

    fn base_within(
        &self,
        batch: &mut CatFileBatch,
        commit: String,
        start: Option<String>,
    ) -> Result<AuditBase, Error> {
        let files = files_at(self.git, batch, &commit)?;
        let patterns = config_in(&files).map(|config| config.guard.protected).unwrap_or_default();
        let protected = self.git.matching_paths(&commit, &patterns)?;
        let at_start = start.map(|start| self.git.matching_paths(&start, &patterns)).transpose()?;
        Ok(AuditBase { commit: Some(commit), files, protected, start: AuditStart::Within(at_start) })
    }

    /// Which protected paths each commit changed: one question to git for every set of patterns that was in force.
    fn protected_changes(
        &self,
        batch: &mut CatFileBatch,
        run: &RunHistory,
        base: &AuditBase,
    ) -> Result<Protected, Error> {
        let mut all = Protected::new();
        let mut patterns = config_in(&base.files).map(|config| config.guard.protected).unwrap_or_default();
        let mut stretch: Option<(String, String)> = None;
        let mut before = base.commit.clone();
        for entry in &run.entries {
            let id = entry.logged.id.clone();
            let changes = &entry.logged.changes;
            let config = changes.iter().find(|change| change.path == Doc::Config.path().as_bytes());
            let is_start = matches!(CommitKind::parse(&entry.message), CommitKind::Start { .. });
            if let Some(before) = before.clone().filter(|_| !is_start || config.is_none()) {
                stretch = Some((stretch.map_or(before, |(after, _)| after), id.clone()));
            }
            if let Some(config) = config {
                self.ask(stretch.take(), &patterns, &mut all)?;
                let bytes = batch.object(&config.object)?.unwrap_or_default();
                patterns = Config::decode(&bytes).map(|config| config.guard.protected).unwrap_or_default();
            }
            if config.is_some() || is_start {
                all.entry(id.clone()).or_default().all = Some(self.git.matching_paths(&id, &patterns)?);
            }
            before = Some(id);
        }
        self.ask(stretch, &patterns, &mut all)?;
        Ok(all)
    }

    fn ask(
        &self,
        stretch: Option<(String, String)>,
        patterns: &[String],
        all: &mut Protected,
    ) -> Result<(), Error> {
        let Some((after, tip)) = stretch.filter(|_| !patterns.is_empty()) else { return Ok(()) };
        self.git.walk(&tip, Some(&after), patterns, &mut |logged| {
            let paths = logged.changes.into_iter().map(|change| change.path);
            all.entry(logged.id).or_default().changed.extend(paths);
            Ok(true)
        })
    }

    /// What is said of a line that does not begin with a start.
    fn unseen(&self, run: &RunHistory, base: &AuditBase) -> Vec<String> {
        let commit = base.commit.clone().unwrap_or_default();
        let short: String = commit.chars().take(12).collect();
        let mut notes = Vec::new();
        if run.origin == HistoryStart::Shallow {
            notes.push(format!("everything up to {short}, where this shallow clone ends"));
        }
        if base.start == AuditStart::Within(None) {
            notes.push("which of the guard's files are older than the run".to_owned());
        }
        notes
    }

    /// A commit as the audit takes it.
    fn commit(
        &self,
        batch: &mut CatFileBatch,
        entry: &RunCommit,
        protected: &Protected,
    ) -> Result<AuditedCommit, Error> {
        let protection = protected.get(&entry.logged.id).cloned().unwrap_or_default();
        let mut changes = Vec::new();
        for change in &entry.logged.changes {
            let now = match change.mode.as_str() {
                "000000" => FileAfter::Deleted,
                "100644" | "100755" | "100664" if is_read(&change.path) => {
                    let missing = || UserError::MissingObject(change.object.clone());
                    FileAfter::File(Some(kept(
                        &change.path,
                        batch.object(&change.object)?.ok_or_else(missing)?,
                    )))
                }
                "100644" | "100755" | "100664" => FileAfter::File(None),
                _ => FileAfter::Other,
            };
            let is_protected = protection.changed.contains(&change.path);
            changes.push(CommitChange { path: change.path.clone(), now, is_protected });
        }
        Ok(AuditedCommit {
            id: entry.logged.id.clone(),
            parents: entry.parents.clone(),
            message: entry.message.clone(),
            changes,
            protected: protection.all,
        })
    }
}

/// The run that a target is about.
impl AuditResult {
    pub fn run(&self) -> &RunId {
        &self.target.run
    }
}
