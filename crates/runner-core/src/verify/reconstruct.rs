//! What must have come back from agent and guard for a commit to be what it is: a claim and a verdict, made from what the
//! commit records, to be settled again.

use crate::config::OnUsageLimit;
use crate::model::agent_output::{AgentOutput, AgentStatus};
use crate::model::cost::{Amount, RunSpending, number};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::{NodeHistory, RunState};
use crate::step::next_state::{GUARD_NOT_STARTED, NOTES_MAX, UNDONE};
use crate::step::{
    Attempt, ChangeScope, Claim, CostSource, GuardExit, GuardRun, Interruption, Job, LeftFile, Outcome,
    ProtectedPath, ProviderError, SessionExit, SessionFinding, SessionTarget, Snapshot, Usage, UsageLimit,
    Violation, interpret,
};
use crate::strict::canonical_json;

/// What a commit records of its iteration's results.
#[derive(Clone, Debug)]
pub(super) struct RecordedFacts<'c> {
    pub(super) outcome: Outcome,
    pub(super) status: AgentStatus,
    pub(super) guard_exit: Option<GuardExit>,
    /// The tree after it.
    pub(super) tree: &'c [u8],
    /// The state after it.
    pub(super) state: &'c RunState,
    pub(super) work: ChangeScope,
    /// Protected paths that it changed, put back, or that are younger than the run.
    pub(super) protected: Vec<ProtectedPath>,
    /// How many of them were put back.
    pub(super) restored: usize,
}

/// How the guard's process ended, as a trailer has it.
pub(super) fn guard_exit(text: &str) -> Option<GuardExit> {
    match text.strip_prefix("signal ") {
        Some(signal) => signal.parse().ok().map(GuardExit::Signal),
        None => text.parse().ok().map(GuardExit::Code),
    }
}

/// The claim and the verdict that the evidence speaks of.
#[expect(clippy::wildcard_enum_match_arm, reason = "the outcomes of a lawful session are few")]
pub(super) fn rebuild(snapshot: &Snapshot, job: &Job, evidence: &RecordedFacts<'_>) -> (Claim, GuardRun) {
    let lesson = job.target.node().and_then(|node| evidence.state.history_of(node));
    let finding = told_finding(job, evidence, lesson);
    let lawful = match evidence.outcome {
        Outcome::Passed | Outcome::GuardFailed => Some((AgentStatus::Done, evidence.tree)),
        Outcome::Retry => Some((AgentStatus::Retry, evidence.tree)),
        Outcome::Decomposed => Some((AgentStatus::Decomposed, evidence.tree)),
        Outcome::Repaired | Outcome::Replanned => Some((evidence.status, evidence.tree)),
        _ => None,
    };
    let before = snapshot.tree.bytes();
    let as_before =
        if evidence.outcome == Outcome::ReplanRefused { evidence.status } else { AgentStatus::Done };
    let (status, tree) = lawful.unwrap_or((as_before, before));
    let summary = evidence.state.last_summary.clone().unwrap_or_default();
    let attempt = Attempt {
        exit: exit(snapshot, job, evidence),
        answer: LeftFile::Bytes(canonical_json(&AgentOutput { status, summary })),
        tree: LeftFile::Bytes(tree.to_vec()),
        work: evidence.work,
        protected: evidence.protected.clone(),
        usage: usage(&snapshot.state.spent, &evidence.state.spent),
        processes_left: 0,
    };
    let mut claim = interpret(snapshot, job, attempt);
    if let Some(finding) = finding {
        claim.finding = finding;
    }
    (claim, verdict(evidence, lesson))
}

