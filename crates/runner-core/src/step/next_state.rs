//! The run state after an iteration, including the history of the node for the prompt of its next session.

use super::attempt::GuardRun;
use super::checks::GreenRun;
use super::escalation::{UsageLimit, limits_after};
use super::interpret::SessionFinding;
use super::outcome::{NextAction, Outcome, OutcomeClass};
use super::plan::{SessionTarget, leaf_of};
use super::recheck;
use super::settle::Settling;
use crate::config::OnUsageLimit;
use crate::model::checks::TaskProof;
use crate::model::cost::{LeafSpending, RunSpending, SessionCost, amount};
use crate::model::heldout::HeldoutTask;
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::{NodeHistory, PendingRepair, RunState, SEMANTICS, omitted_line};
use crate::model::tree::Tree;
use crate::text::{head, lines, tail};

/// The most bytes of a summary that are kept; output.json has the whole.
pub const SUMMARY_BYTES_MAX: usize = 8 << 10;
/// The most bytes of the guard's output that are kept: a quarter from its beginning, the rest from its end.
pub const GUARD_OUTPUT_BYTES_MAX: usize = 16 << 10;
/// Room for the line that counts the bytes left out.
const OMISSION_BYTES_MAX: usize = 64;
/// How many notes, errors or paths are kept, and how many bytes of each.
pub(super) const NOTES_MAX: usize = 100;
const NOTE_BYTES_MAX: usize = 500;
/// How many open nodes keep a history.
const HISTORIES_MAX: usize = 8;

/// A bounded list of notes on a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteList {
    pub texts: Vec<String>,
    /// How many further notes there were.
    pub omitted: u32,
}

impl NoteList {
    pub(super) fn bounded(notes: Vec<String>) -> Self {
        let omitted = count_beyond(notes.len());
        let kept = notes.into_iter().take(NOTES_MAX);
        Self { texts: kept.map(|note| head(&note, NOTE_BYTES_MAX).to_owned()).collect(), omitted }
    }

    /// The notes as lines for people, with a last line that counts the omitted ones.
    pub fn lines(&self) -> Vec<String> {
        self.texts.iter().cloned().chain(omitted_line(self.omitted)).collect()
    }
}

fn count_beyond(len: usize) -> u32 {
    u32::try_from(len.saturating_sub(NOTES_MAX)).unwrap_or(u32::MAX)
}

