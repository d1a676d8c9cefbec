//! The events of a run: one type for the terminal, events.jsonl, the page and hooks.
//!
//! An event has no time; the host adds one to each line that it writes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::annotations::Annotation;
use super::attempt::{GuardExit, GuardRun, SessionExit, Usage};
use super::backoff::Wait;
use super::checks::CheckPhase;
use super::file_notice::FileNotice;
use super::interpret::{Claim, SessionFinding};
use super::outcome::{NextAction, Outcome, StopReason};
use super::plan::{Job, Ordinal, SessionMode};
use super::review::ReviewReport;
use super::settle::{AttemptCharge, Transition};
use super::snapshot::Snapshot;
use crate::agents::AgentEvent;
use crate::config::{Budget, CommandArgv};
use crate::model::agent_output::AgentStatus;
use crate::model::checks::{Check, CheckExit, CheckName, RedKind};
use crate::model::cost::{BudgetLimit, RunSpending, SessionCost};
use crate::model::digest::Sha256;
use crate::model::heldout::HeldoutResult;
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::run_state::GuardResult;
use crate::model::tree::LeafCount;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A session is about to start.
    Planned {
        run_id: RunId,
        iter: IterationNumber,
        mode: SessionMode,
        node: Option<NodeId>,
        path: String,
        title: String,
        attempt: Ordinal,
        agent: String,
        rung: Ordinal,
        budget: Budget,
        spent: RunSpending,
        prompt_bytes: usize,
        prompt_sha256: Sha256,
    },
    /// The guard is about to run on the untouched repository, before the first session with this guard.
    BaselineStarted { command: CommandArgv },
    /// The baseline is committed.
    BaselineEnded { guard: GuardResult, exit: String, command: CommandArgv, next_iter: IterationNumber },
    /// All tasks passed, and the guard is about to run in a clean checkout of the last commit.
    FinalCheckStarted { command: CommandArgv },
    /// The result of the final check is committed.
    FinalCheckEnded { guard: GuardResult, exit: String, command: CommandArgv },
    /// A command recovers an iteration that a crash interrupted.
    Recovered { iter: IterationNumber, exit: SessionExit },
    /// The agent wrote a line that the runner can parse. `seq` counts from 1 in each session.
    Agent {
        iter: IterationNumber,
        seq: u32,
        #[serde(flatten)]
        activity: AgentEvent,
    },
    /// The agent's session ended.
    AgentEnded { iter: IterationNumber, exit: SessionExit, usage: Usage, processes_left: u32 },
    /// A file of the session is not committed as it is, or the session changed an ignored file.
    FileNoticed {
        iter: IterationNumber,
        #[serde(flatten)]
        notice: FileNotice,
    },
    /// The answer and the tree of the session were checked.
    Checked {
        iter: IterationNumber,
        result: SessionCheck,
        status: Option<AgentStatus>,
        findings: Vec<String>,
    },
    /// A check of a passed task is about to run again.
    RecheckStarted { node: NodeId, check: CheckName, command: CommandArgv },
    /// A check of a passed task ended; `broken_by` is the iteration that broke it, if it failed and that is known.
    RecheckEnded { node: NodeId, check: CheckName, exit: CheckExit, broken_by: Option<IterationNumber> },
    /// A check of a passed task failed again, and the plan has a new task for it.
    RegressionAdded { task: NodeId, node: NodeId, check: CheckName, broken_by: Option<IterationNumber> },
    /// A check of the task is about to run.
    CheckStarted { iter: IterationNumber, check: CheckName, phase: CheckPhase, command: CommandArgv },
    /// A check of the task ended; `red` is what that means before the work.
    CheckEnded {
        iter: IterationNumber,
        check: CheckName,
        phase: CheckPhase,
        exit: CheckExit,
        red: Option<RedKind>,
    },
    /// A held-out check ended: before the work with `red`, after it or again later with `result`.
    HeldoutEnded { node: NodeId, check: CheckName, red: Option<RedKind>, result: Option<HeldoutResult> },
    /// The guard is about to run.
    GuardStarted { iter: IterationNumber, command: CommandArgv },
    /// The guard's command ended.
    GuardEnded { iter: IterationNumber, end: GuardEnd, exit: Option<GuardExit> },
    /// A reviewer is about to look at the work.
    ReviewStarted { iter: IterationNumber, agent: String, round: Ordinal },
    /// A reviewer gave a verdict, or none.
    ReviewEnded {
        iter: IterationNumber,
        #[serde(flatten)]
        report: ReviewReport,
    },
    /// The outcome is decided; the commit follows.
    Decided {
        iter: IterationNumber,
        outcome: Outcome,
        status: AgentStatus,
        guard: GuardResult,
        charge: AttemptCharge,
        annotations: Vec<Annotation>,
        leaves: LeafCount,
        cost: SessionCost,
        spent: RunSpending,
    },
    /// The iteration is committed.
    Committed { iter: IterationNumber, commit: String, next: NextAction },
    /// The provider is still failing. The session left nothing and is not committed.
    OutageContinues { iter: IterationNumber, outcome: Outcome },
    /// The loop waits before the next iteration, until `ends_unix_ms` (milliseconds since 1970).
    Waiting { wait: Wait, ends_unix_ms: u64 },
    /// The user paused the loop.
    Paused,
    /// The user resumed the loop.
    Resumed,
    /// The agent does not report what these budget limits need, so that they cannot be enforced.
    BudgetUnenforceable { limits: Vec<BudgetLimit>, agent: String },
    /// What confines the agent, as `sandbox` in meta.json has it: at the first session of a loop, and when it changes. Without a
    /// sandbox, `why` is the reason; `gap` is what the sandbox does not cover on this system.
    SandboxChosen { sandbox: String, why: Option<String>, gap: Option<String> },
    /// The guard runs in the work tree, without a room; `why` is the reason.
    GuardInPlace { why: String },
    /// The guard fails in the room before the first session and succeeds in the work tree: keys for `[guard]` with which it
    /// succeeds in the room too.
    RoomProposal { command: CommandArgv, keys: Vec<String> },
    /// A hook ran; `fault` is the reason if it failed.
    HookRan { hook: String, fault: Option<String> },
    /// An agent asked a question. `number` counts from 1 in questions.md.
    Asked { iter: IterationNumber, number: usize, text: String },
    /// An edit that the user made while an iteration ran or a wait lasted was committed; `fault` is the reason if it was
    /// refused.
    QueuedEdit { edit: String, fault: Option<String> },
    /// A notification was sent; `fault` is the reason if that failed.
    Notified { to: String, fault: Option<String> },
    /// The loop stops and exits.
    Stopped { stop: StopReason, exit_code: u8 },
    /// An event that only a newer runner knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// A line of events.jsonl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RecordedEvent")]
