//! Claim and evidence to transition: the update table, and everything that is written because of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attempt::{FileChanges, GuardExit, GuardRun, ProviderError, SessionExit};
use super::backoff::{Backoff, Wait};
use super::checks::{CheckEvidence, GreenRun};
use super::escalation::{LeafRef, choose_agent};
use super::evidence::Evidence;
use super::interpret::{Claim, SessionFinding};
use super::merge::PlanEdit;
use super::meta::IterationMeta;
use super::outcome::{Interruption, NextAction, Outcome, OutcomeClass, StopReason};
use super::plan::{Job, REPAIRS_MAX, SessionMode, SessionTarget, leaf_of};
use super::review::{ReviewEvidence, ReviewPlan};
use super::snapshot::Snapshot;
use super::unchanged::{DoneProof, done_proof};
use crate::config::{OnTimeout, OnUsageLimit};
use crate::model::agent_output::AgentStatus;
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::review::ReviewResult;
use crate::model::run_state::{GuardResult, RunState};
use crate::model::tree::{MAX_ATTEMPTS_RANGE, Node, Tree};

/// How many failures in a row stop the loop.
pub const FAILURES_MAX: u32 = 3;

/// How many time limits in a row on one task stop the loop, where `on_timeout` is "retry".
pub const TIMEOUTS_MAX: u32 = 3;

/// The end of one iteration: what is committed, and what the loop does next. It depends on snapshot, attempt and evidence
/// alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub tree: Tree,
    pub state: RunState,
    pub outcome: Outcome,
    /// The whole commit message.
    pub message: String,
    /// meta.json, except for what the host adds.
    pub meta: IterationMeta,
    /// Protected files and check files to commit as the last commit has them.
    pub restore: Vec<RepoPath>,
    /// How many files the session changed.
    pub changes: FileChanges,
    /// What the checks of the task and the review showed, for the session's record.
    pub checks: CheckEvidence,
    pub review: ReviewEvidence,
    pub next: NextAction,
}

/// Whether the iteration cost the node an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptCharge {
    Charged,
    Free,
}

impl AttemptCharge {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Charged => "charged",
            Self::Free => "free",
        }
    }
}

/// How the tree changes: which plan is the base, and what happens to one leaf of it.
#[derive(Clone, Copy, Debug)]
struct TreeUpdate<'a> {
    base: TreeBase<'a>,
    leaf: LeafUpdate<'a>,
}

#[derive(Clone, Copy, Debug)]
enum TreeBase<'a> {
    /// The tree as it was before the session.
    Before,
    /// The agent's plan, merged with the runner's own fields.
    Agent(&'a Tree),
}

#[derive(Clone, Copy, Debug)]
enum LeafUpdate<'a> {
    Unchanged,
    /// The selected node gets one attempt more.
    Charge,
    /// The selected node passes. This is the only place that sets `passes`.
    Pass,
    /// This rewritten leaf gets new attempts.
    GrantAttempts(&'a NodeId),
}

/// One row of the update table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision<'a> {
    pub(super) outcome: Outcome,
    pub(super) status: AgentStatus,
    pub(super) guard: GuardResult,
    pub(super) guard_exit: Option<GuardExit>,
    /// The accepted edits of the plan.
    pub(super) edits: &'a [PlanEdit],
    /// Whether the task passes because a second session confirmed that nothing had to change.
    pub(super) is_confirmed: bool,
    /// Whether the task passes without a review because the reviewer refused it often enough.
    pub(super) is_overruled: bool,
    update: TreeUpdate<'a>,
}

impl<'a> Decision<'a> {
    /// Discards the agent's plan.
    fn discard(outcome: Outcome, status: AgentStatus, leaf: LeafUpdate<'a>) -> Self {
        let update = TreeUpdate { base: TreeBase::Before, leaf };
        Self {
            outcome,
            status,
            guard: GuardResult::Skipped,
            guard_exit: None,
            edits: &[],
            is_confirmed: false,
            is_overruled: false,
            update,
        }
    }

    /// Accepts the agent's plan.
    fn accept(outcome: Outcome, status: AgentStatus, plan: AcceptedPlan<'a>, leaf: LeafUpdate<'a>) -> Self {
        let update = TreeUpdate { base: TreeBase::Agent(plan.tree), leaf };
        Self { edits: plan.edits, update, ..Self::discard(outcome, status, leaf) }
    }

