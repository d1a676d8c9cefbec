//! Reconstructs the claim and the evidence of an iteration from what its commit records, to be settled again.

use std::collections::BTreeMap;

use crate::config::OnUsageLimit;
use crate::layout::Doc;
use crate::model::agent_output::{AgentOutput, AgentStatus};
use crate::model::checks::{
    Check, CheckExit, CheckName, CheckRecord, CheckRed, RedFacts, RedKind, RedRecord, TaskProof,
};
use crate::model::cost::{Amount, RunSpending, number};
use crate::model::heldout::{HeldoutCheck, HeldoutRecord, HeldoutResult, HeldoutTask};
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::review::{RecordedReview, ReviewResult, bounded_reasons};
use crate::model::run_state::{NodeHistory, RunState};
use crate::step::review::recorded_exit;
use crate::step::{
    Annotation, Attempt, ChangeScope, CheckEvidence, CheckResult, Claim, CostSource, Evidence, FileChanges,
    GreenRun, GuardExit, GuardPlace, GuardRun, HeldoutEnd, HeldoutGreen, Interruption, Job, JobChecks,
    KeyReport, LeftFile, NoteList, Outcome, PlanningChanges, ProtectedPath, ProviderError, ReviewEvidence,
    SUMMARY_BYTES_MAX, SessionExit, SessionFinding, SessionTarget, Snapshot, Usage, interpret,
};
use crate::strict::canonical_json;
use crate::text::head;

/// The results of an iteration that its commit records.
#[derive(Clone, Debug)]
pub(super) struct RecordedFacts<'c> {
    pub(super) outcome: Outcome,
    pub(super) status: AgentStatus,
    pub(super) guard_exit: Option<GuardExit>,
    pub(super) place: GuardPlace,
    /// tree.json after the iteration.
    pub(super) tree: &'c [u8],
    /// The state after the iteration.
    pub(super) state: &'c RunState,
    pub(super) changes: FileChanges,
    /// Protected paths that the session changed, or that are newer than the run.
    pub(super) protected: Vec<ProtectedPath>,
    /// What the commit records about the checks of the task.
    pub(super) checks: RecordedChecks<'c>,
    pub(super) annotated: AnnotatedFiles,
}

/// What the trailers of a commit record about checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedChecks<'c> {
    /// Those of the task itself.
    pub(super) task: &'c [CheckRecord],
    /// Of tasks above it.
    pub(super) above: &'c [RedRecord],
    pub(super) heldout: &'c [HeldoutRecord],
}

/// The files that only the annotations name: nothing else in the commit shows them.
#[derive(Clone, Debug)]
pub(super) struct AnnotatedFiles {
    /// Memory files whose earlier text the runner restored.
    pub(super) memory: Vec<RepoPath>,
    pub(super) keys: KeyReport,
}

/// What an agent and a guard must have returned for the commit to be as it is.
pub(super) struct ReconstructedSession {
    pub(super) claim: Claim,
    pub(super) evidence: Evidence,
}

/// `questions` is how many questions a planning session added.
pub(super) fn reconstruct(
    snapshot: &Snapshot,
    job: &Job,
    facts: &RecordedFacts<'_>,
    questions: u32,
) -> ReconstructedSession {
    let history = job.target.node().and_then(|node| facts.state.history_of(node));
    let answer = recorded_answer(snapshot, facts);
    let attempt = Attempt {
        exit: session_exit(snapshot, job, facts),
        answer: LeftFile::Bytes(canonical_json(&answer.output)),
        tree: LeftFile::Bytes(answer.tree.to_vec()),
        work: if facts.changes.work_files > 0 { ChangeScope::Execute } else { ChangeScope::Decompose },
        changes: facts.changes,
        protected: facts.protected.clone(),
        new_checks: BTreeMap::new(),
        memory: facts.annotated.memory.clone(),
        keys: facts.annotated.keys.clone(),
        planning: PlanningChanges { discarded: Vec::new(), questions },
        usage: usage(&snapshot.state.spent, &facts.state.spent, facts.state.review.last.as_ref()),
        processes_left: 0,
    };
    let mut claim = interpret(snapshot, job, attempt);
    if let Some(recorded) = recorded_finding(job, facts, history) {
        claim.finding = recorded.finding;
        claim.notes = recorded.notes;
    }
    let checks = check_evidence(job, facts, history);
    let review = review_evidence(snapshot, job, facts);
    let evidence = Evidence { checks, guard: guard_run(facts, history), review };
    ReconstructedSession { claim, evidence }
}

