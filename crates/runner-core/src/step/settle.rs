//! Claim and verdict to transition: the update table, and everything that is written because of it.

use super::attempt::{Exit, GuardExit, ProviderFault, Verdict};
use super::bookkeeping;
use super::interpret::{Claim, Finding};
use super::ladder::choose;
use super::mark::marks;
use super::merge::PlanEdit;
use super::message;
use super::meta::Meta;
use super::outcome::{Interruption, Nature, Next, Outcome, Stop};
use super::plan::{Aim, Job, Mode, REPAIRS_MAX, worked_on};
use super::snapshot::Snapshot;
use super::wait::Wait;
use crate::agent_output::Status;
use crate::config::OnUsageLimit;
use crate::id::NodeId;
use crate::repo_path::RepoPath;
use crate::run_state::{GuardResult, RunState};
use crate::tree::{MAX_ATTEMPTS_RANGE, Node, Tree};
use schemars::JsonSchema;

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
    pub meta: Meta,
    /// Protected files to commit as the last commit has them.
    pub restore: Vec<RepoPath>,
    /// What follows.
    pub next: Next,
}

/// Whether the iteration cost the node an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// It did.
    Charged,
    /// It did not.
    Free,
}

/// What becomes of the tree.
#[derive(Clone, Copy, Debug)]
enum Change<'c> {
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
pub(super) struct Ruling<'c> {
    pub(super) outcome: Outcome,
    pub(super) status: Status,
    pub(super) guard: GuardResult,
    pub(super) guard_exit: Option<GuardExit>,
    /// The accepted edits of the plan.
    pub(super) edits: &'c [PlanEdit],
    change: Change<'c>,
}

impl Ruling<'_> {
    pub(super) fn charge(&self) -> Charge {
        match self.change {
            Change::RestoredCharged | Change::TakenCharged(_) => Charge::Charged,
            Change::Restored | Change::Taken(_) | Change::TakenPassed(_) | Change::TakenGranted(..) => {
                Charge::Free
            }
        }
    }
}

/// Settles an iteration.
pub fn settle(snapshot: &Snapshot, job: &Job, claim: &Claim, verdict: &Verdict) -> Transition {
    let ruling = rule(snapshot, job, claim, verdict);
    let tree = changed_tree(snapshot, job, ruling.change);
    let marks = marks(job, claim, &ruling);
    let next = next(snapshot, job, claim, verdict, ruling.outcome);
    let state = bookkeeping::after(snapshot, job, claim, verdict, (&ruling, &tree, &next));
    let tree_sha256 = tree.sha256();
    let message = message::compose(job, &state, &ruling, &marks, (tree_sha256, snapshot.own_commits));
    let meta = Meta::new(snapshot, job, claim, &ruling, (marks, tree_sha256, next.clone(), state.spent));
    let restore = claim.protected.restore.clone();
    Transition { tree, state, outcome: ruling.outcome, message, meta, restore, next }
}

/// The update table.
fn rule<'c>(snapshot: &Snapshot, job: &'c Job, claim: &'c Claim, verdict: &Verdict) -> Ruling<'c> {
    let row = |outcome, status, change| Ruling {
        outcome,
        status,
        guard: GuardResult::Skipped,
        guard_exit: None,
        edits: &[],
        change,
    };
    match (&claim.finding, &job.aim) {
        (Finding::Silent { outcome, .. }, _) => row(*outcome, Status::Retry, Change::Restored),
        (Finding::InvalidTree { .. }, Aim::Leaf(_)) => {
            row(Outcome::InvalidTree, Status::Retry, Change::RestoredCharged)
        }
        (Finding::InvalidTree { .. }, Aim::Replan(_)) => {
            row(Outcome::InvalidTree, Status::Retry, Change::Restored)
        }
        (Finding::Broken { .. }, Aim::Leaf(_)) => {
            row(Outcome::RuleBroken, Status::Retry, Change::RestoredCharged)
        }
        (Finding::Broken { .. }, Aim::Replan(_)) => {
            row(Outcome::ReplanRefused, Status::Retry, Change::Restored)
        }
        (Finding::InvalidTree { .. } | Finding::Broken { .. }, Aim::Repair(repair)) => {
            let over = repair.tries.saturating_add(1) >= REPAIRS_MAX;
            let outcome = if over { Outcome::RepairGivenUp } else { Outcome::RepairFailed };
            row(outcome, Status::Retry, Change::Restored)
        }
        (Finding::Lawful { answer, tree, edits }, Aim::Repair(repair)) => {
            let rewritten = repair.mode == Mode::Replan && is_rewritten(snapshot, tree, &repair.node);
            let change =
                if rewritten { Change::TakenGranted(tree, &repair.node) } else { Change::Taken(tree) };
            Ruling { edits, ..row(Outcome::Repaired, answer.status, change) }
        }
        (Finding::Lawful { answer, tree, edits }, Aim::Replan(node)) => {
            let taken = |change| Ruling { edits, ..row(Outcome::Replanned, answer.status, change) };
            if answer.status == Status::Decomposed {
                taken(Change::Taken(tree))
            } else if is_rewritten(snapshot, tree, node) {
                taken(Change::TakenGranted(tree, node))
            } else {
                row(Outcome::ReplanRefused, answer.status, Change::Restored)
            }
        }
        (Finding::Lawful { answer, tree, edits }, Aim::Leaf(_)) => {
            let taken = |outcome, change| Ruling { edits, ..row(outcome, answer.status, change) };
            match answer.status {
                Status::Retry => taken(Outcome::Retry, Change::TakenCharged(tree)),
                Status::Decomposed => taken(Outcome::Decomposed, Change::Taken(tree)),
                Status::Done => rule_done(verdict, tree, edits),
            }
        }
    }
}

