//! Hooks and notifications: decides from a loop's events what the user is notified of, and what a hook reads on standard input.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::backoff::Wait;
use super::event::Event;
use super::outcome::{NextAction, Outcome, StopReason};
use super::plan::SessionMode;
use crate::config::{CommandArgv, HooksConfig, NotifyEvent};
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::tree::LeafCount;
use crate::run_status::{NextCommand, RunFacts, RunRef, RunTotals, run_status};
use crate::text::one_line;

/// A shorter wait is not reported.
const LONG_WAIT_SECS: i64 = 300;

/// Tracks the events of a loop and decides when to run hooks and to notify.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookTrigger {
    run_id: Option<RunId>,
    iter: Option<IterationNumber>,
    node: String,
    title: String,
    outcome: Option<Outcome>,
    leaves: Option<LeafCount>,
    /// How many attempts each task has that this loop worked on.
    attempts: BTreeMap<NodeId, u32>,
    /// Whether a wait was reported since the last iteration without one.
    is_wait_reported: bool,
}

/// Something that a hook or a notification reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occasion {
    pub kind: OccasionKind,
    /// What happened, in a few words.
    pub why: String,
    pub next: Vec<NextCommand>,
    /// The run, if the loop has planned a session.
    pub run_id: Option<RunId>,
    /// When a wait ends, in milliseconds since 1970.
    pub until_unix_ms: Option<u64>,
    payload: Value,
}

/// What kind of occasion it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OccasionKind {
    Pass,
    Complete,
    Stuck,
    Stop,
    Wait,
    Question,
}

impl OccasionKind {
    /// The event of `[notify]`; passes are too many to be reported.
    pub fn notify_event(self) -> Option<NotifyEvent> {
        match self {
            Self::Pass => None,
            Self::Complete => Some(NotifyEvent::Complete),
            Self::Stuck => Some(NotifyEvent::Stuck),
            Self::Stop => Some(NotifyEvent::Stopped),
            Self::Wait => Some(NotifyEvent::Waiting),
            Self::Question => Some(NotifyEvent::Question),
        }
    }

    fn of_stop(stop: &StopReason) -> Self {
        match stop {
            StopReason::Complete => Self::Complete,
            StopReason::Stuck { .. } | StopReason::NotReproducible { .. } | StopReason::Regressed { .. } => {
                Self::Stuck
            }
            StopReason::MaxIterations { .. }
            | StopReason::LoopIterations { .. }
            | StopReason::LoopBudget { .. }
            | StopReason::LoopUntil { .. }
            | StopReason::Budget { .. }
            | StopReason::Stalled { .. }
            | StopReason::TimeLimit { .. }
            | StopReason::Failures { .. }
            | StopReason::NeedsUser { .. }
            | StopReason::VacuousChecks { .. }
            | StopReason::NotApproved
            | StopReason::Interrupted { .. }
            | StopReason::UserStop
            | StopReason::Unknown => Self::Stop,
        }
    }
}

/// One hook to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// The key of the configuration.
    pub hook: &'static str,
    pub argv: CommandArgv,
    /// JSON for the command's standard input.
    pub payload: Value,
}

impl HookTrigger {
    /// Records an event; returns what it gives to report.
    pub fn note(&mut self, event: &Event) -> Option<Occasion> {
        self.track(event);
        if let Event::Committed { commit, .. } = event {
            return self.passed(commit);
        }
        if let Event::Stopped { stop, exit_code } = event {
            return Some(self.stopped(stop, *exit_code));
        }
        if let Event::Waiting { wait, ends_unix_ms } = event {
            return self.waiting(wait, *ends_unix_ms);
        }
        if let Event::Asked { number, text, .. } = event {
            let why = format!("question {number}: {}", one_line(text));
            let next = vec![NextCommand::new(format!("runner answer {number} \"…\""), "answer it")];
            let more = json!({ "question": { "number": number, "text": text } });
            return Some(self.occasion(OccasionKind::Question, why, next, more));
        }
        None
    }