pub struct RecordedEvent<E = Event> {
    /// Milliseconds since 1970.
    pub t_ms: u64,
    #[serde(flatten)]
    pub event: E,
}

impl RecordedEvent {
    /// Parses a line of events.jsonl. An event of a newer runner, or a known one with contents that this version does not
    /// know, is [`Event::Unknown`]; `None` for a line that holds no event, such as one that a crash cut off.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct EventTime {
            t_ms: u64,
        }
        if let Ok(recorded) = serde_json::from_slice(line) {
            return Some(recorded);
        }
        let EventTime { t_ms } = serde_json::from_slice(line).ok()?;
        Some(Self { t_ms, event: Event::Unknown })
    }

    /// Every event in a file or a part of one, without the lines that hold none.
    pub fn from_lines(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes.split(|byte| *byte == b'\n').filter_map(Self::from_line)
    }
}

/// The result of checking a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionCheck {
    NoAnswer,
    InvalidTree,
    RuleViolations,
    Accepted,
}

/// How a guard run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
            mode: job.target.mode(),
            node: job.target.node().cloned(),
            path: job.task.path.clone(),
            title: job.task.title.clone(),
            attempt: job.task.attempt,
            agent: job.agent.label(),
            rung: job.agent.rung,
            budget: snapshot.config.budget,
            spent: snapshot.state.spent,
            prompt_bytes: job.prompt.text.len(),
            prompt_sha256: job.prompt.sha256,
        }
    }

    pub(super) fn agent_ended(job: &Job, claim: &Claim) -> Self {
        Self::AgentEnded {
            iter: job.iteration,
            exit: claim.exit.clone(),
            usage: claim.usage,
            processes_left: claim.processes_left,
        }
    }

    pub(super) fn checked(job: &Job, claim: &Claim) -> Self {
        let (result, status) = match &claim.finding {
            SessionFinding::NoAnswer { .. } => (SessionCheck::NoAnswer, None),
            SessionFinding::InvalidTree { answer, .. } => (SessionCheck::InvalidTree, Some(answer.status)),
            SessionFinding::RuleViolations { answer, .. } => {
                (SessionCheck::RuleViolations, Some(answer.status))
            }
            SessionFinding::Accepted { answer, .. } => (SessionCheck::Accepted, Some(answer.status)),
        };
        Self::Checked { iter: job.iteration, result, status, findings: claim.notes.lines() }
    }

    pub(super) fn check_started(job: &Job, check: &Check, phase: CheckPhase) -> Self {
        Self::CheckStarted {
            iter: job.iteration,
            check: check.name.clone(),
            phase,
            command: check.command.clone(),
        }
    }

    pub(super) fn check_ended(
        job: &Job,
        check: &Check,
        phase: CheckPhase,
        exit: CheckExit,
        red: Option<RedKind>,
    ) -> Self {
        Self::CheckEnded { iter: job.iteration, check: check.name.clone(), phase, exit, red }
    }

    pub(super) fn guard_ended(job: &Job, guard: &GuardRun) -> Self {
        let (end, exit) = match guard {
            GuardRun::Ended { exit, .. } => (GuardEnd::Ended, Some(*exit)),
            GuardRun::NotStarted { .. } => (GuardEnd::NotStarted, None),
            GuardRun::TimedOut => (GuardEnd::TimedOut, None),
            GuardRun::Interrupted { .. } => (GuardEnd::Interrupted, None),
            GuardRun::Skipped => (GuardEnd::Skipped, None),
        };
        Self::GuardEnded { iter: job.iteration, end, exit }
    }

    pub(super) fn decided(job: &Job, transition: &Transition) -> Self {
        let meta = &transition.meta;
        Self::Decided {
            iter: job.iteration,
            outcome: transition.outcome,
            status: meta.status,
            guard: meta.guard,
            charge: meta.charge,
            annotations: meta.annotations.clone(),
            leaves: transition.tree.root().leaves(),
            cost: meta.cost,
            spent: meta.spent,
        }
    }

    pub(super) fn stopped(stop: &StopReason) -> Self {
        Self::Stopped { stop: stop.clone(), exit_code: stop.exit_code() }
    }

    /// The event's name, as in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Planned { .. } => "planned",
            Self::BaselineStarted { .. } => "baseline_started",
            Self::BaselineEnded { .. } => "baseline_ended",
            Self::FinalCheckStarted { .. } => "final_check_started",
            Self::FinalCheckEnded { .. } => "final_check_ended",
            Self::Recovered { .. } => "recovered",
            Self::Agent { .. } => "agent",
            Self::AgentEnded { .. } => "agent_ended",
            Self::FileNoticed { .. } => "file_noticed",
            Self::Checked { .. } => "checked",
            Self::RecheckStarted { .. } => "recheck_started",
            Self::RecheckEnded { .. } => "recheck_ended",
            Self::RegressionAdded { .. } => "regression_added",
            Self::CheckStarted { .. } => "check_started",
            Self::CheckEnded { .. } => "check_ended",
            Self::HeldoutEnded { .. } => "heldout_ended",
            Self::GuardStarted { .. } => "guard_started",
            Self::GuardEnded { .. } => "guard_ended",
            Self::ReviewStarted { .. } => "review_started",
            Self::ReviewEnded { .. } => "review_ended",
            Self::Decided { .. } => "decided",
            Self::Committed { .. } => "committed",
            Self::OutageContinues { .. } => "outage_continues",
            Self::Waiting { .. } => "waiting",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::BudgetUnenforceable { .. } => "budget_unenforceable",
            Self::SandboxChosen { .. } => "sandbox_chosen",
            Self::GuardInPlace { .. } => "guard_in_place",
            Self::RoomProposal { .. } => "room_proposal",
            Self::HookRan { .. } => "hook_ran",
            Self::Asked { .. } => "asked",
            Self::QueuedEdit { .. } => "queued_edit",
            Self::Notified { .. } => "notified",
            Self::Stopped { .. } => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::AgentEventKind;

    #[test]
    fn a_line_is_read_back_as_it_was_written() {
        let iter = IterationNumber::FIRST;
        let activity = AgentEvent {
            id: Some("1".to_owned()),
            parent: None,
            kind: AgentEventKind::Message { text: "hello".to_owned() },
        };
        for event in [
            Event::Paused,
            Event::Agent { iter, seq: 3, activity },
            Event::GuardEnded { iter, end: GuardEnd::Ended, exit: Some(GuardExit::Signal(9)) },
            Event::Committed {
                iter,
                commit: "c0ffee".to_owned(),
                next: NextAction::Stop(StopReason::UserStop),
            },
            Event::stopped(&StopReason::Stuck { node: NodeId::root() }),
        ] {
            let line = serde_json::to_vec(&RecordedEvent { t_ms: 7, event: &event }).unwrap();
            assert_eq!(RecordedEvent::from_line(&line), Some(RecordedEvent { t_ms: 7, event }));
        }
    }

    #[test]
    fn lines_of_a_newer_runner_are_unknown_events_and_broken_lines_are_skipped() {
        let lines = br#"{"t_ms": 1, "event": "paused", "by": "robot"}
{"t_ms": 2, "event": "reviewed", "verdict": {"ok": true}}
{"t_ms": 3, "event": "guard_ended", "iter": 1, "end": "melted", "exit": null}
{"t_ms": 4, "event": "stopped", "stop": {"reason": "landed", "at": 5}, "exit_code": 0}
{"t_ms": 5, "event": "pau"#;
        let read: Vec<_> = RecordedEvent::from_lines(lines).map(|line| (line.t_ms, line.event)).collect();
        let stopped = Event::Stopped { stop: StopReason::Unknown, exit_code: 0 };
        assert_eq!(read, [(1, Event::Paused), (2, Event::Unknown), (3, Event::Unknown), (4, stopped)]);
    }
}