/// The answer of a session and the tree that it left.
struct RecordedAnswer<'c> {
    output: AgentOutput,
    tree: &'c [u8],
}

/// The answer, if the commit records one that was accepted; else one that changes nothing.
#[expect(clippy::wildcard_enum_match_arm, reason = "few outcomes follow an accepted answer")]
fn recorded_answer<'c>(snapshot: &'c Snapshot, facts: &RecordedFacts<'c>) -> RecordedAnswer<'c> {
    let before = snapshot.tree.bytes();
    let (status, tree) = match facts.outcome {
        Outcome::Passed
        | Outcome::Unconfirmed
        | Outcome::ChecksFailed
        | Outcome::GuardFailed
        | Outcome::ReviewRefused
        | Outcome::ReviewFailed => (AgentStatus::Done, facts.tree),
        _ if facts.has_failed_review() => (AgentStatus::Done, facts.tree),
        Outcome::Retry => (AgentStatus::Retry, facts.tree),
        Outcome::Decomposed => (AgentStatus::Decomposed, facts.tree),
        Outcome::Repaired | Outcome::Replanned | Outcome::Planned => (facts.status, facts.tree),
        Outcome::PlanQuestions | Outcome::RepairFailed => (AgentStatus::Retry, before),
        Outcome::ReplanRefused | Outcome::SplitRefused => (facts.status, before),
        _ => (AgentStatus::Done, before),
    };
    let summary = recorded_summary(facts.state.last_summary.as_ref());
    RecordedAnswer { output: AgentOutput { status, summary }, tree }
}

impl RecordedFacts<'_> {
    /// Whether the reviewer, and not the session, failed.
    fn has_failed_review(&self) -> bool {
        let last = self.state.review.last.as_ref();
        last.is_some_and(|review| review.result == ReviewResult::Failed)
    }
}

/// What the reviewer must have returned. Where the state records no review, none took place.
fn review_evidence(snapshot: &Snapshot, job: &Job, facts: &RecordedFacts<'_>) -> ReviewEvidence {
    let Some(RecordedReview { result, reasons, .. }) = &facts.state.review.last else {
        return ReviewEvidence::Skipped;
    };
    let exit = match result {
        ReviewResult::Failed => recorded_exit(facts.outcome, provider_error(snapshot, job, facts)),
        ReviewResult::Accepted | ReviewResult::Refused => SessionExit::Finished { code: 0 },
    };
    let cost = facts.state.review.last.as_ref().map(RecordedReview::cost);
    let usage = cost.map(|cost| Usage {
        input_tokens: cost.tokens,
        cost_microdollars: cost.microdollars,
        // Not the default: a review of unknown cost is not one that cost nothing.
        cost_source: if cost.basis == CostSource::Estimated { cost.basis } else { CostSource::Reported },
        ..Usage::default()
    });
    ReviewEvidence::Ended {
        result: *result,
        reasons: bounded_reasons(reasons),
        exit,
        usage: usage.unwrap_or_default(),
    }
}

/// How the session ended, as far as the recorded wait and usage limits depend on it.
fn session_exit(snapshot: &Snapshot, job: &Job, facts: &RecordedFacts<'_>) -> SessionExit {
    if facts.has_failed_review() {
        return SessionExit::Finished { code: 0 };
    }
    match provider_error(snapshot, job, facts) {
        Some(fault) => SessionExit::Provider { fault },
        None => SessionExit::Finished { code: 0 },
    }
}

/// The provider's failure that a commit records, of the session or of its review.
fn provider_error(snapshot: &Snapshot, job: &Job, facts: &RecordedFacts<'_>) -> Option<ProviderError> {
    let wait = facts.state.wait.as_ref();
    Some(if facts.outcome == Outcome::RateLimited {
        let secs = wait.and_then(|wait| u32::try_from(wait.secs.get()).ok());
        ProviderError::RateLimited { retry_after_secs: secs }
    } else if facts.outcome == Outcome::Overloaded {
        ProviderError::Overloaded
    } else if facts.outcome == Outcome::Disconnected {
        ProviderError::Disconnected
    } else if facts.outcome == Outcome::UsageLimit {
        let resets = match snapshot.config.on_usage_limit {
            OnUsageLimit::Next if !facts.has_failed_review() => {
                let limit = facts.state.usage_limits.iter().find(|limit| limit.agent == job.agent.label());
                limit.and_then(|limit| limit.resets_unix_secs)
            }
            OnUsageLimit::Next | OnUsageLimit::Wait => wait.and_then(|wait| wait.until_unix_secs),
        };
        ProviderError::UsageLimit { resets_unix_secs: resets.map(number) }
    } else {
        return None;
    })
}

