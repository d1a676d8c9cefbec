//! Audits a run from its objects: finds its commits, checks them one by one, and reports.

use runner_core::commit_message::CommitKind;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::step::Outcome;
use runner_core::verify::{
    AuditBase, AuditFinding, CommitAudit, CommitRecord, Rule, RunAudit, RunAuditResult, StepBack, Verdict,
    base_before, base_within, step_back,
};
use serde::Serialize;

use crate::object_source::{KnownCommit, ObjectError, ObjectReader, ObjectSource};

/// The audit of a run, commit by commit.
#[derive(Debug)]
pub(crate) struct ObjectAudit<R> {
    source: ObjectSource<R>,
    run: RunId,
    tip: CommitId,
    /// In the order in which they are checked: oldest first.
    commits: Vec<HistoryCommit>,
    next: usize,
    audit: Option<RunAudit>,
    iterations: Vec<AuditedIteration>,
    failure: Option<ObjectError>,
    /// What was checked when the audit stopped, if it could not go on.
    failed_at: String,
}

#[derive(Clone, Debug)]
struct HistoryCommit {
    id: CommitId,
    known: KnownCommit,
}

impl HistoryCommit {
    fn record(&self) -> CommitRecord<'_> {
        CommitRecord {
            id: &self.id,
            parents: &self.known.content.parents,
            message: &self.known.content.message,
            changes: &self.known.changes,
        }
    }

    fn is_users(&self) -> bool {
        matches!(CommitKind::parse(&self.known.content.message), CommitKind::User { .. })
    }
}

/// The commits of a run, and what is before them.
struct ObjectHistory {
    commits: Vec<HistoryCommit>,
    first_run: RunId,
    /// The oldest commit that is there, if the history begins before it: the base for the others.
    cut_at: Option<CommitId>,
}

/// What an audit comes to, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    pub run: RunId,
    pub tip: CommitId,
    pub verdict: Verdict,
    pub commits: usize,
    pub findings: Vec<ReportedFinding>,
    pub unchecked: Vec<String>,
    /// The leaves that passed, in their order in the tree.
    pub passed: Vec<NodeId>,
    pub complete: bool,
    /// Every iteration in the audited commits, oldest first.
    pub iterations: Vec<AuditedIteration>,
}

/// A violated rule with its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportedFinding {
    #[serde(flatten)]
    pub finding: AuditFinding,
    pub requirement: &'static str,
}

/// An iteration as its commit records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditedIteration {
    /// A fork also has the iterations of the run that it continues.
    pub run: RunId,
    pub iter: IterationNumber,
    pub commit: String,
    pub node: Option<NodeId>,
    pub outcome: Option<Outcome>,
}

impl<R: ObjectReader> ObjectAudit<R> {
    /// Finds the commits of a run up to `tip`.
    pub(crate) fn new(reader: R, run: &RunId, tip: &CommitId) -> Self {
        let mut audit = Self {
            source: ObjectSource::new(reader, tip.as_str().len()),
            run: run.clone(),
            tip: tip.clone(),
            commits: Vec::new(),
            next: 0,
            audit: None,
            iterations: Vec::new(),
            failure: None,
            failed_at: tip.to_string(),
        };
        if let Err(error) = audit.begin() {
            audit.failure = Some(error);
        }
        audit
    }

    fn begin(&mut self) -> Result<(), ObjectError> {
        let ObjectHistory { commits, first_run, cut_at } = self.history()?;
        let parent = commits.first().and_then(|commit| commit.known.content.parents.first());
        let base = match (&cut_at, parent) {
            (Some(oldest), _) => base_within(&mut self.source, oldest, None)?,
            (None, Some(parent)) => base_before(&mut self.source, parent)?,
            (None, None) => AuditBase::default(),
        };
        let records: Vec<CommitRecord<'_>> = commits.iter().map(HistoryCommit::record).collect();
        let mut audit = RunAudit::new(&mut self.source, first_run, base, &records)?;
        if let Some(commit) = cut_at {
            audit.add_missing_start(format!("everything up to {}, where the commits end", commit.prefix(12)));
        }
        self.commits = commits;
        self.audit = Some(audit);
        Ok(())
    }

