//! The run's book-keeping after an iteration, and what the next session on the node is told.

use super::attempt::GuardRun;
use super::escalation::{UsageLimit, limits_after};
use super::interpret::{Claim, SessionFinding};
use super::outcome::{NextAction, Outcome, OutcomeClass};
use super::plan::{Job, SessionTarget, leaf_of};
use super::settle::Decision;
use super::snapshot::Snapshot;
use crate::config::OnUsageLimit;
use crate::model::cost::{LeafSpending, SessionCost, amount};
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::{NodeHistory, PendingRepair, RunState, SEMANTICS};
use crate::model::tree::Tree;
use crate::text::{head, lines, tail};

/// How much of a summary is kept; the whole is in output.json.
pub const SUMMARY_BYTES_MAX: usize = 8 << 10;
/// How much of the guard's output is kept: a quarter from its beginning, the rest from its end.
pub const GUARD_OUTPUT_BYTES_MAX: usize = 16 << 10;
/// How much the line may take that says how much is missing.
const MARKER_BYTES_MAX: usize = 64;
/// How many notes or errors are kept, and how much of each.
pub(crate) const NOTES_MAX: usize = 100;
const NOTE_BYTES_MAX: usize = 500;
/// What the state says of a guard that could not be started, before the cause.
pub(crate) const GUARD_NOT_STARTED: &str = "the guard could not be started: ";
/// What a session is told of a protected file that it changed, after the file's name.
pub(crate) const UNDONE: &str = "` is protected: your change to it was undone";
/// How many nodes are remembered that were worked on and are still open.
const LESSONS_MAX: usize = 8;

