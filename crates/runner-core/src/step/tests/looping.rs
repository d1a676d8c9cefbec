//! The loop, and what it announces.

use super::*;

/// A world that hears everything: one agent, one guard, nothing written.
struct Hearing {
    snapshot: Snapshot,
    sessions: Vec<Attempt>,
    heard: Vec<serde_json::Value>,
}

impl World for Hearing {
    type Error = PromptError;

    fn load(&mut self) -> Result<Snapshot, PromptError> {
        Ok(self.snapshot.clone())
    }

    fn run_agent(&mut self, _: &Job) -> Result<Attempt, PromptError> {
        Ok(self.sessions.remove(0))
    }

    fn run_guard(&mut self, _: &Job, _: &[RepoPath]) -> Result<GuardRun, PromptError> {
        Ok(ended(0))
    }

    fn commit(&mut self, _: &Job, transition: &Transition) -> Result<IterationRecord, PromptError> {
        self.snapshot = after(&self.snapshot, transition);
        Ok(IterationRecord { commit: "c0ffee".to_owned() })
    }

    fn announce(&mut self, event: &Event) {
        let value = serde_json::to_value(event).unwrap();
        assert_eq!(value["event"], event.name());
        self.heard.push(value);
    }
}

impl LoopWorld for Hearing {
    fn end_of(&mut self, wait: &Wait) -> Result<u64, PromptError> {
        Ok(wait.end_ms(1_000))
    }

    fn pause(&mut self, _: Option<&Wait>) -> Result<Option<StopReason>, PromptError> {
        Ok(None)
    }
}

#[test]
fn a_loop_announces_every_stage_and_why_it_stops() {
    let snapshot = snapshot();
    let overloaded = SessionExit::Provider { fault: ProviderError::Overloaded };
    let overloaded =
        Attempt { exit: overloaded, answer: LeftFile::Missing, ..attempt("done", snapshot.tree.root()) };
    let done = attempt("done", snapshot.tree.root());
    let timed_out = Attempt { exit: SessionExit::TimedOut, ..overloaded.clone() };
    let mut world = Hearing { snapshot, sessions: vec![overloaded, done, timed_out], heard: Vec::new() };
    let stop = run_loop(&mut world, None).unwrap();
    assert_eq!(stop, StopReason::TimeLimit { outcome: Outcome::TimedOut });
    let names: Vec<&str> = world.heard.iter().filter_map(|event| event["event"].as_str()).collect();
    let silent = ["planned", "agent_ended", "checked", "decided", "committed"];
    let done = ["planned", "agent_ended", "checked", "guard_started", "guard_ended", "decided", "committed"];
    assert_eq!(names, [&silent[..], &["waiting"], &done, &silent, &["stopped"]].concat());
    let last = world.heard.last().unwrap();
    let told = serde_json::json!({
        "event": "stopped", "stop": {"reason": "time_limit", "outcome": "timed_out"}, "exit_code": 4
    });
    assert_eq!(*last, told);
    let committed = &world.heard[4];
    let told = serde_json::json!({
        "event": "committed", "iter": 7, "commit": "c0ffee",
        "next": {
            "then": "wait", "agent": "codex", "outcome": "overloaded", "secs": 5, "until_unix_secs": null,
            "secs_max": 604_800
        }
    });
    assert_eq!(*committed, told);
}

#[test]
fn a_loop_makes_no_more_iterations_than_it_was_asked_for() {
    let snapshot = snapshot();
    let retry = attempt("retry", snapshot.tree.root());
    let mut world = Hearing { snapshot, sessions: vec![retry.clone(), retry], heard: Vec::new() };
    assert_eq!(run_loop(&mut world, Some(1)), Ok(StopReason::LoopIterations { max: 1 }));
    assert_eq!(world.sessions.len(), 1);
}