impl Settling<'_> {
    /// The run state after the iteration.
    pub(super) fn next_state(&self, tree: &Tree, next: &NextAction) -> RunState {
        let before = &self.snapshot.state;
        let outcome = self.decision.outcome;
        RunState {
            run_id: Some(self.snapshot.run_id.clone()),
            next_iter: self.job.iteration.next(),
            last_status: Some(self.decision.status),
            last_summary: self.last_summary(),
            last_guard: Some(self.decision.guard),
            last_node: self.job.target.node().cloned(),
            last_outcome: Some(outcome),
            failures_in_row: self.failures_in_row(next),
            transients_in_row: self.transients_in_row(),
            node_history: self.node_history(tree),
            repair: self.pending_repair(),
            replanned: self.replanned(),
            pinned: self.pinned(),
            progress: self.next_progress(tree, next),
            wait: match next {
                NextAction::Wait(wait) => Some(wait.clone()),
                NextAction::Go | NextAction::Stop(_) | NextAction::Unknown => None,
            },
            usage_limits: self.usage_limits(),
            spent: self.spent_after(),
            spent_by_leaf: self.spent_by_leaf(tree),
            baseline: before.baseline.clone(),
            final_check: None,
            last_room: self.evidence.place().map(|place| place.room).or(before.last_room),
            guard_error: self.guard_error(),
            proofs: self.proofs(tree),
            ratchet: recheck::next_ratchet(self.snapshot, tree),
            review: self.next_review_state(tree),
            protection: before.protection.clone(),
            // What agents add while they work is the approved plan's own growth; another plan is not.
            plan_approval: before.plan_approval.filter(|_| outcome != Outcome::Planned),
            instructions: before.instructions.clone(),
            heldout: self.heldout(),
            environment: before.environment.clone(),
            semantics: SEMANTICS,
        }
    }

    /// What the session cost.
    pub(super) fn cost(&self) -> SessionCost {
        let price = self.snapshot.config.price_of(&self.job.agent.executor);
        SessionCost::of(&self.claim.exit, self.claim.usage, price)
    }

    /// What the run has used, with this session and its review.
    pub(super) fn spent_after(&self) -> RunSpending {
        let costs = std::iter::once(self.cost()).chain(self.review_cost());
        costs.fold(self.snapshot.state.spent, RunSpending::with)
    }

    /// The usage limits on record after the iteration; none where the configuration waits instead of switching agents.
    pub(super) fn usage_limits(&self) -> Vec<UsageLimit> {
        if self.snapshot.config.on_usage_limit == OnUsageLimit::Wait {
            return Vec::new();
        }
        // The worker itself answered: only its reviewer failed.
        let outcome = match self.failed_review() {
            Some(_) => Outcome::ReviewRefused,
            None => self.decision.outcome,
        };
        let limit = UsageLimit {
            agent: self.job.agent.label(),
            node: leaf_of(&self.job.target).clone(),
            resets_unix_secs: self.claim.exit.resets_unix_secs(),
        };
        limits_after(&self.snapshot.state.usage_limits, limit, outcome)
    }

    /// What each open leaf has used, with this session and its review.
    fn spent_by_leaf(&self, tree: &Tree) -> Vec<LeafSpending> {
        let node = leaf_of(&self.job.target);
        let nothing =
            |node: &NodeId| LeafSpending { node: node.clone(), tokens: amount(0), microdollars: amount(0) };
        let mut all = self.snapshot.state.spent_by_leaf.clone();
        let known = all.iter().position(|spent| spent.node == *node).map(|at| all.remove(at));
        let costs = std::iter::once(self.cost()).chain(self.review_cost());
        all.push(costs.fold(known.unwrap_or_else(|| nothing(node)), LeafSpending::with));
        all.retain(|spent| is_open_leaf(tree, &spent.node) && *spent != nothing(&spent.node));
        all.sort_by(|one, other| one.node.cmp(&other.node));
        all
    }

    /// How many sessions in a row failed, after this one.
    fn failures_in_row(&self, next: &NextAction) -> u32 {
        let before = self.snapshot.state.failures_in_row;
        match self.decision.outcome.class() {
            OutcomeClass::Answered => 0,
            // A task that is too large for one session is not a failure of the run.
            OutcomeClass::TooLarge if matches!(self.job.target, SessionTarget::Leaf(_)) => before,
            // The loop stopped and the user saw it: the next command starts to count again.
            OutcomeClass::TooLarge | OutcomeClass::Failure if matches!(next, NextAction::Stop(_)) => 0,
            OutcomeClass::TooLarge | OutcomeClass::Failure => before.saturating_add(1),
            OutcomeClass::TimeLimit
            | OutcomeClass::Budget
            | OutcomeClass::Interrupted
            | OutcomeClass::Transient
            | OutcomeClass::UsageLimit
            | OutcomeClass::NeedsUser => before,
        }
    }

    /// How many sessions in a row the provider refused for a while, after this one.
    fn transients_in_row(&self) -> u32 {
        let before = self.snapshot.state.transients_in_row;
        match self.decision.outcome.class() {
            OutcomeClass::Transient | OutcomeClass::UsageLimit => before.saturating_add(1),
            OutcomeClass::Interrupted => before,
            OutcomeClass::Answered
            | OutcomeClass::TimeLimit
            | OutcomeClass::Budget
            | OutcomeClass::TooLarge
            | OutcomeClass::Failure
            | OutcomeClass::NeedsUser => 0,
        }
    }

    /// The iteration in words: the agent's summary, or what was wrong with its answer, or why no answer came.
    fn last_summary(&self) -> Option<String> {
        // The commit then shows the guard's error instead, and `verify` has nothing to compare a summary with.
        if matches!(self.evidence.guard, GuardRun::NotStarted { .. }) {
            return None;
        }
        let text = match &self.claim.finding {
            SessionFinding::NoAnswer { why, .. } => why.join("\n"),
            SessionFinding::InvalidTree { .. } | SessionFinding::RuleViolations { .. } => {
                self.claim.notes.texts.join("\n")
            }
            SessionFinding::Accepted { answer, .. } => answer.summary.clone(),
        };
        (!text.is_empty()).then(|| head(&text, SUMMARY_BYTES_MAX).to_owned())
    }

    /// Why the guard could not be started.
    fn guard_error(&self) -> Option<String> {
        match &self.evidence.guard {
            GuardRun::NotStarted { why } => Some(head(why, SUMMARY_BYTES_MAX).to_owned()),
            GuardRun::Skipped
            | GuardRun::Ended { .. }
            | GuardRun::TimedOut
            | GuardRun::Interrupted { .. } => None,
        }
    }

    /// The histories of nodes that are still open leaves, the newest last.
    fn node_history(&self, tree: &Tree) -> Vec<NodeHistory> {
        let mut histories = self.snapshot.state.node_history.clone();
        if let Some(node) = self.job.target.node() {
            let at = histories.iter().position(|history| history.node == *node);
            let last = at.map(|at| histories.remove(at));
            histories.push(self.history_entry(node, last));
        }
        histories.retain(|history| is_open_leaf(tree, &history.node));
        histories.split_off(histories.len().saturating_sub(HISTORIES_MAX))
    }

    /// This session as the history of its node. One without an answer keeps what was known before.
    fn history_entry(&self, node: &NodeId, last: Option<NodeHistory>) -> NodeHistory {
        let outcome = self.decision.outcome;
        let empty = NodeHistory {
            node: node.clone(),
            iter: self.job.iteration,
            outcome,
            summary: String::new(),
            notes: Vec::new(),
            notes_omitted: 0,
            restored: Vec::new(),
            restored_omitted: 0,
            guard_output: None,
            later_outcome: None,
        };
        if outcome.class() != OutcomeClass::Answered {
            return last.map_or(empty, |last| NodeHistory { later_outcome: Some(outcome), ..last });
        }
        let protected = &self.claim.protected;
        let restored: Vec<&RepoPath> = protected.restore.iter().chain(&protected.check_files).collect();
        NodeHistory {
            summary: self.agent_summary(),
            notes: self.claim.notes.texts.clone(),
            notes_omitted: self.claim.notes.omitted,
            restored: restored
                .iter()
                .take(NOTES_MAX)
                .map(|path| (*path).clone())
                .chain(self.claim.protected.memory.iter().cloned())
                .collect(),
            restored_omitted: count_beyond(restored.len()),
            guard_output: self.failure_output(),
            ..empty
        }
    }

    /// What the guard printed if it failed, or the checks that failed, or what the reviewer refused.
    fn failure_output(&self) -> Option<String> {
        match (self.decision.outcome, &self.evidence.checks.green) {
            (Outcome::GuardFailed, _) => guard_output(&self.evidence.guard),
            (Outcome::ReviewRefused, _) => self.refusal_text(),
            (Outcome::ChecksFailed, GreenRun::Ended { output, .. }) if !output.is_empty() => {
                Some(bounded_output(output))
            }
            (Outcome::ChecksFailed, _) => Some(self.evidence.checks.heldout.failure_text()),
            (_, _) => None,
        }
    }

    /// How the checks of tasks ended before the work, for every task of the plan.
    fn proofs(&self, tree: &Tree) -> Vec<TaskProof> {
        let mut proofs = self.snapshot.state.proofs.clone();
        let checks = &self.evidence.checks;
        for red in checks.red.iter().chain(&checks.above) {
            proofs.retain(|proof| proof.node != red.node);
            proofs.push(red.clone());
        }
        proofs.retain(|proof| tree.path_to(&proof.node).is_some());
        proofs.sort_by(|one, other| one.node.cmp(&other.node));
        proofs
    }

    /// The held-out checks, with how those that ran before this session ended.
    fn heldout(&self) -> Vec<HeldoutTask> {
        let ran = &self.evidence.checks.heldout_red;
        let tasks = self.snapshot.state.heldout.iter();
        tasks.map(|task| ran.iter().find(|red| red.node == task.node).unwrap_or(task).clone()).collect()
    }

    fn agent_summary(&self) -> String {
        match &self.claim.finding {
            SessionFinding::InvalidTree { answer, .. }
            | SessionFinding::RuleViolations { answer, .. }
            | SessionFinding::Accepted { answer, .. } => head(&answer.summary, SUMMARY_BYTES_MAX).to_owned(),
            SessionFinding::NoAnswer { .. } => String::new(),
        }
    }

    /// The rejected tree that waits for a repair.
    fn pending_repair(&self) -> Option<PendingRepair> {
        let rejected = match &self.claim.finding {
            SessionFinding::InvalidTree { rejected, .. }
            | SessionFinding::RuleViolations { rejected, .. } => rejected.clone(),
            SessionFinding::NoAnswer { .. } | SessionFinding::Accepted { .. } => String::new(),
        };
        let pending = |node: &NodeId, mode, tries| PendingRepair {
            iter: self.job.iteration,
            node: node.clone(),
            mode,
            tries,
            rejected,
            errors: self.claim.notes.texts.clone(),
            errors_omitted: self.claim.notes.omitted,
        };
        match (&self.job.target, self.decision.outcome) {
            (
                SessionTarget::Leaf(node) | SessionTarget::Replan(node) | SessionTarget::Split(node),
                Outcome::InvalidTree,
            ) => Some(pending(node, self.job.target.mode(), 0)),
            // A repair that left no plan of its own leaves the rejected one for the next.
            (SessionTarget::Repair(last), Outcome::RepairFailed)
                if matches!(self.claim.finding, SessionFinding::Accepted { .. }) =>
            {
                Some(PendingRepair { tries: last.tries.saturating_add(1), ..PendingRepair::clone(last) })
            }
            (SessionTarget::Repair(last), Outcome::RepairFailed) => {
                Some(pending(&last.node, last.mode, last.tries.saturating_add(1)))
            }
            (_, Outcome::Repaired | Outcome::RepairAbandoned | Outcome::Planned) => None,
            (_, _) => self.snapshot.state.repair.clone(),
        }
    }

    fn replanned(&self) -> Vec<NodeId> {
        let mut replanned = self.snapshot.state.replanned.clone();
        if let (SessionTarget::Replan(node), OutcomeClass::Answered) =
            (&self.job.target, self.decision.outcome.class())
        {
            replanned.push(node.clone());
            replanned.sort();
            replanned.dedup();
        }
        replanned
    }

    /// A guard file that took part in a pass is pinned from then on.
    fn pinned(&self) -> Vec<RepoPath> {
        let mut pinned = self.snapshot.state.pinned.clone();
        if self.decision.outcome == Outcome::Passed {
            pinned.extend(self.claim.protected.unpinned.iter().cloned());
            pinned.sort();
            pinned.dedup();
        }
        pinned
    }
}

pub(super) fn is_open_leaf(tree: &Tree, id: &NodeId) -> bool {
    let path = tree.path_to(id).unwrap_or_default();
    path.last().is_some_and(|node| node.is_leaf() && !node.passes)
}

/// What the guard printed, without control characters, and bounded.
pub(super) fn guard_output(guard: &GuardRun) -> Option<String> {
    let GuardRun::Ended { output, .. } = guard else { return None };
    Some(bounded_output(&lines(&String::from_utf8_lossy(output))))
}

/// A text within the bound: the beginning and the end of a longer one.
pub(super) fn bounded_output(text: &str) -> String {
    if text.len() <= GUARD_OUTPUT_BYTES_MAX {
        return text.to_owned();
    }
    // The result is within the bound itself, so that bounding it again changes nothing.
    let room = GUARD_OUTPUT_BYTES_MAX - OMISSION_BYTES_MAX;
    let start = head(text, room / 4);
    let end = tail(text, room - room / 4);
    let omitted = text.len() - start.len() - end.len();
    format!("{start}\n[{omitted} bytes left out]\n{end}")
}
