//! `runner verify`: passes a run's commits to the core's auditor, from git alone.

use std::collections::BTreeMap;
use std::path::Path;

use runner_core::commit_message::{CommitKind, MessageParts, Trailer};
use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::checks::CheckRecord;
use runner_core::model::digest::Sha256;
use runner_core::model::heldout::HeldoutRecord;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::step::{Outcome, RoomLevel};
use runner_core::verify::{
    AuditBase, AuditFinding, AuditSummary, CommitAudit, CommitRecord, Files, RunAudit, RunAuditResult,
    Verdict, base_before, base_within, state_at,
};
use serde::Serialize;

use crate::error::Error;
use crate::git::{CatFileBatch, Git};
use crate::repo::git_source::GitSource;
use crate::repo::run_history::{HistoryStart, RunCommit, RunHistory, RunSelector, resolve, run_history};

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

    /// Where the guards of the passes ran, in the order in which the history first has each place.
    pub fn rooms(&self) -> Vec<RoomPasses> {
        let mut rooms: Vec<RoomPasses> = Vec::new();
        for pass in &self.passes {
            match rooms.iter_mut().find(|known| known.room == pass.room) {
                Some(known) => known.passes += 1,
                None => rooms.push(RoomPasses { room: pass.room, passes: 1 }),
            }
        }
        rooms
    }
}

/// How many passes have a guard that ran in one kind of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RoomPasses {
    /// None if the commits do not record it.
    pub room: Option<RoomLevel>,
    pub passes: usize,
}

/// An iteration that passed a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassingCommit {
    pub commit: CommitId,
    pub iter: IterationNumber,
    /// Where the guard ran.
    pub(crate) room: Option<RoomLevel>,
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
    let mut source = GitSource { git: &git, batch: &mut batch };
    let base = base(&mut source, &mut history)?;
    let mut config = config_in(&base.files);
    let shallow_end = base.commit.clone().filter(|_| history.start == HistoryStart::Shallow);
    let records: Vec<CommitRecord<'_>> = history.entries.iter().map(RunCommit::record).collect();
    let mut audit = RunAudit::new(&mut source, history.first_run.clone(), base, &records)?;
    if let Some(commit) = shallow_end {
        let short: String = commit.chars().take(12).collect();
        audit.add_missing_start(format!("everything up to {short}, where this shallow clone ends"));
    }
    let mut passes = Vec::new();
    let mut red_runs = RedRuns::default();
    for entry in &history.entries {
        let checked = audit.check(&mut source, entry.record())?;
        on_commit(&checked.audit);
        let checks = red_runs.checks_of(entry, &checked.audit.kind);
        let heldout = red_runs.heldout_of(entry, &checked.audit.kind);
        if let (Some(iter), Some(Outcome::Passed)) = (checked.audit.kind.iter(), checked.audit.outcome) {
            let (commit, room) = (entry.logged.id.clone(), room_of(entry));
            passes.push(PassingCommit { commit, iter, room, config: config.clone(), checks, heldout });
        }
        if let Some(new) = checked.new_config {
            config = new;
        }
    }
    let RunAuditResult { commits, findings, unchecked, summary } = audit.finish();
    Ok(AuditResult { target, commits, findings, unchecked, ending: summary, passes })
}

/// Where a commit records that its guard ran.
fn room_of(entry: &RunCommit) -> Option<RoomLevel> {
    let text = String::from_utf8_lossy(&entry.message);
    MessageParts::parse(&text).value(Trailer::Room).and_then(RoomLevel::parse)
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

/// The state before the first commit that is checked.
fn base(source: &mut GitSource<'_>, history: &mut RunHistory) -> Result<AuditBase, Error> {
    if history.start == HistoryStart::Shallow {
        // The oldest commit of a shallow clone is the base for the rest.
        let oldest = history.entries.remove(0).logged.id;
        return base_within(source, &oldest, None);
    }
    let parent = history.entries.first().and_then(|entry| entry.parents.first().cloned());
    let Some(parent) = parent else { return Ok(AuditBase::default()) };
    let is_within =
        state_at(source, &parent)?.and_then(|state| state.run_id).as_ref() == Some(&history.first_run);
    if history.start == HistoryStart::Named && is_within {
        let start = source.git.start_commit(&history.first_run, &parent)?;
        let is_known = start != parent || is_start(source.batch, &parent, &history.first_run)?;
        return base_within(source, &parent, is_known.then_some(&start));
    }
    base_before(source, &parent)
}

fn is_start(batch: &mut CatFileBatch, commit: &CommitId, run: &RunId) -> Result<bool, Error> {
    let object = batch.commit(commit)?.unwrap_or_default();
    Ok(CommitKind::parse(&object.message) == CommitKind::Start { run_id: run.clone() })
}

fn config_in(files: &Files) -> Option<Config> {
    files.get(Doc::Config.path().as_bytes()).and_then(|bytes| Config::decode(bytes).ok())
}