    fn passed(&self, commit: &str) -> Option<Occasion> {
        if self.outcome != Some(Outcome::Passed) {
            return None;
        }
        let tasks = self.leaves.map(|leaves| format!(" ({} of {} tasks)", leaves.passed, leaves.total));
        let why = format!("`{}` passed{}", one_line(&self.node), tasks.unwrap_or_default());
        Some(self.occasion(OccasionKind::Pass, why, Vec::new(), json!({ "commit": commit })))
    }

    fn stopped(&self, stop: &StopReason, exit_code: u8) -> Occasion {
        let branch = self.run_id.as_ref().map(|run| run.branch().to_string());
        let run = self.run_id.as_ref().zip(branch.as_deref());
        let stuck_attempts =
            if let StopReason::Stuck { node } = stop { self.attempts.get(node).copied() } else { None };
        let status = run_status(&RunFacts {
            run: run.map(|(id, branch)| RunRef { id, branch }),
            totals: RunTotals { leaves: self.leaves, stuck_attempts, ..RunTotals::default() },
            stop: Some(stop),
            ..RunFacts::default()
        });
        let more = json!({ "stop": stop, "exit_code": exit_code });
        self.occasion(OccasionKind::of_stop(stop), status.headline, status.next, more)
    }

    /// A long wait, unless one was reported already since the last iteration without a wait.
    fn waiting(&mut self, wait: &Wait, ends_unix_ms: u64) -> Option<Occasion> {
        let is_long = wait.outcome == Outcome::UsageLimit || wait.secs.get() >= LONG_WAIT_SECS;
        if self.is_wait_reported || !is_long {
            return None;
        }
        self.is_wait_reported = true;
        let why = format!("{}, {}", wait.outcome.label().text, one_line(&wait.agent));
        let next = vec![NextCommand::new("runner stop", "end the loop instead of waiting")];
        let more = json!({ "wait": wait, "until_unix_ms": ends_unix_ms });
        let occasion = self.occasion(OccasionKind::Wait, why, next, more);
        Some(Occasion { until_unix_ms: Some(ends_unix_ms), ..occasion })
    }

    /// Remembers what a report has about the last iteration.
    fn track(&mut self, event: &Event) {
        if let Event::Planned { mode: SessionMode::Leaf, node: Some(node), attempt, .. } = event {
            self.attempts.insert(node.clone(), attempt.of);
        }
        if let Event::Planned { run_id, iter, path, title, .. } = event {
            self.run_id = Some(run_id.clone());
            self.iter = Some(*iter);
            self.node.clone_from(path);
            self.title.clone_from(title);
            self.outcome = None;
        }
        if let Event::Decided { iter, outcome, leaves, .. } = event {
            self.iter = Some(*iter);
            self.outcome = Some(*outcome);
            self.leaves = Some(*leaves);
        }
        if let Event::Committed { next: NextAction::Go | NextAction::Stop(_), .. } = event {
            self.is_wait_reported = false;
        }
    }

    fn occasion(&self, kind: OccasionKind, why: String, next: Vec<NextCommand>, more: Value) -> Occasion {
        let mut payload = json!({
            "run_id": self.run_id,
            "iter": self.iter,
            "node": self.node,
            "title": self.title,
            "outcome": self.outcome,
            "leaves": self.leaves,
            "why": why,
            "next": next,
        });
        if let (Value::Object(payload), Value::Object(more)) = (&mut payload, more) {
            payload.extend(more);
        }
        Occasion { kind, why, next, run_id: self.run_id.clone(), until_unix_ms: None, payload }
    }
}

impl Occasion {
    /// The hook that is configured for the occasion: the one of its own, or for a stop `on_stop`.
    pub fn hook_call(&self, hooks: &HooksConfig) -> Option<HookCall> {
        let on_stop = ("on_stop", hooks.on_stop.as_ref());
        let candidates = match self.kind {
            OccasionKind::Pass => vec![("on_pass", hooks.on_pass.as_ref())],
            OccasionKind::Complete => vec![("on_complete", hooks.on_complete.as_ref()), on_stop],
            OccasionKind::Stuck => vec![("on_stuck", hooks.on_stuck.as_ref()), on_stop],
            OccasionKind::Stop => vec![on_stop],
            OccasionKind::Wait => vec![("on_wait", hooks.on_wait.as_ref())],
            OccasionKind::Question => vec![("on_question", hooks.on_question.as_ref())],
        };
        let (hook, argv) = candidates.into_iter().find_map(|(hook, argv)| Some((hook, argv?)))?;
        Some(HookCall { hook, argv: argv.clone(), payload: self.document("runner.hook/1", "hook", hook) })
    }

