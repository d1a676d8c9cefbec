//! What the newest events of a run report: what the runner does now, on which task, and why it stopped.

use super::RunPhase;
use crate::step::{CheckPhase, Event, NextAction, Ordinal, RecordedEvent, StopReason, Wait};
use crate::text::one_line;

/// What the runner does, according to the newest event about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunActivity<'e> {
    /// The guard runs before the first session.
    Baseline,
    Agent,
    Checking,
    Guard,
    FinalCheck,
    Rechecking,
    Committing,
    NextIteration,
    Waiting {
        wait: &'e Wait,
        ends_ms: u64,
    },
    Paused,
}

impl<'e> RunActivity<'e> {
    fn of(event: &'e Event) -> Option<Self> {
        match event {
            Event::Planned { .. } | Event::Recovered { .. } | Event::Agent { .. } => Some(Self::Agent),
            Event::AgentEnded { .. } | Event::FileNoticed { .. } | Event::Checked { .. } => {
                Some(Self::Checking)
            }
            Event::GuardStarted { .. }
            | Event::CheckStarted { .. }
            | Event::HeldoutEnded { result: Some(_), .. }
            | Event::ReviewStarted { .. }
            | Event::CheckEnded { phase: CheckPhase::Green, .. } => Some(Self::Guard),
            Event::CheckEnded { phase: CheckPhase::Red, .. } | Event::HeldoutEnded { result: None, .. } => {
                Some(Self::Agent)
            }
            Event::BaselineStarted { .. } => Some(Self::Baseline),
            Event::FinalCheckStarted { .. } => Some(Self::FinalCheck),
            Event::RecheckStarted { .. } | Event::RecheckEnded { .. } => Some(Self::Rechecking),
            Event::GuardEnded { .. }
            | Event::ReviewEnded { .. }
            | Event::Decided { .. }
            | Event::FinalCheckEnded { .. } => Some(Self::Committing),
            Event::Committed { .. }
            | Event::RegressionAdded { .. }
            | Event::OutageContinues { .. }
            | Event::Resumed
            | Event::BaselineEnded { .. } => Some(Self::NextIteration),
            Event::Waiting { wait, ends_unix_ms } => Some(Self::Waiting { wait, ends_ms: *ends_unix_ms }),
            Event::Paused => Some(Self::Paused),
            Event::BudgetUnenforceable { .. }
            | Event::SandboxChosen { .. }
            | Event::GuardInPlace { .. }
            | Event::RoomProposal { .. }
            | Event::HookRan { .. }
            | Event::Asked { .. }
            | Event::QueuedEdit { .. }
            | Event::Notified { .. }
            | Event::Stopped { .. }
            | Event::Unknown => None,
        }
    }

    pub(super) fn phase(self) -> Option<RunPhase> {
        match self {
            Self::Agent | Self::NextIteration => Some(RunPhase::Agent),
            Self::Baseline | Self::Guard | Self::FinalCheck | Self::Rechecking => Some(RunPhase::Guard),
            Self::Checking | Self::Committing => Some(RunPhase::Commit),
            Self::Waiting { .. } | Self::Paused => None,
        }
    }
}

/// The session that the newest `planned` event announced.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedSession<'e> {
    pub(super) iteration: u32,
    pub(super) path: &'e str,
    attempt: Ordinal,
    agent: &'e str,
}

/// The newest events of a run: those of its newest iteration, and those of the run itself that came after them.
pub fn with_later_events(mut iteration: Vec<RecordedEvent>, run: Vec<RecordedEvent>) -> Vec<RecordedEvent> {
    let last_ms = iteration.last().map_or(0, |recorded| recorded.t_ms);
    iteration.extend(run.into_iter().filter(|recorded| recorded.t_ms >= last_ms));
    iteration
}

/// What the newest events report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestEvents<'e> {
    pub(super) activity: Option<RunActivity<'e>>,
    pub(super) activity_ms: Option<u64>,
    pub(super) planned: Option<PlannedSession<'e>>,
    pub(super) stop: Option<&'e StopReason>,
    pub(super) stop_ms: Option<u64>,
}

impl<'e> LatestEvents<'e> {
    pub(super) fn of(events: &'e [RecordedEvent]) -> Self {
        let mut latest = Self::default();
        for RecordedEvent { t_ms, event } in events {
            if let Some(activity) = RunActivity::of(event) {
                // Every event of an agent repeats what `planned` began.
                if latest.activity != Some(activity) {
                    latest.activity_ms = Some(*t_ms);
                }
                latest.activity = Some(activity);
            }
            if let Event::Planned { iter, path, attempt, agent, .. } = event {
                let planned = PlannedSession { iteration: iter.get(), path, attempt: *attempt, agent };
                latest = Self { planned: Some(planned), ..latest };
            }
            // A loop works on the run again.
            if matches!(
                event,
                Event::Planned { .. } | Event::BaselineStarted { .. } | Event::Waiting { .. } | Event::Paused
            ) {
                (latest.stop, latest.stop_ms) = (None, None);
            }
            if let Event::Stopped { stop, .. } | Event::Committed { next: NextAction::Stop(stop), .. } = event
            {
                (latest.stop, latest.stop_ms) = (Some(stop), Some(*t_ms));
            }
        }
        latest
    }

    /// The path of the task that the session works on; none in a repair.
    pub(super) fn task(&self) -> Option<String> {
        self.planned.map(|planned| one_line(planned.path)).filter(|path| !path.is_empty())
    }

    /// `agent codex, attempt 2 of 3`.
    pub(super) fn session_text(&self) -> Option<String> {
        let PlannedSession { attempt, agent, .. } = self.planned?;
        Some(format!("agent {}, attempt {} of {}", one_line(agent), attempt.nth, attempt.of))
    }
}