    fn with_guard(self, guard: GuardResult, exit: GuardExit) -> Self {
        Self { guard, guard_exit: Some(exit), ..self }
    }

    pub(super) fn charge(&self) -> AttemptCharge {
        match self.update.leaf {
            LeafUpdate::Charge => AttemptCharge::Charged,
            LeafUpdate::Unchanged | LeafUpdate::Pass | LeafUpdate::GrantAttempts(_) => AttemptCharge::Free,
        }
    }
}

/// A plan that violates no rule, with its edits.
#[derive(Clone, Copy, Debug)]
struct AcceptedPlan<'a> {
    tree: &'a Tree,
    edits: &'a [PlanEdit],
}

/// One iteration while it is settled: its inputs, and the row of the update table that applies.
pub(super) struct Settling<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) job: &'a Job,
    pub(super) claim: &'a Claim,
    pub(super) evidence: &'a Evidence,
    pub(super) decision: Decision<'a>,
}

pub fn settle(snapshot: &Snapshot, job: &Job, claim: &Claim, evidence: &Evidence) -> Transition {
    let decision = decide(snapshot, job, claim, evidence);
    let settling = Settling { snapshot, job, claim, evidence, decision };
    let tree = settling.updated_tree();
    let next = settling.next_action(&tree);
    let annotations = settling.annotations();
    let state = settling.next_state(&tree, &next);
    let message = settling.message(&state, tree.sha256(), &annotations);
    let meta = settling.meta(&tree, &state, annotations, next.clone());
    let restore = settling.restore(&tree);
    Transition {
        tree,
        state,
        outcome: decision.outcome,
        message,
        meta,
        restore,
        changes: claim.changes,
        checks: evidence.checks.clone(),
        review: evidence.review.clone(),
        next,
    }
}

fn decide<'a>(snapshot: &Snapshot, job: &'a Job, claim: &'a Claim, evidence: &Evidence) -> Decision<'a> {
    use LeafUpdate::{Charge, GrantAttempts, Unchanged};
    match (&claim.finding, &job.target) {
        (SessionFinding::NoAnswer { outcome, .. }, _) => {
            Decision::discard(*outcome, AgentStatus::Retry, Unchanged)
        }
        (SessionFinding::InvalidTree { .. }, SessionTarget::Leaf(_) | SessionTarget::Split(_)) => {
            Decision::discard(Outcome::InvalidTree, AgentStatus::Retry, Charge)
        }
        (SessionFinding::InvalidTree { .. }, SessionTarget::Replan(_)) => {
            Decision::discard(Outcome::InvalidTree, AgentStatus::Retry, Unchanged)
        }
        (SessionFinding::RuleViolations { .. }, SessionTarget::Leaf(_) | SessionTarget::Split(_)) => {
            Decision::discard(Outcome::RuleViolation, AgentStatus::Retry, Charge)
        }
        (
            SessionFinding::InvalidTree { .. } | SessionFinding::RuleViolations { .. },
            SessionTarget::Plan(_),
        ) => Decision::discard(Outcome::PlanRejected, AgentStatus::Retry, Unchanged),
        (SessionFinding::RuleViolations { .. }, SessionTarget::Replan(_)) => {
            Decision::discard(Outcome::ReplanRefused, AgentStatus::Retry, Unchanged)
        }
        (
            SessionFinding::InvalidTree { .. } | SessionFinding::RuleViolations { .. },
            SessionTarget::Repair(repair),
        ) => {
            let is_last = repair.tries.saturating_add(1) >= REPAIRS_MAX;
            let outcome = if is_last { Outcome::RepairAbandoned } else { Outcome::RepairFailed };
            Decision::discard(outcome, AgentStatus::Retry, Unchanged)
        }
        (SessionFinding::Accepted { answer, tree, edits }, target) => {
            let plan = AcceptedPlan { tree, edits };
            match (target, answer.status) {
                (SessionTarget::Repair(repair), status) => {
                    let is_granted =
                        repair.mode == SessionMode::Replan && is_rewritten(snapshot, tree, &repair.node);
                    let leaf = if is_granted { GrantAttempts(&repair.node) } else { Unchanged };
                    Decision::accept(Outcome::Repaired, status, plan, leaf)
                }
                (SessionTarget::Replan(_), status @ AgentStatus::Decomposed) => {
                    Decision::accept(Outcome::Replanned, status, plan, Unchanged)
                }
                (SessionTarget::Replan(node), status) if is_rewritten(snapshot, tree, node) => {
                    Decision::accept(Outcome::Replanned, status, plan, GrantAttempts(node))
                }
                (SessionTarget::Replan(_), status) => {
                    Decision::discard(Outcome::ReplanRefused, status, Unchanged)
                }
                (SessionTarget::Plan(_), status @ AgentStatus::Retry) => {
                    Decision::discard(Outcome::PlanQuestions, status, Unchanged)
                }
                (SessionTarget::Plan(_), status @ (AgentStatus::Done | AgentStatus::Decomposed)) => {
                    Decision::accept(Outcome::Planned, status, plan, Unchanged)
                }
                (SessionTarget::Leaf(_), status @ AgentStatus::Retry) => {
                    Decision::accept(Outcome::Retry, status, plan, Charge)
                }
                (SessionTarget::Split(_), status @ (AgentStatus::Done | AgentStatus::Retry)) => {
                    Decision::discard(Outcome::SplitRefused, status, Charge)
                }
                (SessionTarget::Leaf(_) | SessionTarget::Split(_), status @ AgentStatus::Decomposed) => {
                    Decision::accept(Outcome::Decomposed, status, plan, Unchanged)
                }
                (SessionTarget::Leaf(_), AgentStatus::Done) => {
                    let proof = done_proof(snapshot, job, claim, &evidence.checks, tree);
                    let decision = decide_done(plan, evidence, proof);
                    with_review(decision, plan, job, &evidence.review)
                }
            }
        }
    }
}

