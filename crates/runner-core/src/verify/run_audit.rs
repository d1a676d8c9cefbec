//! The audit of a whole run: reads from a source what the auditor needs of each commit, and passes it on, oldest first.

mod protected_changes;

use std::collections::BTreeSet;

use self::protected_changes::{
    ProtectedChange, ProtectedChanges, protected_at, protected_changes, protection_in,
};
use super::audit_source::{AuditSource, CommitRecord, RawChange};
use super::candidate::candidate_of;
use super::{
    AuditBase, AuditFinding, AuditStart, AuditSummary, AuditedCommit, Auditor, CheckFileAfter, CommitAudit,
    CommitChange, FileAfter, Files, FrozenFile, is_read, kept,
};
use crate::commit_message::{CommitKind, MessageParts, Trailer};
use crate::config::Config;
use crate::guard_files::ChangedEntry;
use crate::layout::Doc;
use crate::model::id::{IterationNumber, RunId};
use crate::model::object_id::{CommitId, TreeId};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::runs::fork;

/// The audit of a run, commit by commit.
#[derive(Debug)]
pub struct RunAudit {
    auditor: Auditor,
    protected: ProtectedChanges,
    commits: usize,
    findings: Vec<AuditFinding>,
    unchecked: Vec<String>,
}

/// What an audit of a whole run comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAuditResult {
    /// How many commits were checked.
    pub commits: usize,
    /// Every violated rule, oldest commit first.
    pub findings: Vec<AuditFinding>,
    /// What could not be checked, each once.
    pub unchecked: Vec<String>,
    pub summary: AuditSummary,
}

impl RunAudit {
    /// Prepares the audit of these commits, oldest first, which follow the base.
    pub fn new<S: AuditSource>(
        source: &mut S,
        run: RunId,
        base: AuditBase,
        commits: &[CommitRecord<'_>],
    ) -> Result<Self, S::Error> {
        let protected = protected_changes(source, commits, &base)?;
        let is_start_unknown = base.start == AuditStart::Within(None);
        let note = is_start_unknown.then(|| "which of the guard's files are older than the run".to_owned());
        let auditor = Auditor::new(run, base);
        Ok(Self {
            auditor,
            protected,
            commits: 0,
            findings: Vec::new(),
            unchecked: note.into_iter().collect(),
        })
    }

    /// Adds what cannot be checked because the history begins late.
    pub fn add_missing_start(&mut self, note: String) {
        self.unchecked.insert(0, note);
    }

    /// Checks the next commit. Returns the result, and the configuration that the commit wrote, if it wrote one.
    pub fn check<S: AuditSource>(
        &mut self,
        source: &mut S,
        commit: CommitRecord<'_>,
    ) -> Result<CheckedCommit, S::Error> {
        let frozen = self.auditor.frozen_files(commit.message);
        let protection = self.protected.remove(commit.id).unwrap_or_default();
        let audited = audited_commit(source, commit, protection, &frozen)?;
        let audit = self.auditor.check(&audited);
        self.commits += 1;
        self.findings.extend(audit.findings.iter().cloned());
        self.unchecked.extend(audit.unchecked.iter().cloned());
        let config = audited.changes.iter().find_map(new_config).map(|bytes| Config::decode(bytes).ok());
        Ok(CheckedCommit { audit, new_config: config })
    }

    /// The result after the last commit of the run.
    pub fn finish(self) -> RunAuditResult {
        let mut result = self.stop();
        result.findings.extend(result.summary.findings.iter().cloned());
        result
    }

    /// The result so far, where later commits of the run cannot be read.
    pub fn stop(self) -> RunAuditResult {
        let Self { auditor, commits, findings, mut unchecked, .. } = self;
        let mut known = BTreeSet::new();
        unchecked.retain(|note| known.insert(note.clone()));
        RunAuditResult { commits, findings, unchecked, summary: auditor.finish() }
    }
}

/// A commit that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedCommit {
    pub audit: CommitAudit,
    /// The configuration that the commit wrote: none inside if it cannot be decoded.
    pub new_config: Option<Option<Config>>,
}

/// The state before the first commit of a run, at its parent.
pub fn base_before<S: AuditSource>(source: &mut S, parent: &CommitId) -> Result<AuditBase, S::Error> {
    let files = files_at(source, parent)?;
    let protected = protected_at(source, parent, &protection_in(&files))?;
    Ok(AuditBase { commit: Some(parent.to_string()), files, protected, start: AuditStart::Before })
}

/// The state at a commit within a run, and the run's last start, if that can be reached.
pub fn base_within<S: AuditSource>(
    source: &mut S,
    commit: &CommitId,
    start: Option<&CommitId>,
) -> Result<AuditBase, S::Error> {
    let files = files_at(source, commit)?;
    let protection = protection_in(&files);
    let protected = protected_at(source, commit, &protection)?;
    let at_start = start.map(|start| protected_at(source, start, &protection)).transpose()?;
    Ok(AuditBase { commit: Some(commit.to_string()), files, protected, start: AuditStart::Within(at_start) })
}

/// What comes before a commit of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepBack {
    SameRun,
    /// The commit is the first of a fork of this run.
    ForkedFrom(RunId),
    /// The commit is the first of the run.
    FirstStart,
}