/// How the session ended, as far as what is waited for afterwards hangs on it.
fn exit(snapshot: &Snapshot, job: &Job, evidence: &RecordedFacts<'_>) -> SessionExit {
    let state = evidence.state;
    let wait = state.wait.as_ref();
    let fault = if evidence.outcome == Outcome::RateLimited {
        let secs = wait.and_then(|wait| u32::try_from(wait.secs.get()).ok());
        ProviderError::RateLimited { retry_after_secs: secs }
    } else if evidence.outcome == Outcome::Overloaded {
        ProviderError::Overloaded
    } else if evidence.outcome == Outcome::Disconnected {
        ProviderError::Disconnected
    } else if evidence.outcome == Outcome::UsageLimit {
        let is_this = |limit: &&UsageLimit| limit.agent == job.agent;
        let met = state.usage_limits.iter().find(is_this).and_then(|limit| limit.resets_unix_secs);
        let until = match snapshot.config.on_usage_limit {
            OnUsageLimit::Next => met,
            OnUsageLimit::Wait => wait.and_then(|wait| wait.until_unix_secs),
        };
        ProviderError::UsageLimit { resets_unix_secs: until.map(number) }
    } else {
        return SessionExit::Finished { code: 0 };
    };
    SessionExit::Provider { fault }
}

/// What the session cost, by what the run had cost before it and after it.
fn usage(before: &RunSpending, after: &RunSpending) -> Usage {
    let more = |part: fn(&RunSpending) -> Amount| number(part(after)).saturating_sub(number(part(before)));
    let has_tokens = more(|spent| spent.sessions_without_tokens) == 0;
    let has_cost = more(|spent| spent.sessions_without_cost) == 0;
    let is_guess = more(|spent| spent.estimated_microdollars) > 0;
    Usage {
        input_tokens: has_tokens.then(|| more(|spent| spent.tokens)),
        cost_microdollars: has_cost.then(|| more(|spent| spent.microdollars)),
        cost_source: if is_guess { CostSource::Estimated } else { CostSource::Reported },
        ..Usage::default()
    }
}