/// The rows of an accepted `done`: checks and guard decide, and without their result the plan is discarded.
fn decide_done<'a>(plan: AcceptedPlan<'a>, evidence: &Evidence, proof: DoneProof) -> Decision<'a> {
    let accept = |outcome, leaf| Decision::accept(outcome, AgentStatus::Done, plan, leaf);
    let discard = |outcome| Decision::discard(outcome, AgentStatus::Done, LeafUpdate::Unchanged);
    match &evidence.checks.green {
        GreenRun::Interrupted { .. } => return discard(Outcome::Interrupted),
        green if !green.is_green() => return accept(Outcome::ChecksFailed, LeafUpdate::Charge),
        GreenRun::Skipped | GreenRun::Ended { .. } => {}
    }
    match &evidence.guard {
        GuardRun::Ended { exit: exit @ GuardExit::Code(0), .. } => {
            let decision = match proof {
                DoneProof::Accepted => accept(Outcome::Passed, LeafUpdate::Pass),
                DoneProof::Confirmed => {
                    Decision { is_confirmed: true, ..accept(Outcome::Passed, LeafUpdate::Pass) }
                }
                DoneProof::Unconfirmed => accept(Outcome::Unconfirmed, LeafUpdate::Unchanged),
                DoneProof::Refused => accept(Outcome::Unconfirmed, LeafUpdate::Charge),
            };
            decision.with_guard(GuardResult::Pass, *exit)
        }
        GuardRun::Ended { exit, .. } => {
            accept(Outcome::GuardFailed, LeafUpdate::Charge).with_guard(GuardResult::Fail, *exit)
        }
        GuardRun::NotStarted { .. } | GuardRun::Skipped => discard(Outcome::GuardNotStarted),
        GuardRun::TimedOut => discard(Outcome::GuardTimedOut),
        GuardRun::Interrupted { .. } => discard(Outcome::Interrupted),
    }
}

/// Whether everything but the review would make the task pass, so that a review decides.
pub(super) fn is_review_due(snapshot: &Snapshot, job: &Job, claim: &Claim, evidence: &Evidence) -> bool {
    decide(snapshot, job, claim, evidence).outcome == Outcome::ReviewFailed
}