    /// The commits of the run, oldest first.
    fn history(&mut self) -> Result<ObjectHistory, ObjectError> {
        let mut commits = Vec::new();
        let mut run = self.run.clone();
        let mut next = Some(self.tip.clone());
        let mut cut_at = None;
        let mut has_start = false;
        while let Some(id) = next.take() {
            let Some(known) = self.source.known_commit(&id)? else {
                cut_at = Some(id);
                break;
            };
            next = known.content.parents.first().cloned();
            let commit = HistoryCommit { id, known };
            let step = step_back(&mut self.source, commit.record(), &run)?;
            commits.push(commit);
            match step {
                StepBack::SameRun => {}
                StepBack::ForkedFrom(origin) => run = origin,
                StepBack::FirstStart => {
                    has_start = true;
                    break;
                }
            }
        }
        commits.reverse();
        if cut_at.is_none() && !has_start {
            // The user's own commits before the run do not belong to it.
            let first = commits.iter().position(|commit| !commit.is_users()).unwrap_or(commits.len());
            commits.drain(..first);
        }
        Ok(ObjectHistory { commits, first_run: run, cut_at })
    }

    /// Checks the next commit; false when there is none.
    pub(crate) fn step(&mut self) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let (Some(audit), Some(commit)) = (&mut self.audit, self.commits.get(self.next)) else {
            return false;
        };
        match audit.check(&mut self.source, commit.record()) {
            Ok(checked) => self.iterations.extend(audited_iteration(&checked.audit)),
            Err(error) => {
                self.failed_at = commit.id.to_string();
                self.failure = Some(error);
                return false;
            }
        }
        self.next += 1;
        self.next < self.commits.len()
    }

    pub(crate) fn checked(&self) -> usize {
        self.next
    }

    pub(crate) fn commits(&self) -> usize {
        self.commits.len()
    }

    /// Why the audit could not go on.
    pub(crate) fn failure(&self) -> Option<&ObjectError> {
        self.failure.as_ref()
    }

    /// The report, and the reader with what it read.
    pub(crate) fn finish(self) -> (AuditReport, R) {
        let Self { source, run, tip, audit, iterations, failure, failed_at, .. } = self;
        let result = match &failure {
            Some(_) => audit.map(RunAudit::stop),
            None => audit.map(RunAudit::finish),
        };
        let mut report = AuditReport::new(run, tip, iterations, result);
        match failure {
            Some(ObjectError::Omitted { id }) => {
                let short: String = failed_at.chars().take(12).collect();
                report.unchecked.push(format!(
                    "everything from {short} on: the object {id} contains a key and was left out"
                ));
            }
            Some(error) => report.findings.push(reported(AuditFinding {
                commit: failed_at,
                iter: None,
                rule: Rule::Object,
                expected: "the objects of every commit".to_owned(),
                found: error.to_string(),
            })),
            None => {}
        }
        report.verdict = match (report.findings.is_empty(), report.unchecked.is_empty()) {
            (false, _) => Verdict::Violated,
            (true, false) => Verdict::Partial,
            (true, true) => Verdict::Verified,
        };
        (report, source.reader)
    }
}

impl AuditReport {
    fn new(
        run: RunId,
        tip: CommitId,
        iterations: Vec<AuditedIteration>,
        result: Option<RunAuditResult>,
    ) -> Self {
        let mut report = Self {
            run,
            tip,
            verdict: Verdict::Partial,
            commits: 0,
            findings: Vec::new(),
            unchecked: Vec::new(),
            passed: Vec::new(),
            complete: false,
            iterations,
        };
        if let Some(result) = result {
            report.commits = result.commits;
            report.findings = result.findings.into_iter().map(reported).collect();
            report.unchecked = result.unchecked;
            report.passed = result.summary.passed;
            report.complete = result.summary.is_complete;
        }
        report
    }
}

fn reported(finding: AuditFinding) -> ReportedFinding {
    ReportedFinding { requirement: finding.rule.description(), finding }
}

fn audited_iteration(audit: &CommitAudit) -> Option<AuditedIteration> {
    let CommitKind::Iteration { run_id, .. } = &audit.kind else { return None };
    Some(AuditedIteration {
        run: run_id.clone(),
        iter: audit.kind.iter()?,
        commit: audit.commit.clone(),
        node: audit.kind.node().cloned(),
        outcome: audit.outcome,
    })
}