/// What the record says of a session that was not lawful; none of one that was.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other outcome is one without an answer")]
fn told_finding(
    job: &Job,
    evidence: &RecordedFacts<'_>,
    lesson: Option<&NodeHistory>,
) -> Option<SessionFinding> {
    let state = evidence.state;
    let summary = lesson.map(|lesson| lesson.summary.clone()).unwrap_or_default();
    let answer = AgentOutput { status: AgentStatus::Retry, summary };
    let rejected = state.repair.as_ref().map(|repair| repair.rejected.clone()).unwrap_or_default();
    let errors =
        || unbounded(state.repair.as_ref().map(|repair| repair.errors.as_slice()).unwrap_or_default());
    let broken = |words: Vec<String>| {
        let violations = words.into_iter().map(|words| Violation::Told { words }).collect();
        SessionFinding::RuleViolations { answer: answer.clone(), rejected: rejected.clone(), violations }
    };
    match evidence.outcome {
        Outcome::InvalidTree => {
            let violations = errors().into_iter().map(|words| Violation::Told { words }).collect();
            Some(SessionFinding::InvalidTree { answer, rejected, errors: Vec::new(), violations })
        }
        Outcome::RepairFailed => Some(broken(errors())),
        Outcome::RepairAbandoned => {
            let told: Vec<String> =
                state.last_summary.iter().flat_map(|told| told.split('\n')).map(str::to_owned).collect();
            Some(broken(unbounded(&told)))
        }
        Outcome::RuleViolation | Outcome::ReplanRefused => {
            let told = lesson.map(|lesson| found_against(lesson, evidence)).unwrap_or_default();
            let is_broken = evidence.outcome == Outcome::RuleViolation || !told.is_empty();
            is_broken.then(|| broken(told))
        }
        Outcome::Interrupted
            if evidence.status == AgentStatus::Done && matches!(job.target, SessionTarget::Leaf(_)) =>
        {
            None
        }
        Outcome::GuardTimedOut | Outcome::GuardNotStarted => None,
        Outcome::Passed
        | Outcome::GuardFailed
        | Outcome::Retry
        | Outcome::Decomposed
        | Outcome::Repaired
        | Outcome::Replanned => None,
        outcome => {
            Some(SessionFinding::NoAnswer { outcome, why: state.last_summary.iter().cloned().collect() })
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the guard was asked in few outcomes")]
fn verdict(evidence: &RecordedFacts<'_>, lesson: Option<&NodeHistory>) -> GuardRun {
    match evidence.outcome {
        Outcome::Passed => GuardRun::Ended { exit: GuardExit::Code(0), output: Vec::new() },
        Outcome::GuardFailed => GuardRun::Ended {
            exit: evidence.guard_exit.unwrap_or(GuardExit::Code(1)),
            output: lesson
                .and_then(|lesson| lesson.guard_output.clone())
                .map(String::into_bytes)
                .unwrap_or_default(),
        },
        Outcome::GuardTimedOut => GuardRun::TimedOut,
        Outcome::GuardNotStarted => {
            let told = evidence.state.last_summary.as_deref().unwrap_or_default();
            GuardRun::NotStarted { why: told.strip_prefix(GUARD_NOT_STARTED).unwrap_or(told).to_owned() }
        }
        Outcome::Interrupted => GuardRun::Interrupted { by: Interruption::Int },
        _ => GuardRun::Skipped,
    }
}

/// What was found against a session, without the notes of files that were put back, which come after it.
fn found_against(lesson: &NodeHistory, evidence: &RecordedFacts<'_>) -> Vec<String> {
    let notes = &lesson.notes;
    let Some(more) = notes.get(NOTES_MAX).and_then(|last| more_in(last)) else {
        let found = notes.len().saturating_sub(evidence.restored);
        return notes.iter().take(found).cloned().collect();
    };
    let kept = notes.iter().take(NOTES_MAX).cloned();
    match more.checked_sub(evidence.restored) {
        // More was found than is kept; how much more is at the end of the summary, unless that was cut too.
        Some(1..) => {
            let last = evidence.state.last_summary.as_deref().and_then(|told| told.lines().last());
            let more = last.and_then(more_in).unwrap_or(1);
            kept.chain(std::iter::repeat_n(String::new(), more)).collect()
        }
        Some(0) => kept.collect(),
        None => kept.take((NOTES_MAX + more).saturating_sub(evidence.restored)).collect(),
    }
}

/// A list that would be bounded to this one.
fn unbounded(list: &[String]) -> Vec<String> {
    let more = list.get(NOTES_MAX).and_then(|last| more_in(last)).unwrap_or_default();
    let kept = list.iter().take(NOTES_MAX).cloned();
    kept.chain(std::iter::repeat_n(String::new(), more)).collect()
}

fn more_in(line: &str) -> Option<usize> {
    line.strip_prefix("and ")?.strip_suffix(" more")?.parse().ok()
}

/// Begins the stand-ins for files without a name, and is sorted behind every other.
const UNNAMED: char = '\u{10ffff}';

/// Whether a path stands in for one that no record names.
pub(super) fn is_unnamed(path: &RepoPath) -> bool {
    path.as_str().starts_with(UNNAMED)
}

/// The protected files that were put back: those that are named by marks, then those that only the notes to the next
/// session name, then as many as are counted and named nowhere.
pub(super) fn restored(named: &[RepoPath], count: usize, lesson: Option<&NodeHistory>) -> Vec<RepoPath> {
    let mut paths = named.to_vec();
    let noted = lesson.into_iter().flat_map(|lesson| &lesson.notes);
    let noted = noted.filter_map(|note| note.strip_prefix('`')?.strip_suffix(UNDONE));
    // A path is held as it is written.
    let noted = noted.filter_map(|path| serde_json::from_value::<RepoPath>(path.into()).ok());
    for path in noted {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths.extend((paths.len()..count).map(|nth| RepoPath::of_bytes(format!("{UNNAMED}{nth:06}").as_bytes())));
    paths.truncate(count.max(named.len()));
    paths
}
