//! What the callers of [`run_status`](super::run_status) know about a run.

use crate::config::Config;
use crate::layout::Doc;
use crate::model::id::{IterationNumber, RunId};
use crate::model::run_state::RunState;
use crate::model::tree::{LeafCount, Tree};
use crate::runs::identity::IdentityError;
use crate::step::{RecordedEvent, StopReason, Wait};

/// What is known about a run. Each caller fills in what it has read; what it has not is `None` or empty.
#[derive(Clone, Debug, Default)]
pub struct RunFacts<'a> {
    /// The run; none before the first start.
    pub run: Option<RunRef<'a>>,
    pub documents: DocumentFacts<'a>,
    pub checkout: CheckoutFacts<'a>,
    pub lock: LockHolder,
    /// Whether the user paused the run.
    pub is_paused: bool,
    /// Whether the user asked the loop to stop after the current iteration.
    pub is_stopping: bool,
    /// The wait before the next session, if it is not over.
    pub wait: Option<PendingWait<'a>>,
    /// The newest events of the newest iteration, oldest first.
    pub events: &'a [RecordedEvent],
    pub totals: RunTotals<'a>,
    /// Why a loop has just ended; it overrides the documents.
    pub stop: Option<&'a StopReason>,
}

/// A run and the branch that holds it.
#[derive(Clone, Copy, Debug)]
pub struct RunRef<'a> {
    pub id: &'a RunId,
    /// As git names it here: `runner/x`, or `origin/runner/x` in a clone.
    pub branch: &'a str,
}

/// The run's documents, as far as they were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct DocumentFacts<'a> {
    pub tree: Option<&'a Tree>,
    pub config: Option<&'a Config>,
    pub state: Option<&'a RunState>,
    /// The documents that are missing or invalid.
    pub invalid: &'a [Doc],
}

/// The work tree around the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckoutFacts<'a> {
    /// Why the checked-out branch does not belong to the run.
    pub identity: &'a [IdentityError],
    /// What the user must do before an iteration can start.
    pub blocker: Option<StartBlocker>,
    /// Whether another branch than the run's is checked out.
    pub is_elsewhere: bool,
    /// The other work tree that has the run's branch.
    pub worktree: Option<&'a str>,
}

/// What the user must do before a run can start or continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartBlocker {
    /// `.runner/` does not exist.
    NotInitialized,
    /// GOAL.md still holds the template.
    GoalNotWritten,
    /// The user changed files under `.runner/`.
    UncommittedRunnerFiles,
    /// Files outside `.runner/` are not committed.
    DirtyWorktree,
}

/// Which process holds the run's lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockHolder {
    #[default]
    Free,
    Runner {
        pid: u32,
    },
    /// No process, although the journal has an entry.
    DeadRunner {
        iteration: Option<IterationNumber>,
    },
}

/// A wait that is not over.
#[derive(Clone, Copy, Debug)]
pub struct PendingWait<'a> {
    pub wait: &'a Wait,
    /// In milliseconds since 1970.
    pub ends_ms: u64,
}

/// Sums over the iterations of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals<'a> {
    pub iterations: u32,
    pub failed_attempts: Option<u32>,
    /// When the last iteration ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// The tasks of the plan, for a caller that has not read the tree.
    pub leaves: Option<LeafCount>,
    /// How many attempts the stuck task had, for a caller that has not read the tree.
    pub stuck_attempts: Option<u32>,
    pub annotations: &'a [String],
}
