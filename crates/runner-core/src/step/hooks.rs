//! Hooks: decides from a loop's events which command of the user's runs, and what it reads on standard input.

use serde_json::{Value, json};

use super::event::Event;
use super::outcome::{Outcome, StopReason};
use crate::config::{CommandArgv, HooksConfig};
use crate::model::id::{IterationNumber, RunId};
use crate::model::tree::LeafCount;

/// Tracks the events of a loop and decides which hook to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookTrigger {
    run_id: Option<RunId>,
    iter: Option<IterationNumber>,
    node: String,
    title: String,
    outcome: Option<Outcome>,
    leaves: Option<LeafCount>,
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
    /// Records an event; returns the hook that it triggers.
    pub fn note(&mut self, event: &Event, hooks: &HooksConfig) -> Option<HookCall> {
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
        if let Event::Committed { commit, .. } = event {
            let argv = hooks.on_pass.as_ref().filter(|_| self.outcome == Some(Outcome::Passed))?;
            return Some(self.call("on_pass", argv, json!({ "commit": commit })));
        }
        if let Event::Stopped { stop, exit_code } = event {
            let (hook, argv) = stop_hook(stop, hooks)?;
            return Some(self.call(hook, argv, json!({ "stop": stop, "exit_code": exit_code })));
        }
        None
    }

    fn call(&self, hook: &'static str, argv: &CommandArgv, more: Value) -> HookCall {
        let mut payload = json!({
            "schema": "runner.hook/1",
            "hook": hook,
            "run_id": self.run_id,
            "iter": self.iter,
            "node": self.node,
            "title": self.title,
            "outcome": self.outcome,
            "leaves": self.leaves,
        });
        if let (Value::Object(payload), Value::Object(more)) = (&mut payload, more) {
            payload.extend(more);
        }
        HookCall { hook, argv: argv.clone(), payload }
    }
}

/// The hook for a stop reason: the one for this reason, or else `on_stop`.
fn stop_hook<'h>(stop: &StopReason, hooks: &'h HooksConfig) -> Option<(&'static str, &'h CommandArgv)> {
    let specific = match stop {
        StopReason::Complete => ("on_complete", hooks.on_complete.as_ref()),
        StopReason::Stuck { .. } | StopReason::NotReproducible { .. } => {
            ("on_stuck", hooks.on_stuck.as_ref())
        }
        StopReason::MaxIterations { .. }
        | StopReason::LoopIterations { .. }
        | StopReason::Budget { .. }
        | StopReason::Stalled { .. }
        | StopReason::TimeLimit { .. }
        | StopReason::Failures { .. }
        | StopReason::NeedsUser { .. }
        | StopReason::VacuousChecks { .. }
        | StopReason::Interrupted { .. }
        | StopReason::UserStop
        | StopReason::Unknown => ("on_stop", None),
    };
    [specific, ("on_stop", hooks.on_stop.as_ref())].into_iter().find_map(|(hook, argv)| Some((hook, argv?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Budget;
    use crate::model::agent_output::AgentStatus;
    use crate::model::cost::{RunSpending, SessionCost};
    use crate::model::digest::Sha256;
    use crate::model::id::NodeId;
    use crate::model::run_state::GuardResult;
    use crate::step::{AttemptCharge, CostSource, NextAction, Ordinal, SessionMode};

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
        let hook_for = |hooks: &HooksConfig, stop: &StopReason| stop_hook(stop, hooks).map(|(hook, _)| hook);
        assert_eq!(hook_for(&all, &StopReason::Complete), Some("on_complete"));
        assert_eq!(hook_for(&all, &stuck), Some("on_stuck"));
        assert_eq!(hook_for(&all, &StopReason::UserStop), Some("on_stop"));
        assert_eq!(hook_for(&stop, &stuck), Some("on_stop"));
        assert_eq!(hook_for(&HooksConfig { on_stop: None, ..all }, &StopReason::UserStop), None);
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
        .map(|event| trigger.note(event, &hooks))
        .collect();
        let passed = json!({
            "schema": "runner.hook/1", "hook": "on_pass", "run_id": "r1", "iter": 1, "node": "root/a",
            "title": "Title of root/a", "outcome": "passed", "leaves": {"total": 9, "passed": 4},
            "commit": "c0ffee"
        });
        let stopped = json!({
            "schema": "runner.hook/1", "hook": "on_stop", "run_id": "r1", "iter": 2, "node": "root/b",
            "title": "Title of root/b", "outcome": "idle_timeout", "leaves": {"total": 9, "passed": 5},
            "stop": {"reason": "time_limit", "outcome": "idle_timeout"}, "exit_code": 4
        });
        let passed = HookCall { hook: "on_pass", argv: argv("p"), payload: passed };
        let stopped = HookCall { hook: "on_stop", argv: argv("s"), payload: stopped };
        assert_eq!(calls, [None, None, Some(passed), None, None, None, Some(stopped)]);
    }
}
