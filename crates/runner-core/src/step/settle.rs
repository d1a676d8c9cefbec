//! Claim and verdict to transition: the update table, and everything that is written because of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::annotations::annotations;
use super::attempt::{GuardExit, GuardRun, ProviderError, SessionExit};
use super::backoff::Wait;
use super::escalation::choose;
use super::interpret::{Claim, SessionFinding};
use super::merge::PlanEdit;
use super::message;
use super::meta::IterationMeta;
use super::next_state;
use super::outcome::{Interruption, NextAction, Outcome, OutcomeClass, StopReason};
use super::plan::{Job, REPAIRS_MAX, SessionMode, SessionTarget, leaf_of};
use super::snapshot::Snapshot;
use crate::config::OnUsageLimit;
use crate::model::agent_output::AgentStatus;
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::{GuardResult, RunState};
use crate::model::tree::{MAX_ATTEMPTS_RANGE, Node, Tree};

/// So many failures in a row that waiting does not mend stop the loop.
pub const FAILURES_MAX: u32 = 3;

/// One iteration's end: what is committed and what follows. A function of snapshot, attempt and verdict alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The tree after the iteration.
    pub tree: Tree,
    /// The run's book-keeping after it.
    pub state: RunState,
    /// How it ended.
    pub outcome: Outcome,
    /// The commit's message, whole.
    pub message: String,
    /// What meta.json says, but for the times.
    pub meta: IterationMeta,
    /// Protected files to commit as the last commit has them.
    pub restore: Vec<RepoPath>,
    /// What follows.
    pub next: NextAction,
}

/// Whether the iteration cost the node an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptCharge {
    /// It did.
    Charged,
    /// It did not.
    Free,
}

/// What becomes of the tree.
#[derive(Clone, Copy, Debug)]
enum TreeUpdate<'c> {
    /// It is as before.
    Restored,
    /// It is as before, and the selected node has one attempt more.
    RestoredCharged,
    /// The agent's plan is taken.
    Taken(&'c Tree),
    /// The agent's plan is taken, and the selected node has one attempt more.
    TakenCharged(&'c Tree),
    /// The agent's plan is taken, and the selected node passes.
    TakenPassed(&'c Tree),
    /// The agent's plan is taken, and this rewritten leaf gets new attempts.
    TakenGranted(&'c Tree, &'c NodeId),
}

/// One row of the update table, as it applies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision<'c> {
    pub(super) outcome: Outcome,
    pub(super) status: AgentStatus,
    pub(super) guard: GuardResult,
    pub(super) guard_exit: Option<GuardExit>,
    /// The accepted edits of the plan.
    pub(super) edits: &'c [PlanEdit],
    change: TreeUpdate<'c>,
}

impl Decision<'_> {
    pub(super) fn charge(&self) -> AttemptCharge {
        match self.change {
            TreeUpdate::RestoredCharged | TreeUpdate::TakenCharged(_) => AttemptCharge::Charged,
            TreeUpdate::Restored
            | TreeUpdate::Taken(_)
            | TreeUpdate::TakenPassed(_)
            | TreeUpdate::TakenGranted(..) => AttemptCharge::Free,
        }
    }
}

/// Settles an iteration.
pub fn settle(snapshot: &Snapshot, job: &Job, claim: &Claim, verdict: &GuardRun) -> Transition {
    let ruling = decide(snapshot, job, claim, verdict);
    let tree = updated_tree(snapshot, job, ruling.change);
    let marks = annotations(job, claim, &ruling);
    let next = next(snapshot, job, claim, verdict, ruling.outcome);
    let state = next_state::after(snapshot, job, claim, verdict, (&ruling, &tree, &next));
    let tree_sha256 = tree.sha256();
    let message = message::compose(job, &state, &ruling, &marks, (tree_sha256, snapshot.user_commits));
    let meta =
        IterationMeta::new(snapshot, job, claim, &ruling, (marks, tree_sha256, next.clone(), state.spent));
    let restore = claim.protected.restore.clone();
    Transition { tree, state, outcome: ruling.outcome, message, meta, restore, next }
}

