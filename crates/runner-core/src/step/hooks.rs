//! What a program of the user's is told when a node passed or the loop stops.

use serde_json::{Value, json};

use super::event::Event;
use super::outcome::{Outcome, StopReason};
use crate::config::{CommandArgv, HooksConfig};
use crate::model::id::{IterationNumber, RunId};
use crate::model::tree::LeafCount;

/// Listens to a loop, and knows when somebody is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookTrigger {
    run_id: Option<RunId>,
    iter: Option<IterationNumber>,
    node: String,
    title: String,
    outcome: Option<Outcome>,
    leaves: Option<LeafCount>,
}

/// Something to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// The key of the configuration.
    pub hook: &'static str,
    /// The program.
    pub argv: CommandArgv,
    /// What it is told.
    pub payload: Value,
}

impl HookTrigger {
    /// Takes an event in, and gives what is to be told because of it.
    pub fn note(&mut self, event: &Event, hooks: &HooksConfig) -> Option<HookCall> {
        if let Event::Planned { run_id, iter, path, title, .. } = event {
            (self.run_id, self.iter) = (Some(run_id.clone()), Some(*iter));
            (self.node, self.title, self.outcome) = (path.clone(), title.clone(), None);
        }
        if let Event::Decided { iter, outcome, leaves, .. } = event {
            (self.iter, self.outcome, self.leaves) = (Some(*iter), Some(*outcome), Some(*leaves));
        }
        if let Event::Committed { commit, .. } = event {
            let argv = hooks.on_pass.as_ref().filter(|_| self.outcome == Some(Outcome::Passed))?;
            return Some(self.word("on_pass", argv, json!({ "commit": commit })));
        }
        if let Event::Stopped { stop, exit_code } = event {
            let (hook, argv) = of_stop(stop, hooks)?;
            return Some(self.word(hook, argv, json!({ "stop": stop, "exit_code": exit_code })));
        }
        None
    }

    fn word(&self, hook: &'static str, argv: &CommandArgv, more: Value) -> HookCall {
        let mut says = json!({
            "schema": "runner.hook/1",
            "hook": hook,
            "run_id": self.run_id,
            "iter": self.iter,
            "node": self.node,
            "title": self.title,
            "outcome": self.outcome,
            "leaves": self.leaves,
        });
        if let (Value::Object(says), Value::Object(more)) = (&mut says, more) {
            says.extend(more);
        }
        HookCall { hook, argv: argv.clone(), payload: says }
    }
}

/// The hook for an end: the one for it, or else the one for every end.
fn of_stop<'h>(stop: &StopReason, hooks: &'h HooksConfig) -> Option<(&'static str, &'h CommandArgv)> {
    let own = match stop {
        StopReason::Complete => ("on_complete", hooks.on_complete.as_ref()),
        StopReason::Stuck { .. } => ("on_stuck", hooks.on_stuck.as_ref()),
        StopReason::MaxIterations { .. }
        | StopReason::LoopIterations { .. }
        | StopReason::Budget { .. }
        | StopReason::TimeLimit { .. }
        | StopReason::Failures { .. }
        | StopReason::NeedsUser { .. }
        | StopReason::Interrupted { .. }
        | StopReason::UserStop
        | StopReason::Unknown => ("on_stop", None),
    };
    [own, ("on_stop", hooks.on_stop.as_ref())].into_iter().find_map(|(hook, argv)| Some((hook, argv?)))
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

    fn settled(iter: IterationNumber, outcome: Outcome, passed: usize) -> Event {
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
    fn an_end_is_told_once_by_the_hook_that_is_nearest_to_it() {
        let argv = |name: &str| CommandArgv::new(vec![name.to_owned()]);
        let all = HooksConfig {
            on_complete: argv("c"),
            on_stuck: argv("k"),
            on_stop: argv("s"),
            ..HooksConfig::default()
        };
        let stop = HooksConfig { on_stop: argv("s"), ..HooksConfig::default() };
        let stuck = StopReason::Stuck { node: NodeId::root() };
        let told = |hooks: &HooksConfig, stop: &StopReason| of_stop(stop, hooks).map(|(hook, _)| hook);
        assert_eq!(told(&all, &StopReason::Complete), Some("on_complete"));
        assert_eq!(told(&all, &stuck), Some("on_stuck"));
        assert_eq!(told(&all, &StopReason::UserStop), Some("on_stop"));
        assert_eq!(told(&stop, &stuck), Some("on_stop"));
        assert_eq!(told(&HooksConfig { on_stop: None, ..all }, &StopReason::UserStop), None);
    }

    #[test]
    fn a_hook_is_told_of_every_pass_and_of_the_end_with_the_last_iteration() {
        let argv = |name: &str| CommandArgv::new(vec![name.to_owned()]).unwrap();
        let hooks =
            HooksConfig { on_pass: Some(argv("p")), on_stop: Some(argv("s")), ..HooksConfig::default() };
        let [first, second] = [1, 2].map(|iter| IterationNumber::new(iter).unwrap());
        let commit = "c0ffee".to_owned();
        let stop = StopReason::TimeLimit { outcome: Outcome::IdleTimeout };
        let mut telling = HookTrigger::default();
        let told: Vec<Option<HookCall>> = [
            planned(first, "root/a"),
            settled(first, Outcome::Passed, 4),
            Event::Committed { iter: first, commit: commit.clone(), next: NextAction::Go },
            planned(second, "root/b"),
            settled(second, Outcome::IdleTimeout, 5),
            Event::Committed { iter: second, commit, next: NextAction::Stop(stop.clone()) },
            Event::Stopped { stop, exit_code: 4 },
        ]
        .iter()
        .map(|event| telling.note(event, &hooks))
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
        assert_eq!(told, [None, None, Some(passed), None, None, None, Some(stopped)]);
    }
}