/// Where the history of a run goes on below one of its commits.
pub fn step_back<S: AuditSource>(
    source: &mut S,
    commit: CommitRecord<'_>,
    run: &RunId,
) -> Result<StepBack, S::Error> {
    if CommitKind::parse(commit.message) != (CommitKind::Start { run_id: run.clone() }) {
        return Ok(StepBack::SameRun);
    }
    let before = match commit.parents.first() {
        Some(parent) => state_at(source, parent)?,
        None => None,
    };
    let run_before = before.as_ref().and_then(|state| state.run_id.as_ref());
    if run_before == Some(run) {
        // A state that begins again: the earlier run of this name was merged, and its branch deleted.
        let is_first = |state: &RunState| state.next_iter == IterationNumber::FIRST;
        let is_new = state_at(source, commit.id)?.is_some_and(|state| is_first(&state))
            && before.is_some_and(|state| !is_first(&state));
        return Ok(if is_new { StepBack::FirstStart } else { StepBack::SameRun });
    }
    Ok(match fork::origin(commit.message) {
        Some((origin, _)) if run_before == Some(&origin) => StepBack::ForkedFrom(origin),
        Some(_) | None => StepBack::FirstStart,
    })
}

/// The run state of a commit; none if there is none or if it cannot be decoded.
pub fn state_at<S: AuditSource>(source: &mut S, commit: &CommitId) -> Result<Option<RunState>, S::Error> {
    let bytes = source.file(commit, Doc::RunState.path())?;
    Ok(bytes.and_then(|bytes| RunState::decode(&bytes).ok()))
}

/// The files of a commit that an audit reads.
pub fn files_at<S: AuditSource>(source: &mut S, commit: &CommitId) -> Result<Files, S::Error> {
    let mut files = Files::new();
    for file in source.runner_files(commit)? {
        if is_read(&file.path) {
            let bytes = source.blob(&file.object, &file.path)?.bytes;
            let stored = kept(&file.path, bytes);
            files.insert(file.path, stored);
        }
    }
    Ok(files)
}

fn new_config(change: &CommitChange) -> Option<&[u8]> {
    match &change.now {
        FileAfter::File(Some(bytes)) if change.path == Doc::Config.path().as_bytes() => Some(bytes),
        FileAfter::File(_) | FileAfter::Deleted | FileAfter::Other => None,
    }
}

/// A commit as the auditor reads it.
fn audited_commit<S: AuditSource>(
    source: &mut S,
    commit: CommitRecord<'_>,
    protection: ProtectedChange,
    frozen: &[FrozenFile],
) -> Result<AuditedCommit, S::Error> {
    let is_users = matches!(CommitKind::parse(commit.message), CommitKind::User { .. });
    let mut changes = Vec::new();
    let mut damaged = Vec::new();
    for change in commit.changes {
        let now = match change.mode.as_str() {
            "000000" => FileAfter::Deleted,
            "100644" | "100755" | "100664" if is_read(&change.path) => {
                let blob = source.blob(&change.object, &change.path)?;
                if !blob.is_intact {
                    damaged.push(RepoPath::of_bytes(&change.path));
                }
                FileAfter::File(Some(kept(&change.path, blob.bytes)))
            }
            "100644" | "100755" | "100664" => {
                // What the user commits may be large and is theirs; what a run commits is checked byte by byte.
                if !is_users && !source.is_intact(&change.object)? {
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
        id: commit.id.to_string(),
        parents: commit.parents.iter().map(ToString::to_string).collect(),
        message: commit.message.to_vec(),
        changes,
        protected: protection.all,
        candidate: recorded_candidate(source, commit, frozen)?,
        check_files: check_files(source, commit, frozen)?,
        protection: protection.derived,
        instructions: protection.instructions,
        damaged,
    })
}

/// What a commit has at the destinations of check files, compared with the files of its parent that go there.
fn check_files<S: AuditSource>(
    source: &mut S,
    commit: CommitRecord<'_>,
    frozen: &[FrozenFile],
) -> Result<Vec<CheckFileAfter>, S::Error> {
    let Some(parent) = commit.parents.first() else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for FrozenFile { destination, source: path } in frozen {
        let is_file = |change: &RawChange| matches!(change.mode.as_str(), "100644" | "100755");
        let change = commit.changes.iter().find(|change| change.path == *destination);
        let committed = source.file(commit.id, &String::from_utf8_lossy(destination))?;
        let wanted = source.file(parent, &String::from_utf8_lossy(path))?;
        let is_frozen = change.is_none_or(is_file) && committed.is_some() && committed == wanted;
        files.push(CheckFileAfter { destination: destination.clone(), is_frozen });
    }
    Ok(files)
}

/// The tree that the guard must have seen, if it ran by the commit's message.
fn recorded_candidate<S: AuditSource>(
    source: &mut S,
    commit: CommitRecord<'_>,
    frozen: &[FrozenFile],
) -> Result<Option<TreeId>, S::Error> {
    let text = String::from_utf8_lossy(commit.message);
    let is_recorded = MessageParts::parse(&text).value(Trailer::Candidate).is_some();
    // A final check may add a task; the guard saw the files before that.
    let is_final = matches!(CommitKind::parse(commit.message), CommitKind::Final { .. });
    match commit.parents.first().filter(|_| is_recorded) {
        Some(parent) if is_final => candidate_of(source, parent, parent, &[]),
        Some(parent) => candidate_of(source, commit.id, parent, frozen),
        None => Ok(None),
    }
}
