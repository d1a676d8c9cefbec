//! What is announced while a step runs: one type, the same for terminal, events.jsonl, page and replay.
//!
//! An event says what happened, never when: whoever records it adds the time.

use schemars::JsonSchema;
use serde::Serialize;

use super::attempt::{Exit, GuardExit, Usage, Verdict};
use super::bookkeeping::findings;
use super::interpret::{Claim, Finding};
use super::mark::Mark;
use super::outcome::{Next, Outcome, Stop};
use super::plan::{Job, Mode, Nth};
use super::settle::{Charge, Transition};
use super::snapshot::Snapshot;
use super::wait::Wait;
use crate::agent_output::Status;
use crate::agents::AgentEvent;
use crate::config::{Argv, Budget};
use crate::digest::Sha256;
use crate::id::{Iteration, NodeId, RunId};
use crate::run_state::GuardResult;
use crate::spending::{BudgetLimit, Cost, Spent};
use crate::tree::Leaves;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A session is about to begin.
    Planned {
        run_id: RunId,
        iter: Iteration,
        mode: Mode,
        node: Option<NodeId>,
        path: String,
        title: String,
        attempt: Nth,
        agent: String,
        rung: Nth,
        budget: Budget,
        spent: Spent,
        prompt_bytes: usize,
        prompt_sha256: Sha256,
    },
    /// The guard is about to be run on the untouched repository.
    BaselineStarted { command: Argv },
    /// What it said is in git.
    BaselineEnded { guard: GuardResult, exit: String, command: Argv },
    /// An iteration that a crash left unfinished is taken up again.
    Resumed { iter: Iteration, exit: Exit },
    /// The agent said or did something, if it is one that the runner understands. The numbers count from 1 in each
    /// session.
    Agent {
        iter: Iteration,
        seq: u32,
        #[serde(flatten)]
        what: AgentEvent,
    },
    /// The session is over.
    AgentEnded { iter: Iteration, exit: Exit, usage: Usage, processes_left: u32 },
    /// The session's leavings were judged.
    Judged { iter: Iteration, judgement: Judgement, status: Option<Status>, findings: Vec<String> },
    /// The guard is about to run.
    GuardStarted { iter: Iteration, command: Argv },
    /// The guard is over.
    GuardEnded { iter: Iteration, end: GuardEnd, exit: Option<GuardExit> },
    /// The iteration is decided; its commit follows.
    Settled {
        iter: Iteration,
        outcome: Outcome,
        status: Status,
        guard: GuardResult,
        charge: Charge,
        marks: Vec<Mark>,
        leaves: Leaves,
        cost: Cost,
        spent: Spent,
    },
    /// The iteration is in git.
    Committed { iter: Iteration, commit: String, next: Next },
    /// The next iteration comes after a wait, which ends at this moment (milliseconds since 1970).
    Waiting { wait: Wait, ends_unix_ms: u64 },
    /// The loop stands still until the user lets it go on.
    Paused,
    /// It goes on.
    Continued,
    /// Limits of the budget cannot hold, because this agent does not say what they limit.
    BudgetBlind { limits: Vec<BudgetLimit>, agent: String },
    /// A program of the user's was told something; why that failed, if it did.
    HookRan { hook: String, fault: Option<String> },
    /// The run stops.
    Stopped { stop: Stop, exit_code: u8 },
}

/// A line of events.jsonl.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Recorded<'e> {
    /// When it happened, in milliseconds since 1970.
    pub t_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: &'e Event,
}

/// What the judging came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// No answer that counts.
    Silent,
    /// A tree that is none.
    InvalidTree,
    /// Broken rules.
    Broken,
    /// Nothing against it.
    Lawful,
}

/// How a run of the guard ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuardEnd {
    Ended,
    NotStarted,
    TimedOut,
    Interrupted,
    Skipped,
}

impl Event {
    pub(super) fn planned(snapshot: &Snapshot, job: &Job) -> Self {
        Self::Planned {
            run_id: job.run_id.clone(),
            iter: job.iteration,
            mode: job.aim.mode(),
            node: job.aim.node().cloned(),
            path: job.path.clone(),
            title: job.title.clone(),
            attempt: job.attempt,
            agent: job.agent.clone(),
            rung: job.rung,
            budget: snapshot.config.budget,
            spent: snapshot.state.spent,
            prompt_bytes: job.prompt.text.len(),
            prompt_sha256: job.prompt.sha256,
        }
    }

    pub(super) fn agent_ended(job: &Job, claim: &Claim) -> Self {
        let Claim { exit, usage, processes_left, .. } = claim;
        let (usage, processes_left) = (*usage, *processes_left);
        Self::AgentEnded { iter: job.iteration, exit: exit.clone(), usage, processes_left }
    }

    pub(super) fn judged(job: &Job, claim: &Claim) -> Self {
        let (judgement, status) = match &claim.finding {
            Finding::Silent { .. } => (Judgement::Silent, None),
            Finding::InvalidTree { answer, .. } => (Judgement::InvalidTree, Some(answer.status)),
            Finding::Broken { answer, .. } => (Judgement::Broken, Some(answer.status)),
            Finding::Lawful { answer, .. } => (Judgement::Lawful, Some(answer.status)),
        };
        Self::Judged { iter: job.iteration, judgement, status, findings: findings(claim) }
    }

    pub(super) fn guard_ended(job: &Job, verdict: &Verdict) -> Self {
        let (end, exit) = match verdict {
            Verdict::Ended { exit, .. } => (GuardEnd::Ended, Some(*exit)),
            Verdict::NotStarted { .. } => (GuardEnd::NotStarted, None),
            Verdict::TimedOut => (GuardEnd::TimedOut, None),
            Verdict::Interrupted { .. } => (GuardEnd::Interrupted, None),
            Verdict::Skipped => (GuardEnd::Skipped, None),
        };
        Self::GuardEnded { iter: job.iteration, end, exit }
    }

    pub(super) fn settled(job: &Job, transition: &Transition) -> Self {
        let meta = &transition.meta;
        Self::Settled {
            iter: job.iteration,
            outcome: transition.outcome,
            status: meta.status,
            guard: meta.guard,
            charge: meta.charge,
            marks: meta.marks.clone(),
            leaves: transition.tree.root().leaves(),
            cost: meta.cost,
            spent: meta.spent,
        }
    }

    pub(super) fn stopped(stop: &Stop) -> Self {
        Self::Stopped { stop: stop.clone(), exit_code: stop.exit_code() }
    }

    /// The event's own name, as its JSON has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Planned { .. } => "planned",
            Self::BaselineStarted { .. } => "baseline_started",
            Self::BaselineEnded { .. } => "baseline_ended",
            Self::Resumed { .. } => "resumed",
            Self::Agent { .. } => "agent",
            Self::AgentEnded { .. } => "agent_ended",
            Self::Judged { .. } => "judged",
            Self::GuardStarted { .. } => "guard_started",
            Self::GuardEnded { .. } => "guard_ended",
            Self::Settled { .. } => "settled",
            Self::Committed { .. } => "committed",
            Self::Waiting { .. } => "waiting",
            Self::Paused => "paused",
            Self::Continued => "continued",
            Self::BudgetBlind { .. } => "budget_blind",
            Self::HookRan { .. } => "hook_ran",
            Self::Stopped { .. } => "stopped",
        }
    }
}