/// The row of a `done` that passes by checks and guard, after its review. Without a verdict it does not pass.
fn with_review<'a>(
    decision: Decision<'a>,
    plan: AcceptedPlan<'a>,
    job: &Job,
    review: &ReviewEvidence,
) -> Decision<'a> {
    if decision.outcome != Outcome::Passed {
        return decision;
    }
    let not_passed = |outcome, leaf| Decision {
        guard: decision.guard,
        guard_exit: decision.guard_exit,
        ..Decision::accept(outcome, AgentStatus::Done, plan, leaf)
    };
    match (&job.task.review, review) {
        (ReviewPlan::Off, _) => decision,
        (ReviewPlan::Overruled, _) => Decision { is_overruled: true, ..decision },
        (ReviewPlan::Due { .. }, ReviewEvidence::Ended { result: ReviewResult::Accepted, .. }) => decision,
        (ReviewPlan::Due { .. }, ReviewEvidence::Ended { result: ReviewResult::Refused, .. }) => {
            not_passed(Outcome::ReviewRefused, LeafUpdate::Charge)
        }
        (ReviewPlan::Due { .. }, ReviewEvidence::Ended { result: ReviewResult::Failed, .. })
        | (ReviewPlan::Due { .. }, ReviewEvidence::Skipped) => {
            not_passed(review.failed_outcome(), LeafUpdate::Unchanged)
        }
    }
}

/// Whether a node is still a leaf and has another goal or other acceptance criteria than before.
fn is_rewritten(snapshot: &Snapshot, after: &Tree, id: &NodeId) -> bool {
    let before_path = snapshot.tree.path_to(id).unwrap_or_default();
    let after_path = after.path_to(id).unwrap_or_default();
    match (before_path.last(), after_path.last()) {
        (Some(was), Some(is)) => is.is_leaf() && (was.goal != is.goal || was.acceptance != is.acceptance),
        (None | Some(_), _) => false,
    }
}

/// The tree with one leaf changed and the nodes above it derived again.
fn with_leaf(tree: &Tree, id: Option<&NodeId>, change: impl FnOnce(&mut Node)) -> Tree {
    let mut root = tree.root().clone();
    if let Some(node) = id.and_then(|id| root.find_mut(id)) {
        change(node);
    }
    root.derive_passes();
    #[expect(clippy::expect_used, reason = "a valid tree with one leaf charged or passed is valid")]
    Tree::new(root).expect("a settled tree is valid")
}