/// What the session used: the difference between what the run had used before and after it, without the part of its review.
fn usage(before: &RunSpending, after: &RunSpending, review: Option<&RecordedReview>) -> Usage {
    let before = review.map_or(*before, |review| before.with(review.cost()));
    let more = |part: fn(&RunSpending) -> Amount| number(part(after)).saturating_sub(number(part(&before)));
    let has_tokens = more(|spent| spent.sessions_without_tokens) == 0;
    let has_cost = more(|spent| spent.sessions_without_cost) == 0;
    let is_estimate = more(|spent| spent.estimated_microdollars) > 0;
    Usage {
        input_tokens: has_tokens.then(|| more(|spent| spent.tokens)),
        cost_microdollars: has_cost.then(|| more(|spent| spent.microdollars)),
        cost_source: if is_estimate { CostSource::Estimated } else { CostSource::Reported },
        ..Usage::default()
    }
}

/// A finding whose notes come from the record. The violations themselves are not recorded, only their texts.
struct RecordedFinding {
    finding: SessionFinding,
    notes: NoteList,
}

/// Whether a failed repair answered `retry` and left no plan of its own: then the summary is its answer, and not what was
/// wrong with its plan.
fn gave_up(facts: &RecordedFacts<'_>) -> bool {
    let wrong = facts.state.repair.as_ref().map(|repair| repair.errors.join("\n")).unwrap_or_default();
    let wrong = head(&wrong, SUMMARY_BYTES_MAX);
    facts.state.last_summary.as_deref().is_some_and(|summary| summary != wrong)
}

/// The summary of an answer. An answer always has one; that of a session whose guard could not start is not recorded.
fn recorded_summary(recorded: Option<&String>) -> String {
    recorded.filter(|summary| !summary.is_empty()).cloned().unwrap_or_else(|| "not recorded".to_owned())
}

/// The finding of a session without an accepted answer; `None` if the answer was accepted.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other outcome is one without an answer")]
fn recorded_finding(
    job: &Job,
    facts: &RecordedFacts<'_>,
    history: Option<&NodeHistory>,
) -> Option<RecordedFinding> {
    let state = facts.state;
    let repair = state.repair.as_ref();
    let summary = recorded_summary(history.map(|history| &history.summary));
    let answer = AgentOutput { status: AgentStatus::Retry, summary };
    let rejected = repair.map(|repair| repair.rejected.clone()).unwrap_or_default();
    let repair_notes =
        repair.map(|repair| NoteList { texts: repair.errors.clone(), omitted: repair.errors_omitted });
    let history_notes =
        history.map(|history| NoteList { texts: history.notes.clone(), omitted: history.notes_omitted });
    let violations = |answer, rejected, notes: Option<NoteList>| RecordedFinding {
        finding: SessionFinding::RuleViolations { answer, rejected, violations: Vec::new() },
        notes: notes.unwrap_or_default(),
    };
    match facts.outcome {
        Outcome::InvalidTree => Some(RecordedFinding {
            finding: SessionFinding::InvalidTree {
                answer,
                rejected,
                errors: Vec::new(),
                violations: Vec::new(),
            },
            notes: repair_notes.unwrap_or_default(),
        }),
        Outcome::RepairFailed if gave_up(facts) => None,
        Outcome::RepairFailed => Some(violations(answer, rejected, repair_notes)),
        Outcome::RepairAbandoned => {
            let texts = state.last_summary.iter().cloned().collect();
            Some(violations(answer, rejected, Some(NoteList { texts, omitted: 0 })))
        }
        Outcome::RuleViolation | Outcome::PlanRejected => Some(violations(answer, rejected, history_notes)),
        // A refused replan has notes only if it violated a rule; else it changed nothing.
        Outcome::ReplanRefused => history_notes
            .filter(|notes| !notes.texts.is_empty())
            .map(|notes| violations(answer, rejected, Some(notes))),
        Outcome::Interrupted
            if facts.status == AgentStatus::Done && matches!(job.target, SessionTarget::Leaf(_)) =>
        {
            None
        }
        Outcome::GuardTimedOut | Outcome::GuardNotStarted => None,
        _ if facts.has_failed_review() => None,
        Outcome::Passed
        | Outcome::ReviewRefused
        | Outcome::ReviewFailed
        | Outcome::Unconfirmed
        | Outcome::ChecksFailed
        | Outcome::GuardFailed
        | Outcome::Retry
        | Outcome::Decomposed
        | Outcome::Repaired
        | Outcome::Replanned
        | Outcome::SplitRefused
        | Outcome::Planned
        | Outcome::PlanQuestions => None,
        outcome => Some(RecordedFinding {
            finding: SessionFinding::NoAnswer { outcome, why: state.last_summary.iter().cloned().collect() },
            notes: NoteList::default(),
        }),
    }
}

