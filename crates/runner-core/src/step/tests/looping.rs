//! The loop, and the events that it announces.

use super::*;

/// A world that records every event: one agent, one guard, nothing written.
struct EventRecorder {
    snapshot: Snapshot,
    sessions: Vec<Attempt>,
    events: Vec<serde_json::Value>,
    loads: usize,
}

impl EventRecorder {
    fn new(snapshot: Snapshot, sessions: Vec<Attempt>) -> Self {
        Self { snapshot, sessions, events: Vec::new(), loads: 0 }
    }
}

fn commit_id() -> CommitId {
    CommitId::new("c0ffee".repeat(10).get(..40).unwrap()).unwrap()
}

impl IterationWorld for EventRecorder {
    type Error = PromptError;
    type Iteration = ();

    fn run_guard(&mut self, (): &mut (), _: &Job, _: &[RepoPath]) -> Result<GuardRun, PromptError> {
        Ok(ended(0))
    }

    fn commit(&mut self, (): (), _: &Job, transition: &Transition) -> Result<CommitId, PromptError> {
        self.snapshot = after(&self.snapshot, transition);
        Ok(commit_id())
    }

    fn announce(&mut self, event: &Event) {
        let value = serde_json::to_value(event).unwrap();
        assert_eq!(value["event"], event.name());
        self.events.push(value);
    }
}

impl World for EventRecorder {
    fn load(&mut self) -> Result<LoadedRun, PromptError> {
        self.loads += 1;
        Ok(LoadedRun { commit: commit_id(), snapshot: self.snapshot.clone() })
    }

    fn run_agent(&mut self, run: &LoadedRun, _: &Job) -> Result<((), Attempt), PromptError> {
        assert_eq!(run.snapshot, self.snapshot, "an iteration begins with the current state");
        Ok(((), self.sessions.remove(0)))
    }
}

impl LoopWorld for EventRecorder {
    fn end_of(&mut self, wait: &Wait) -> Result<u64, PromptError> {
        Ok(wait.end_ms(1_000))
    }

    fn wait_for_next(&mut self, wait: Option<&Wait>) -> Result<WaitResult, PromptError> {
        Ok(if wait.is_some() { WaitResult::Waited } else { WaitResult::Immediate })
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
    let mut world = EventRecorder::new(snapshot, vec![overloaded, done, timed_out]);
    let run = world.load().unwrap();
    let stop = run_loop(&mut world, run, None).unwrap();
    assert_eq!(world.loads, 3, "once per iteration");
    assert_eq!(stop, StopReason::TimeLimit { outcome: Outcome::TimedOut });
    let names: Vec<&str> = world.events.iter().filter_map(|event| event["event"].as_str()).collect();
    let silent = ["planned", "agent_ended", "checked", "decided", "committed"];
    let done = ["planned", "agent_ended", "checked", "guard_started", "guard_ended", "decided", "committed"];
    assert_eq!(names, [&silent[..], &["waiting"], &done, &silent, &["stopped"]].concat());
    let last = world.events.last().unwrap();
    let expected = serde_json::json!({
        "event": "stopped", "stop": {"reason": "time_limit", "outcome": "timed_out"}, "exit_code": 4
    });
    assert_eq!(*last, expected);
    let committed = &world.events[4];
    let expected = serde_json::json!({
        "event": "committed", "iter": 7, "commit": commit_id(),
        "next": {
            "then": "wait", "agent": "codex", "outcome": "overloaded", "secs": 5, "until_unix_secs": null,
            "secs_max": 604_800
        }
    });
    assert_eq!(*committed, expected);
}

#[test]
fn a_loop_stops_at_its_maximum_of_iterations() {
    let snapshot = snapshot();
    let retry = attempt("retry", snapshot.tree.root());
    let mut world = EventRecorder::new(snapshot, vec![retry.clone(), retry]);
    let run = world.load().unwrap();
    assert_eq!(run_loop(&mut world, run, Some(1)), Ok(StopReason::LoopIterations { max: 1 }));
    assert_eq!(world.sessions.len(), 1);
}