/// The update table.
fn decide<'c>(snapshot: &Snapshot, job: &'c Job, claim: &'c Claim, verdict: &GuardRun) -> Decision<'c> {
    let row = |outcome, status, change| Decision {
        outcome,
        status,
        guard: GuardResult::Skipped,
        guard_exit: None,
        edits: &[],
        change,
    };
    match (&claim.finding, &job.target) {
        (SessionFinding::NoAnswer { outcome, .. }, _) => {
            row(*outcome, AgentStatus::Retry, TreeUpdate::Restored)
        }
        (SessionFinding::InvalidTree { .. }, SessionTarget::Leaf(_)) => {
            row(Outcome::InvalidTree, AgentStatus::Retry, TreeUpdate::RestoredCharged)
        }
        (SessionFinding::InvalidTree { .. }, SessionTarget::Replan(_)) => {
            row(Outcome::InvalidTree, AgentStatus::Retry, TreeUpdate::Restored)
        }
        (SessionFinding::RuleViolations { .. }, SessionTarget::Leaf(_)) => {
            row(Outcome::RuleViolation, AgentStatus::Retry, TreeUpdate::RestoredCharged)
        }
        (SessionFinding::RuleViolations { .. }, SessionTarget::Replan(_)) => {
            row(Outcome::ReplanRefused, AgentStatus::Retry, TreeUpdate::Restored)
        }
        (
            SessionFinding::InvalidTree { .. } | SessionFinding::RuleViolations { .. },
            SessionTarget::Repair(repair),
        ) => {
            let over = repair.tries.saturating_add(1) >= REPAIRS_MAX;
            let outcome = if over { Outcome::RepairAbandoned } else { Outcome::RepairFailed };
            row(outcome, AgentStatus::Retry, TreeUpdate::Restored)
        }
        (SessionFinding::Accepted { answer, tree, edits }, SessionTarget::Repair(repair)) => {
            let rewritten = repair.mode == SessionMode::Replan && is_rewritten(snapshot, tree, &repair.node);
            let change = if rewritten {
                TreeUpdate::TakenGranted(tree, &repair.node)
            } else {
                TreeUpdate::Taken(tree)
            };
            Decision { edits, ..row(Outcome::Repaired, answer.status, change) }
        }
        (SessionFinding::Accepted { answer, tree, edits }, SessionTarget::Replan(node)) => {
            let taken = |change| Decision { edits, ..row(Outcome::Replanned, answer.status, change) };
            if answer.status == AgentStatus::Decomposed {
                taken(TreeUpdate::Taken(tree))
            } else if is_rewritten(snapshot, tree, node) {
                taken(TreeUpdate::TakenGranted(tree, node))
            } else {
                row(Outcome::ReplanRefused, answer.status, TreeUpdate::Restored)
            }
        }
        (SessionFinding::Accepted { answer, tree, edits }, SessionTarget::Leaf(_)) => {
            let taken = |outcome, change| Decision { edits, ..row(outcome, answer.status, change) };
            match answer.status {
                AgentStatus::Retry => taken(Outcome::Retry, TreeUpdate::TakenCharged(tree)),
                AgentStatus::Decomposed => taken(Outcome::Decomposed, TreeUpdate::Taken(tree)),
                AgentStatus::Done => decide_done(verdict, tree, edits),
            }
        }
    }
}

/// The rows of a lawful `done`: the guard's word decides, and without one nothing is taken.
fn decide_done<'c>(verdict: &GuardRun, tree: &'c Tree, edits: &'c [PlanEdit]) -> Decision<'c> {
    let unsaid = |outcome| Decision {
        outcome,
        status: AgentStatus::Done,
        guard: GuardResult::Skipped,
        guard_exit: None,
        edits: &[],
        change: TreeUpdate::Restored,
    };
    let said = |outcome, guard, exit: GuardExit, change| Decision {
        guard,
        guard_exit: Some(exit),
        edits,
        change,
        ..unsaid(outcome)
    };
    match verdict {
        GuardRun::Ended { exit: exit @ GuardExit::Code(0), .. } => {
            said(Outcome::Passed, GuardResult::Pass, *exit, TreeUpdate::TakenPassed(tree))
        }
        GuardRun::Ended { exit, .. } => {
            said(Outcome::GuardFailed, GuardResult::Fail, *exit, TreeUpdate::TakenCharged(tree))
        }
        GuardRun::NotStarted { .. } | GuardRun::Skipped => unsaid(Outcome::GuardNotStarted),
        GuardRun::TimedOut => unsaid(Outcome::GuardTimedOut),
        GuardRun::Interrupted { .. } => unsaid(Outcome::Interrupted),
    }
}

/// Whether a leaf is still one and asks for something else than before.
fn is_rewritten(snapshot: &Snapshot, after: &Tree, id: &NodeId) -> bool {
    let node = |tree: &Tree| tree.path_to(id).and_then(|path| path.last().map(|node| (*node).clone()));
    match (node(&snapshot.tree), node(after)) {
        (Some(was), Some(is)) => is.is_leaf() && (was.goal != is.goal || was.acceptance != is.acceptance),
        (None | Some(_), _) => false,
    }
}