/// What the checks of the task must have shown for the commit to be as it is.
fn check_evidence(job: &Job, facts: &RecordedFacts<'_>, history: Option<&NodeHistory>) -> CheckEvidence {
    let heldout = heldout_evidence(job, facts);
    let Some(checks) = &job.task.checks else { return heldout };
    let record_of = |check: &Check| facts.checks.task.iter().find(|record| record.name == check.name);
    let red_of = |check: &Check| CheckRed {
        name: check.name.clone(),
        red: record_of(check).map_or(RedKind::Broken, |record| record.red),
        facts: recorded_facts(facts, &checks.node, &check.name),
    };
    let red = checks.red.is_none().then(|| TaskProof {
        node: checks.node.clone(),
        digest: checks.task.digest,
        checks: checks.task.checks.iter().map(red_of).collect(),
    });
    let is_interrupted = facts.outcome == Outcome::Interrupted && facts.status == AgentStatus::Done;
    let green = if has_ended(facts) {
        let result = |check: &Check| CheckResult {
            name: check.name.clone(),
            exit: record_of(check).and_then(|record| record.exit).unwrap_or(CheckExit::Code(0)),
        };
        GreenRun::Ended {
            results: checks.task.checks.iter().map(result).collect(),
            output: history.and_then(|history| history.guard_output.clone()).unwrap_or_default(),
            place: facts.place.clone(),
        }
    } else if is_interrupted {
        GreenRun::Interrupted { by: Interruption::Int }
    } else {
        GreenRun::Skipped
    };
    // Another check failed before the held-out ones, or they were interrupted in its place.
    let has_heldout = green.is_green() && !matches!(green, GreenRun::Interrupted { .. });
    let after = if has_heldout { heldout.heldout } else { HeldoutGreen::Skipped };
    CheckEvidence { red, green, heldout: after, ..heldout }
}

/// What a check showed before the work, as the commit's state has it. Only a rerun proves that.
fn recorded_facts(facts: &RecordedFacts<'_>, node: &NodeId, name: &CheckName) -> Option<RedFacts> {
    facts.state.proof_of(node)?.facts_of(name).cloned()
}

/// What held-out checks, and the checks of tasks above, must have shown for the commit to be as it is.
fn heldout_evidence(job: &Job, facts: &RecordedFacts<'_>) -> CheckEvidence {
    let red_of = |task: &JobChecks, check: &Check| {
        let mut records = facts.checks.above.iter();
        let record = records.find(|record| record.node == task.node && record.name == check.name);
        let red = record.map_or(RedKind::Broken, |record| record.red);
        CheckRed { name: check.name.clone(), red, facts: recorded_facts(facts, &task.node, &check.name) }
    };
    let above = job.task.above.iter().map(|task| TaskProof {
        node: task.node.clone(),
        digest: task.task.digest,
        checks: task.task.checks.iter().map(|check| red_of(task, check)).collect(),
    });
    let record_of = |task: &HeldoutTask, check: &HeldoutCheck| {
        let mut records = facts.checks.heldout.iter();
        records.find(|record| record.node == task.node && record.name == check.name)
    };
    let due = job.task.heldout.iter().filter(|task| task.is_red_due());
    let heldout_red = due.map(|task| {
        let red = |check: &HeldoutCheck| HeldoutCheck {
            red: Some(record_of(task, check).map_or(RedKind::Broken, |record| record.red)),
            ..check.clone()
        };
        HeldoutTask { checks: task.checks.iter().map(red).collect(), ..task.clone() }
    });
    let is_interrupted = facts.outcome == Outcome::Interrupted && facts.status == AgentStatus::Done;
    let heldout = match job.own_heldout() {
        Some(task) if has_ended(facts) => {
            let end = |check: &HeldoutCheck| HeldoutEnd {
                name: check.name.clone(),
                result: record_of(task, check)
                    .and_then(|record| record.result)
                    .unwrap_or(HeldoutResult::Pass),
            };
            let results = task.checks.iter().map(end).collect();
            HeldoutGreen::Ended { results, place: facts.place.clone() }
        }
        Some(_) if is_interrupted => HeldoutGreen::Interrupted { by: Interruption::Int },
        Some(_) | None => HeldoutGreen::Skipped,
    };
    CheckEvidence {
        above: above.collect(),
        heldout_red: heldout_red.collect(),
        heldout,
        ..CheckEvidence::default()
    }
}