    /// The JSON document of a notification.
    pub fn notification(&self, event: NotifyEvent) -> Value {
        self.document("runner.notification/1", "event", event.as_str())
    }

    fn document(&self, schema: &str, key: &str, name: &str) -> Value {
        let mut document = json!({ "schema": schema, key: name });
        if let (Value::Object(document), Value::Object(payload)) = (&mut document, &self.payload) {
            document.extend(payload.clone());
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Budget;
    use crate::model::agent_output::AgentStatus;
    use crate::model::cost::{RunSpending, SessionCost};
    use crate::model::digest::Sha256;
    use crate::model::run_state::GuardResult;
    use crate::step::{AttemptCharge, CostSource, Ordinal};

    fn planned(iter: IterationNumber, path: &str) -> Event {
        let once = Ordinal { nth: 1, of: 1 };
        Event::Planned {
            run_id: RunId::new("r1").unwrap(),
            iter,
            mode: SessionMode::Leaf,
            node: None,
            path: path.to_owned(),
            title: format!("Title of {path}"),
            attempt: once,
            agent: "codex".to_owned(),
            rung: once,
            budget: Budget::default(),
            spent: RunSpending::default(),
            prompt_bytes: 0,
            prompt_sha256: Sha256::of(b""),
        }
    }

    fn decided(iter: IterationNumber, outcome: Outcome, passed: usize) -> Event {
        Event::Decided {
            iter,
            outcome,
            status: AgentStatus::Done,
            guard: GuardResult::Skipped,
            charge: AttemptCharge::Free,
            annotations: Vec::new(),
            leaves: LeafCount { total: 9, passed },
            cost: SessionCost { tokens: None, microdollars: None, basis: CostSource::Unknown },
            spent: RunSpending::default(),
        }
    }

    #[test]
    fn a_stop_runs_one_hook_and_the_most_specific_one() {
        let argv = |name: &str| CommandArgv::new(vec![name.to_owned()]);
        let all = HooksConfig {
            on_complete: argv("c"),
            on_stuck: argv("k"),
            on_stop: argv("s"),
            ..HooksConfig::default()
        };
        let stop = HooksConfig { on_stop: argv("s"), ..HooksConfig::default() };
        let stuck = StopReason::Stuck { node: NodeId::root() };
        let hook_for = |hooks: &HooksConfig, stop: &StopReason| {
            let event = Event::Stopped { stop: stop.clone(), exit_code: 0 };
            let call = HookTrigger::default().note(&event).and_then(|occasion| occasion.hook_call(hooks));
            call.map(|call| call.hook)
        };
        assert_eq!(hook_for(&all, &StopReason::Complete), Some("on_complete"));
        assert_eq!(hook_for(&all, &stuck), Some("on_stuck"));
        assert_eq!(hook_for(&all, &StopReason::UserStop), Some("on_stop"));
        assert_eq!(hook_for(&stop, &stuck), Some("on_stop"));
        assert_eq!(hook_for(&HooksConfig { on_stop: None, ..all }, &StopReason::UserStop), None);
    }

    /// The words of the loop's own end, which has the tree.
    #[test]
    fn a_stuck_task_is_reported_with_its_attempts() {
        let stopped = Event::Stopped { stop: StopReason::Stuck { node: NodeId::root() }, exit_code: 3 };
        let mut trigger = HookTrigger::default();
        assert_eq!(trigger.note(&stopped).unwrap().why, "`root` has no attempts left");
        let mut session = planned(IterationNumber::FIRST, "root");
        if let Event::Planned { node, attempt, .. } = &mut session {
            *node = Some(NodeId::root());
            *attempt = Ordinal { nth: 2, of: 2 };
        }
        assert_eq!(trigger.note(&session), None);
        assert_eq!(trigger.note(&stopped).unwrap().why, "`root` failed 2 of 2 attempts");
    }

    fn waiting(outcome: &str, secs: u32) -> Event {
        let wait = json!({ "agent": "codex", "outcome": outcome, "secs": secs, "until_unix_secs": null,
            "secs_max": 3600 });
        Event::Waiting { wait: serde_json::from_value(wait).unwrap(), ends_unix_ms: 9 }
    }

    #[test]
    fn waits_in_a_row_are_reported_once_and_short_ones_never() {
        let mut trigger = HookTrigger::default();
        assert_eq!(trigger.note(&waiting("rate_limited", 30)), None);
        let long = trigger.note(&waiting("overloaded", 300)).unwrap();
        assert_eq!((long.kind, long.why.as_str()), (OccasionKind::Wait, "overloaded, codex"));
        assert_eq!((long.until_unix_ms, long.kind.notify_event()), (Some(9), Some(NotifyEvent::Waiting)));
        assert_eq!(trigger.note(&waiting("usage_limit", 1)), None);
        let commit =
            Event::Committed { iter: IterationNumber::FIRST, commit: String::new(), next: NextAction::Go };
        assert_eq!(trigger.note(&commit), None);
        assert!(trigger.note(&waiting("usage_limit", 1)).is_some());
    }

    #[test]
    fn a_question_says_how_to_answer_it() {
        let asked = Event::Asked { iter: IterationNumber::FIRST, number: 2, text: "Which\nport?".to_owned() };
        let occasion = HookTrigger::default().note(&asked).unwrap();
        assert_eq!(occasion.why, "question 2: Which port?");
        assert_eq!(occasion.next.first().unwrap().command, "runner answer 2 \"…\"");
        let document = occasion.notification(NotifyEvent::Question);
        assert_eq!(document.pointer("/question/number"), Some(&json!(2)));
        assert_eq!(document.get("event"), Some(&json!("question")));
    }

    #[test]
    fn hooks_run_for_every_pass_and_for_the_stop_with_the_last_iteration() {
        let argv = |name: &str| CommandArgv::new(vec![name.to_owned()]).unwrap();
        let hooks =
            HooksConfig { on_pass: Some(argv("p")), on_stop: Some(argv("s")), ..HooksConfig::default() };
        let [first, second] = [1, 2].map(|iter| IterationNumber::new(iter).unwrap());
        let commit = "c0ffee".to_owned();
        let stop = StopReason::TimeLimit { outcome: Outcome::IdleTimeout };
        let mut trigger = HookTrigger::default();
        let calls: Vec<Option<HookCall>> = [
            planned(first, "root/a"),
            decided(first, Outcome::Passed, 4),
            Event::Committed { iter: first, commit: commit.clone(), next: NextAction::Go },
            planned(second, "root/b"),
            decided(second, Outcome::IdleTimeout, 5),
            Event::Committed { iter: second, commit, next: NextAction::Stop(stop.clone()) },
            Event::Stopped { stop, exit_code: 4 },
        ]
        .iter()
        .map(|event| trigger.note(event).and_then(|occasion| occasion.hook_call(&hooks)))
        .collect();
        let passed = json!({
            "schema": "runner.hook/1", "hook": "on_pass", "run_id": "r1", "iter": 1, "node": "root/a",
            "title": "Title of root/a", "outcome": "passed", "leaves": {"total": 9, "passed": 4},
            "why": "`root/a` passed (4 of 9 tasks)", "next": [],
            "commit": "c0ffee"
        });
        let stopped = json!({
            "schema": "runner.hook/1", "hook": "on_stop", "run_id": "r1", "iter": 2, "node": "root/b",
            "title": "Title of root/b", "outcome": "idle_timeout", "leaves": {"total": 9, "passed": 5},
            "why": "no output for too long (idle_timeout_secs)",
            "next": [
                {"command": "runner loop", "what": "continue"},
                {"command": "${EDITOR:-vi} .runner/state/config.toml",
                    "what": "if it was too short: raise idle_timeout_secs"},
                {"command": "runner start", "what": "commit the change"}
            ],
            "stop": {"reason": "time_limit", "outcome": "idle_timeout"}, "exit_code": 4
        });
        let passed = HookCall { hook: "on_pass", argv: argv("p"), payload: passed };
        let stopped = HookCall { hook: "on_stop", argv: argv("s"), payload: stopped };
        assert_eq!(calls, [None, None, Some(passed), None, None, None, Some(stopped)]);
    }
}