/// The state after the iteration.
pub(super) fn after(
    snapshot: &Snapshot,
    job: &Job,
    claim: &Claim,
    verdict: &GuardRun,
    (ruling, tree, next): (&Decision<'_>, &Tree, &NextAction),
) -> RunState {
    let before = &snapshot.state;
    let nature = ruling.outcome.class();
    let stops = matches!(next, NextAction::Stop(_));
    RunState {
        run_id: Some(snapshot.run_id.clone()),
        next_iter: job.iteration.next(),
        last_status: Some(ruling.status),
        last_summary: last_summary(claim, verdict),
        last_guard: Some(ruling.guard),
        last_node: job.target.node().cloned(),
        last_outcome: Some(ruling.outcome),
        failures_in_row: match nature {
            OutcomeClass::Answered => 0,
            // The user looked: the next invocation has all its failures before it again.
            OutcomeClass::Failure if stops => 0,
            OutcomeClass::Failure => before.failures_in_row.saturating_add(1),
            OutcomeClass::TimeLimit
            | OutcomeClass::Interrupted
            | OutcomeClass::Transient
            | OutcomeClass::UsageLimit
            | OutcomeClass::NeedsUser => before.failures_in_row,
        },
        transients_in_row: match nature {
            OutcomeClass::Transient | OutcomeClass::UsageLimit => before.transients_in_row.saturating_add(1),
            OutcomeClass::Interrupted => before.transients_in_row,
            OutcomeClass::Answered
            | OutcomeClass::TimeLimit
            | OutcomeClass::Failure
            | OutcomeClass::NeedsUser => 0,
        },
        node_history: node_history(before, job, claim, verdict, (ruling, tree)),
        repair: repair(before, job, claim, ruling.outcome),
        replanned: replanned(before, job, ruling.outcome),
        pinned: pinned(before, claim, ruling.outcome),
        wait: match next {
            NextAction::Wait(wait) => Some(wait.clone()),
            NextAction::Go | NextAction::Stop(_) | NextAction::Unknown => None,
        },
        usage_limits: usage_limits(snapshot, job, claim, ruling.outcome),
        spent: before.spent.with(cost(snapshot, job, claim)),
        spent_by_leaf: spent_by_leaf(before, leaf_of(&job.target), cost(snapshot, job, claim), tree),
        baseline: before.baseline.clone(),
        semantics: SEMANTICS,
    }
}

/// What the session cost.
pub(super) fn cost(snapshot: &Snapshot, job: &Job, claim: &Claim) -> SessionCost {
    let price = snapshot.config.prices.get(job.executor.priced_as()).copied();
    SessionCost::of(&claim.exit, claim.usage, price)
}

/// The agents that have used up their allowance, if the ladder asks for them.
pub(super) fn usage_limits(
    snapshot: &Snapshot,
    job: &Job,
    claim: &Claim,
    outcome: Outcome,
) -> Vec<UsageLimit> {
    if snapshot.config.on_usage_limit == OnUsageLimit::Wait {
        return Vec::new();
    }
    let (before, agent) = (&snapshot.state.usage_limits, (job.agent.as_str(), leaf_of(&job.target)));
    limits_after(before, agent, outcome, claim.exit.resets_unix_secs())
}

/// What each leaf has cost that is still open, with this session.
fn spent_by_leaf(before: &RunState, node: &NodeId, cost: SessionCost, tree: &Tree) -> Vec<LeafSpending> {
    let mut all = before.spent_by_leaf.clone();
    let at = all.iter().position(|spent| spent.node == *node).map(|at| all.remove(at));
    let none = || LeafSpending { node: node.clone(), tokens: amount(0), microdollars: amount(0) };
    all.push(at.unwrap_or_else(none).with(cost));
    all.retain(|spent| {
        is_open_leaf(tree, &spent.node) && *spent != LeafSpending { node: spent.node.clone(), ..none() }
    });
    all.sort_by(|one, other| one.node.cmp(&other.node));
    all
}

fn is_open_leaf(tree: &Tree, id: &NodeId) -> bool {
    tree.path_to(id).is_some_and(|path| path.last().is_some_and(|node| node.is_leaf() && !node.passes))
}

/// What the iteration said of itself: the agent's words, or the rules that it broke.
pub(super) fn last_summary(claim: &Claim, verdict: &GuardRun) -> Option<String> {
    let listed = |all: &[String]| Some(all.join("\n")).filter(|text| !text.is_empty());
    let told = match &claim.finding {
        SessionFinding::NoAnswer { why, .. } => listed(why),
        SessionFinding::InvalidTree { .. } | SessionFinding::RuleViolations { .. } => {
            listed(&findings(claim))
        }
        SessionFinding::Accepted { answer, .. } => match verdict {
            GuardRun::NotStarted { why } => Some(format!("{GUARD_NOT_STARTED}{why}")),
            GuardRun::Skipped
            | GuardRun::Ended { .. }
            | GuardRun::TimedOut
            | GuardRun::Interrupted { .. } => Some(answer.summary.clone()),
        },
    };
    told.map(|text| head(&text, SUMMARY_BYTES_MAX).to_owned())
}

/// Everything that was found against a session, one line each, bounded.
pub(super) fn findings(claim: &Claim) -> Vec<String> {
    let found: Vec<String> = match &claim.finding {
        SessionFinding::NoAnswer { why, .. } => why.clone(),
        SessionFinding::InvalidTree { errors, violations, .. } => {
            let errors = errors.iter().map(|error| format!("tree.json: {error}"));
            errors.chain(violations.iter().map(ToString::to_string)).collect()
        }
        SessionFinding::RuleViolations { violations, .. } => {
            violations.iter().map(ToString::to_string).collect()
        }
        SessionFinding::Accepted { .. } => Vec::new(),
    };
    bounded(found)
}

fn bounded(notes: Vec<String>) -> Vec<String> {
    let more = notes.len().saturating_sub(NOTES_MAX);
    let kept = notes.into_iter().take(NOTES_MAX).map(|note| head(&note, NOTE_BYTES_MAX).to_owned());
    kept.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// The lessons after the iteration: those of nodes that still wait, the newest last.
fn node_history(
    before: &RunState,
    job: &Job,
    claim: &Claim,
    verdict: &GuardRun,
    (ruling, tree): (&Decision<'_>, &Tree),
) -> Vec<NodeHistory> {
    let mut lessons = before.node_history.clone();
    if let Some(node) = job.target.node() {
        let last = lessons.iter().position(|lesson| lesson.node == *node).map(|at| lessons.remove(at));
        lessons.extend(history_entry(node, last, job, claim, (verdict, ruling)));
    }
    lessons.retain(|lesson| is_open_leaf(tree, &lesson.node));
    lessons.split_off(lessons.len().saturating_sub(LESSONS_MAX))
}

/// What the next session on this node is told. A session without an answer leaves what was known before.
fn history_entry(
    node: &NodeId,
    last: Option<NodeHistory>,
    job: &Job,
    claim: &Claim,
    (verdict, ruling): (&GuardRun, &Decision<'_>),
) -> Option<NodeHistory> {
    let outcome = ruling.outcome;
    if outcome.class() != OutcomeClass::Answered {
        let then = Some(outcome);
        return Some(match last {
            Some(last) => NodeHistory { later_outcome: then, ..last },
            None => NodeHistory {
                node: node.clone(),
                iter: job.iteration,
                outcome,
                summary: String::new(),
                notes: Vec::new(),
                guard_output: None,
                later_outcome: None,
            },
        });
    }
    let restored = claim.protected.restore.iter();
    let restored = restored.map(|path| format!("`{path}{UNDONE}"));
    Some(NodeHistory {
        node: node.clone(),
        iter: job.iteration,
        outcome,
        summary: summary(claim),
        notes: bounded(findings(claim).into_iter().chain(restored).collect()),
        guard_output: guard_output(verdict).filter(|_| outcome == Outcome::GuardFailed),
        later_outcome: None,
    })
}

fn summary(claim: &Claim) -> String {
    match &claim.finding {
        SessionFinding::InvalidTree { answer, .. }
        | SessionFinding::RuleViolations { answer, .. }
        | SessionFinding::Accepted { answer, .. } => head(&answer.summary, SUMMARY_BYTES_MAX).to_owned(),
        SessionFinding::NoAnswer { .. } => String::new(),
    }
}

/// What the guard printed, clean and bounded.
pub(super) fn guard_output(verdict: &GuardRun) -> Option<String> {
    let GuardRun::Ended { output, .. } = verdict else { return None };
    let text = lines(&String::from_utf8_lossy(output));
    if text.len() <= GUARD_OUTPUT_BYTES_MAX {
        return Some(text);
    }
    // With the marker it is no longer than the bound: what was bounded once stays as it is.
    let room = GUARD_OUTPUT_BYTES_MAX - MARKER_BYTES_MAX;
    let start = head(&text, room / 4);
    let end = tail(&text, room - room / 4);
    let left_out = text.len() - start.len() - end.len();
    Some(format!("{start}\n[{left_out} bytes left out]\n{end}"))
}

/// The rejected tree that waits for a repair.
fn repair(before: &RunState, job: &Job, claim: &Claim, outcome: Outcome) -> Option<PendingRepair> {
    let rejected = match &claim.finding {
        SessionFinding::InvalidTree { rejected, .. } | SessionFinding::RuleViolations { rejected, .. } => {
            rejected.clone()
        }
        SessionFinding::NoAnswer { .. } | SessionFinding::Accepted { .. } => String::new(),
    };
    match (&job.target, outcome) {
        (SessionTarget::Leaf(node) | SessionTarget::Replan(node), Outcome::InvalidTree) => {
            Some(PendingRepair {
                iter: job.iteration,
                node: node.clone(),
                mode: job.target.mode(),
                tries: 0,
                rejected,
                errors: findings(claim),
            })
        }
        (SessionTarget::Repair(last), Outcome::RepairFailed) => Some(PendingRepair {
            iter: job.iteration,
            node: last.node.clone(),
            mode: last.mode,
            tries: last.tries.saturating_add(1),
            rejected,
            errors: findings(claim),
        }),
        (_, Outcome::Repaired | Outcome::RepairAbandoned) => None,
        (_, _) => before.repair.clone(),
    }
}

fn replanned(before: &RunState, job: &Job, outcome: Outcome) -> Vec<NodeId> {
    let mut replanned = before.replanned.clone();
    if let (SessionTarget::Replan(node), OutcomeClass::Answered) = (&job.target, outcome.class()) {
        replanned.push(node.clone());
        replanned.sort();
        replanned.dedup();
    }
    replanned
}

/// A guard file that took part in a pass is pinned from then on.
fn pinned(before: &RunState, claim: &Claim, outcome: Outcome) -> Vec<RepoPath> {
    let mut pinned = before.pinned.clone();
    if outcome == Outcome::Passed {
        pinned.extend(claim.protected.unpinned.iter().cloned());
        pinned.sort();
        pinned.dedup();
    }
    pinned
}