/// Whether the checks of a task ran to their end after the session.
#[expect(clippy::wildcard_enum_match_arm, reason = "checks ran in few outcomes")]
fn has_ended(facts: &RecordedFacts<'_>) -> bool {
    match facts.outcome {
        Outcome::Passed
        | Outcome::Unconfirmed
        | Outcome::ChecksFailed
        | Outcome::GuardFailed
        | Outcome::ReviewRefused
        | Outcome::ReviewFailed
        | Outcome::GuardTimedOut
        | Outcome::GuardNotStarted => true,
        _ if facts.has_failed_review() => true,
        Outcome::Interrupted => {
            facts.checks.task.iter().any(|record| record.exit.is_some())
                || facts.checks.heldout.iter().any(|record| record.result.is_some())
        }
        _ => false,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the guard ran in few outcomes")]
fn guard_run(facts: &RecordedFacts<'_>, history: Option<&NodeHistory>) -> GuardRun {
    let succeeded =
        GuardRun::Ended { exit: GuardExit::Code(0), output: Vec::new(), place: facts.place.clone() };
    match facts.outcome {
        Outcome::Passed | Outcome::Unconfirmed | Outcome::ReviewRefused | Outcome::ReviewFailed => succeeded,
        _ if facts.has_failed_review() => succeeded,
        Outcome::GuardFailed => {
            let output = history.and_then(|history| history.guard_output.clone());
            GuardRun::Ended {
                exit: facts.guard_exit.unwrap_or(GuardExit::Code(1)),
                output: output.map(String::into_bytes).unwrap_or_default(),
                place: facts.place.clone(),
            }
        }
        Outcome::GuardTimedOut => GuardRun::TimedOut,
        Outcome::GuardNotStarted => {
            GuardRun::NotStarted { why: facts.state.guard_error.clone().unwrap_or_default() }
        }
        Outcome::Interrupted => GuardRun::Interrupted { by: Interruption::Int },
        _ => GuardRun::Skipped,
    }
}

/// The first character of a placeholder for a file that no record names. No other path sorts after it.
const UNNAMED: char = '\u{10ffff}';

/// Whether a path is a placeholder for one that no record names.
pub(super) fn is_unnamed(path: &RepoPath) -> bool {
    path.as_str().starts_with(UNNAMED)
}

/// More files than any session restores: a number in a message must not fill the memory.
const RESTORED_MAX: usize = 100_000;

/// The protected files that the runner restored: those that annotations name, then those that only the node's history names,
/// then a placeholder for each one that is only counted. `others` annotations are about other files.
pub(super) fn restored_files(
    annotations: &[Annotation],
    others: usize,
    history: Option<&NodeHistory>,
) -> Vec<RepoPath> {
    let mut named = Vec::new();
    let mut files = 0_usize;
    let mut omitted = None;
    for annotation in annotations {
        match annotation {
            Annotation::GuardFileRestored { path } | Annotation::CheckFileRestored { path } => {
                named.push(path.clone());
            }
            Annotation::GuardFilesOmitted { count } => omitted = Some(*count),
            Annotation::GuardFileChanged { .. } | Annotation::GuardFileCreated { .. } => {}
            Annotation::PlanEdited { .. }
            | Annotation::MemoryRestored { .. }
            | Annotation::KeyRedacted { .. }
            | Annotation::KeyCommitted { .. }
            | Annotation::SelectedTaskEdited
            | Annotation::CheckUnproven { .. }
            | Annotation::RepairAbandoned
            | Annotation::NothingChanged
            | Annotation::ConfirmedUnchanged
            | Annotation::ReviewOverruled
            | Annotation::InPlace
            | Annotation::IgnoredWorktree
            | Annotation::Unknown => continue,
        }
        files += 1;
    }
    let count = match omitted {
        Some(omitted) => (files - 1).saturating_add(omitted).saturating_sub(others).min(RESTORED_MAX),
        None => named.len(),
    };
    let minimum = named.len();
    for path in history.into_iter().flat_map(|history| &history.restored) {
        if !named.contains(path) && Doc::at(path.as_str().as_bytes()).is_none() {
            named.push(path.clone());
        }
    }
    for nth in named.len()..count {
        named.push(RepoPath::of_bytes(format!("{UNNAMED}{nth:06}").as_bytes()));
    }
    named.truncate(count.max(minimum));
    named
}