impl Settling<'_> {
    fn updated_tree(&self) -> Tree {
        let base = match self.decision.update.base {
            TreeBase::Before => &self.snapshot.tree,
            TreeBase::Agent(tree) => tree,
        };
        let selected = self.job.target.node();
        match self.decision.update.leaf {
            LeafUpdate::Unchanged => base.clone(),
            LeafUpdate::Charge => with_leaf(base, selected, |node| {
                node.attempts = node.attempts.saturating_add(1).min(node.max_attempts);
            }),
            LeafUpdate::Pass => with_leaf(base, selected, |node| node.passes = true),
            LeafUpdate::GrantAttempts(leaf) => {
                let more = u32::try_from(self.snapshot.config.max_attempts_default.get()).unwrap_or(1);
                let most = u32::try_from(*MAX_ATTEMPTS_RANGE.end()).unwrap_or(u32::MAX);
                with_leaf(base, Some(leaf), |node| {
                    node.max_attempts = node.attempts.saturating_add(more).clamp(node.max_attempts, most);
                })
            }
        }
    }

    /// The files to commit as the last commit has them: protected ones, check files of a task that did not pass, and checks of
    /// tasks that are not in the plan.
    fn restore(&self, tree: &Tree) -> Vec<RepoPath> {
        let mut restore = self.claim.restored_files(tree);
        if self.decision.outcome != Outcome::Passed {
            restore.extend(self.job.destinations());
        }
        // Nothing of a planning session is kept but its plan and its notes.
        restore.extend(self.claim.protected.discarded.iter().cloned());
        let is_rejected_plan =
            matches!(self.job.target, SessionTarget::Plan(_)) && self.decision.outcome != Outcome::Planned;
        if is_rejected_plan {
            let planned = self.claim.new_checks.iter().filter(|(node, _)| tree.path_to(node).is_some());
            restore.extend(planned.flat_map(|(node, left)| left.paths(node)));
        }
        restore
    }

    /// What the loop does after the iteration.
    fn next_action(&self, tree: &Tree) -> NextAction {
        match self.action_by_outcome() {
            NextAction::Go => self.stalled(tree).map_or(NextAction::Go, NextAction::Stop),
            action @ (NextAction::Wait(_) | NextAction::Stop(_) | NextAction::Unknown) => action,
        }
    }

    /// What the loop does after an iteration with this outcome, whatever came before.
    fn action_by_outcome(&self) -> NextAction {
        let outcome = self.decision.outcome;
        match outcome.class() {
            OutcomeClass::Answered => match (&self.job.target, outcome) {
                (SessionTarget::Replan(node), Outcome::ReplanRefused) => {
                    NextAction::Stop(StopReason::Stuck { node: node.clone() })
                }
                (_, _) => NextAction::Go,
            },
            OutcomeClass::TimeLimit => match self.snapshot.config.on_timeout {
                OnTimeout::Retry if self.timeouts_in_row() < TIMEOUTS_MAX => NextAction::Go,
                OnTimeout::Retry | OnTimeout::Stop => NextAction::Stop(StopReason::TimeLimit { outcome }),
            },
            OutcomeClass::Interrupted => match self.interruption() {
                Interruption::Crash => NextAction::Go,
                by @ (Interruption::Int | Interruption::Term | Interruption::Hup) => {
                    NextAction::Stop(StopReason::Interrupted { by })
                }
            },
            OutcomeClass::Transient => NextAction::Wait(self.wait()),
            OutcomeClass::UsageLimit => self.after_usage_limit(),
            OutcomeClass::NeedsUser => NextAction::Stop(StopReason::NeedsUser { outcome }),
            OutcomeClass::TooLarge if matches!(self.job.target, SessionTarget::Leaf(_)) => NextAction::Go,
            OutcomeClass::TooLarge | OutcomeClass::Failure => {
                match self.snapshot.state.failures_in_row.saturating_add(1) {
                    in_row if in_row >= FAILURES_MAX => {
                        NextAction::Stop(StopReason::Failures { outcome, in_row })
                    }
                    _ => NextAction::Go,
                }
            }
        }
    }

    fn interruption(&self) -> Interruption {
        match (&self.claim.exit, self.evidence.interruption()) {
            (SessionExit::Interrupted { by }, _) => *by,
            (_, Some(by)) => by,
            (_, None) => Interruption::Crash,
        }
    }

    /// Continues with the next agent of the ladder that has no limit, or waits for the agent whose limit ends first. There is no
    /// other reviewer: its limit is waited for.
    fn after_usage_limit(&self) -> NextAction {
        if self.failed_review().is_some() {
            return NextAction::Wait(self.wait());
        }
        let limits = self.usage_limits();
        let path = self.snapshot.tree.path_to(leaf_of(&self.job.target)).unwrap_or_default();
        let leaf = path.last().map(|leaf| LeafRef::of(leaf, &self.snapshot.state));
        let choice = choose_agent(&self.snapshot.config, &limits, leaf);
        match choice.limit {
            None if self.snapshot.config.on_usage_limit == OnUsageLimit::Next => NextAction::Go,
            None => NextAction::Wait(self.wait()),
            Some(limit) => {
                let backoff = Backoff {
                    agent: limit.agent,
                    outcome: Outcome::UsageLimit,
                    resets_unix_secs: limit.resets_unix_secs,
                    ..self.backoff()
                };
                NextAction::Wait(backoff.into_wait())
            }
        }
    }

    /// The wait for the agent that failed.
    fn wait(&self) -> Wait {
        let exit = self.failing_exit();
        let retry_after_secs = match exit {
            SessionExit::Provider { fault: ProviderError::RateLimited { retry_after_secs } } => {
                *retry_after_secs
            }
            SessionExit::Provider { .. }
            | SessionExit::Finished { .. }
            | SessionExit::Killed { .. }
            | SessionExit::TimedOut
            | SessionExit::Idle
            | SessionExit::Interrupted { .. }
            | SessionExit::NotStarted { .. } => None,
        };
        Backoff { retry_after_secs, resets_unix_secs: exit.resets_unix_secs(), ..self.backoff() }.into_wait()
    }

    fn failing_exit(&self) -> &SessionExit {
        self.failed_review().unwrap_or(&self.claim.exit)
    }

    /// A backoff for the agent that failed, about which nothing is known but the failure itself.
    fn backoff(&self) -> Backoff {
        Backoff {
            agent: self.failing_agent(),
            outcome: self.failing_exit().without_answer(),
            failures_in_row: self.snapshot.state.transients_in_row.saturating_add(1),
            retry_after_secs: None,
            resets_unix_secs: None,
            wait_max_secs: self.snapshot.config.usage_wait_max_secs,
        }
    }
}