fn updated_tree(snapshot: &Snapshot, job: &Job, change: TreeUpdate<'_>) -> Tree {
    let selected = job.target.node();
    let charge = |node: &mut Node| node.attempts = node.attempts.saturating_add(1).min(node.max_attempts);
    match change {
        TreeUpdate::Restored => snapshot.tree.clone(),
        TreeUpdate::RestoredCharged => with_leaf(&snapshot.tree, selected, charge),
        TreeUpdate::Taken(tree) => tree.clone(),
        TreeUpdate::TakenCharged(tree) => with_leaf(tree, selected, charge),
        TreeUpdate::TakenPassed(tree) => with_leaf(tree, selected, |node| node.passes = true),
        TreeUpdate::TakenGranted(tree, leaf) => {
            let more = snapshot.config.max_attempts_default.as_u32();
            let most = u32::try_from(*MAX_ATTEMPTS_RANGE.end()).unwrap_or(u32::MAX);
            with_leaf(tree, Some(leaf), |node| {
                node.max_attempts = node.attempts.saturating_add(more).clamp(node.max_attempts, most);
            })
        }
    }
}

/// The tree with one leaf changed and every node above it derived anew.
fn with_leaf(tree: &Tree, id: Option<&NodeId>, change: impl FnOnce(&mut Node)) -> Tree {
    let mut root = tree.root().clone();
    if let Some(node) = id.and_then(|id| root.find_mut(id)) {
        change(node);
    }
    root.derive_passes();
    #[expect(clippy::expect_used, reason = "a valid tree with one leaf counted or passed is valid")]
    Tree::new(root).expect("a settled tree is valid")
}

/// What follows from how the iteration ended.
fn next(snapshot: &Snapshot, job: &Job, claim: &Claim, verdict: &GuardRun, outcome: Outcome) -> NextAction {
    match outcome.class() {
        OutcomeClass::Answered => match (&job.target, outcome) {
            (SessionTarget::Replan(node), Outcome::ReplanRefused) => {
                NextAction::Stop(StopReason::Stuck { node: node.clone() })
            }
            (SessionTarget::Leaf(_) | SessionTarget::Replan(_) | SessionTarget::Repair(_), _) => {
                NextAction::Go
            }
        },
        OutcomeClass::TimeLimit => NextAction::Stop(StopReason::TimeLimit { outcome }),
        OutcomeClass::Interrupted => match interruption(claim, verdict) {
            Interruption::Crash => NextAction::Go,
            by @ (Interruption::Int | Interruption::Term | Interruption::Hup) => {
                NextAction::Stop(StopReason::Interrupted { by })
            }
        },
        OutcomeClass::Transient => NextAction::Wait(wait(snapshot, job, &claim.exit)),
        OutcomeClass::UsageLimit => after_usage_limit(snapshot, job, claim),
        OutcomeClass::NeedsUser => NextAction::Stop(StopReason::NeedsUser { outcome }),
        OutcomeClass::Failure => match snapshot.state.failures_in_row.saturating_add(1) {
            in_row if in_row >= FAILURES_MAX => NextAction::Stop(StopReason::Failures { outcome, in_row }),
            _ => NextAction::Go,
        },
    }
}

fn interruption(claim: &Claim, verdict: &GuardRun) -> Interruption {
    match (&claim.exit, verdict) {
        (SessionExit::Interrupted { by }, _) | (_, GuardRun::Interrupted { by }) => *by,
        (_, _) => Interruption::Crash,
    }
}

/// What follows a used-up allowance: the next agent that has one, or a wait for the first to have one again.
fn after_usage_limit(snapshot: &Snapshot, job: &Job, claim: &Claim) -> NextAction {
    let limits = next_state::usage_limits(snapshot, job, claim, Outcome::UsageLimit);
    let path = snapshot.tree.path_to(leaf_of(&job.target)).unwrap_or_default();
    let leaf = path.last().map(|leaf| (&leaf.id, leaf.attempts));
    let chosen = choose(&snapshot.config, &limits, leaf);
    let goes_on = snapshot.config.on_usage_limit == OnUsageLimit::Next;
    match chosen.limit {
        None if goes_on => NextAction::Go,
        None => NextAction::Wait(wait(snapshot, job, &claim.exit)),
        Some(limit) => {
            let (why, max) = ((limit.agent, Outcome::UsageLimit), snapshot.config.usage_wait_max_secs);
            NextAction::Wait(Wait::after(why, nth_transient(snapshot), None, (limit.resets_unix_secs, max)))
        }
    }
}

fn nth_transient(snapshot: &Snapshot) -> u32 {
    snapshot.state.transients_in_row.saturating_add(1)
}

fn wait(snapshot: &Snapshot, job: &Job, exit: &SessionExit) -> Wait {
    let asked = match exit {
        SessionExit::Provider { fault: ProviderError::RateLimited { retry_after_secs } } => *retry_after_secs,
        SessionExit::Provider { .. }
        | SessionExit::Finished { .. }
        | SessionExit::Killed { .. }
        | SessionExit::TimedOut
        | SessionExit::Idle
        | SessionExit::Interrupted { .. }
        | SessionExit::NotStarted { .. } => None,
    };
    let until = exit.resets_unix_secs();
    let (why, max) = ((job.agent.clone(), exit.without_answer()), snapshot.config.usage_wait_max_secs);
    Wait::after(why, nth_transient(snapshot), asked, (until, max))
}