/// The rows of a lawful `done`: the guard's word decides, and without one nothing is taken.
fn rule_done<'c>(verdict: &Verdict, tree: &'c Tree, edits: &'c [PlanEdit]) -> Ruling<'c> {
    let unsaid = |outcome| Ruling {
        outcome,
        status: Status::Done,
        guard: GuardResult::Skipped,
        guard_exit: None,
        edits: &[],
        change: Change::Restored,
    };
    let said = |outcome, guard, exit: GuardExit, change| Ruling {
        guard,
        guard_exit: Some(exit),
        edits,
        change,
        ..unsaid(outcome)
    };
    match verdict {
        Verdict::Ended { exit: exit @ GuardExit::Code(0), .. } => {
            said(Outcome::Passed, GuardResult::Pass, *exit, Change::TakenPassed(tree))
        }
        Verdict::Ended { exit, .. } => {
            said(Outcome::GuardFailed, GuardResult::Fail, *exit, Change::TakenCharged(tree))
        }
        Verdict::NotStarted { .. } | Verdict::Skipped => unsaid(Outcome::GuardNotStarted),
        Verdict::TimedOut => unsaid(Outcome::GuardTimedOut),
        Verdict::Interrupted { .. } => unsaid(Outcome::Interrupted),
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

fn changed_tree(snapshot: &Snapshot, job: &Job, change: Change<'_>) -> Tree {
    let selected = job.aim.node();
    let charge = |node: &mut Node| node.attempts = node.attempts.saturating_add(1).min(node.max_attempts);
    match change {
        Change::Restored => snapshot.tree.clone(),
        Change::RestoredCharged => with_leaf(&snapshot.tree, selected, charge),
        Change::Taken(tree) => tree.clone(),
        Change::TakenCharged(tree) => with_leaf(tree, selected, charge),
        Change::TakenPassed(tree) => with_leaf(tree, selected, |node| node.passes = true),
        Change::TakenGranted(tree, leaf) => {
            let more = u32::try_from(snapshot.config.max_attempts_default.get()).unwrap_or(1);
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
fn next(snapshot: &Snapshot, job: &Job, claim: &Claim, verdict: &Verdict, outcome: Outcome) -> Next {
    match outcome.nature() {
        Nature::Answered => match (&job.aim, outcome) {
            (Aim::Replan(node), Outcome::ReplanRefused) => Next::Stop(Stop::Stuck { node: node.clone() }),
            (Aim::Leaf(_) | Aim::Replan(_) | Aim::Repair(_), _) => Next::Go,
        },
        Nature::Cut => Next::Stop(Stop::Time { outcome }),
        Nature::Interrupted => match interruption(claim, verdict) {
            Interruption::Crash => Next::Go,
            by @ (Interruption::Int | Interruption::Term | Interruption::Hup) => {
                Next::Stop(Stop::Interrupted { by })
            }
        },
        Nature::Transient => Next::Wait(wait(snapshot, job, &claim.exit)),
        Nature::UsedUp => after_usage_limit(snapshot, job, claim),
        Nature::Barred => Next::Stop(Stop::Barred { outcome }),
        Nature::Failure => match snapshot.state.failures_in_row.saturating_add(1) {
            in_row if in_row >= FAILURES_MAX => Next::Stop(Stop::Failures { outcome, in_row }),
            _ => Next::Go,
        },
    }
}

fn interruption(claim: &Claim, verdict: &Verdict) -> Interruption {
    match (&claim.exit, verdict) {
        (Exit::Interrupted { by }, _) | (_, Verdict::Interrupted { by }) => *by,
        (_, _) => Interruption::Crash,
    }
}

/// What follows a used-up allowance: the next agent that has one, or a wait for the first to have one again.
fn after_usage_limit(snapshot: &Snapshot, job: &Job, claim: &Claim) -> Next {
    let limits = bookkeeping::usage_limits(snapshot, job, claim, Outcome::UsageLimit);
    let path = snapshot.tree.path_to(worked_on(&job.aim)).unwrap_or_default();
    let leaf = path.last().map(|leaf| (&leaf.id, leaf.attempts));
    let chosen = choose(&snapshot.config, &limits, leaf);
    let goes_on = snapshot.config.on_usage_limit == OnUsageLimit::Next;
    match chosen.limit {
        None if goes_on => Next::Go,
        None => Next::Wait(wait(snapshot, job, &claim.exit)),
        Some(limit) => {
            let (why, max) = ((limit.agent, Outcome::UsageLimit), snapshot.config.usage_wait_max_secs);
            Next::Wait(Wait::after(why, nth_transient(snapshot), None, (limit.resets_unix_secs, max)))
        }
    }
}

fn nth_transient(snapshot: &Snapshot) -> u32 {
    snapshot.state.transients_in_row.saturating_add(1)
}

fn wait(snapshot: &Snapshot, job: &Job, exit: &Exit) -> Wait {
    let asked = match exit {
        Exit::Provider { fault: ProviderFault::RateLimited { retry_after_secs } } => *retry_after_secs,
        Exit::Provider { .. }
        | Exit::Finished { .. }
        | Exit::Killed { .. }
        | Exit::TimedOut
        | Exit::Idle
        | Exit::Interrupted { .. }
        | Exit::NotStarted { .. } => None,
    };
    let until = exit.resets_unix_secs();
    let (why, max) = ((job.agent.clone(), exit.without_answer()), snapshot.config.usage_wait_max_secs);
    Wait::after(why, nth_transient(snapshot), asked, (until, max))
}
