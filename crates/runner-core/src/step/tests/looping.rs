//! The loop, and the events that it announces.

use super::*;
use crate::model::checks::{Check, CheckExit, TaskChecks};
use crate::model::id::IterationNumber;

/// A world that records every event: one agent, one guard, nothing written.
struct EventRecorder {
    snapshot: Snapshot,
    sessions: Vec<Attempt>,
    events: Vec<serde_json::Value>,
    loads: usize,
    discarded: usize,
    waits: Vec<LoopWait>,
    /// The results of the final checks to come.
    final_guards: Vec<GuardRun>,
    /// The results of the checks of passed tasks to come.
    rechecks: Vec<CheckRun>,
    past: Vec<PastIteration>,
}

impl EventRecorder {
    fn new(snapshot: Snapshot, sessions: Vec<Attempt>) -> Self {
        Self {
            snapshot,
            sessions,
            events: Vec::new(),
            loads: 0,
            discarded: 0,
            waits: Vec::new(),
            final_guards: Vec::new(),
            rechecks: Vec::new(),
            past: Vec::new(),
        }
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

    fn run_check(
        &mut self,
        (): &mut (),
        _: &Job,
        _: &Check,
        _: &[RepoPath],
    ) -> Result<CheckRun, PromptError> {
        panic!("a check ran")
    }

    fn run_heldout(
        &mut self,
        (): &mut (),
        _: &Job,
        _: HeldoutId<'_>,
        _: &[RepoPath],
    ) -> Result<HeldoutRun, PromptError> {
        panic!("a held-out check ran")
    }

    fn run_review(
        &mut self,
        _: &mut Self::Iteration,
        _: &Job,
        _: &ReviewJob,
    ) -> Result<ReviewRun, Self::Error> {
        panic!("no review is configured")
    }

    fn commit(&mut self, (): (), _: &Job, transition: &Transition) -> Result<CommitId, PromptError> {
        self.snapshot = after(&self.snapshot, transition);
        Ok(commit_id())
    }

    fn discard(&mut self, (): (), _: &Job) -> Result<(), PromptError> {
        self.discarded += 1;
        Ok(())
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
        Ok(LoadedRun {
            commit: commit_id(),
            snapshot: self.snapshot.clone(),
            request: SessionRequest::Next,
            loop_budget: Default::default(),
        })
    }

    fn run_red_check(&mut self, _: &LoadedRun, _: &Job, _: &Check) -> Result<CheckRun, PromptError> {
        panic!("a check ran")
    }

    fn run_heldout_at_tip(&mut self, _: &LoadedRun, _: HeldoutId<'_>) -> Result<HeldoutRun, PromptError> {
        panic!("a held-out check ran")
    }

    fn run_agent(&mut self, run: &LoadedRun, _: &Job, _: &RedResults) -> Result<((), Attempt), PromptError> {
        assert_eq!(run.snapshot, self.snapshot, "an iteration begins with the current state");
        Ok(((), self.sessions.remove(0)))
    }

    fn run_recorded_guard(&mut self, run: &LoadedRun, job: &GuardJob) -> Result<GuardRun, PromptError> {
        assert_eq!(run.snapshot, self.snapshot, "the final check is about the current state");
        assert_eq!(job.occasion, GuardOccasion::Final);
        Ok(self.final_guards.remove(0))
    }

    fn run_recheck(
        &mut self,
        _: &LoadedRun,
        _: &GuardJob,
        _: &PassedChecks,
        _: &Check,
        _: &CommitId,
    ) -> Result<CheckRun, PromptError> {
        Ok(self.rechecks.remove(0))
    }

    fn past_iterations(&mut self, _: &LoadedRun) -> Result<Vec<PastIteration>, PromptError> {
        Ok(self.past.clone())
    }

    fn discard_guard_record(&mut self, _: &LoadedRun, _: &GuardJob) -> Result<(), PromptError> {
        Ok(())
    }

    fn commit_guard_record(&mut self, _: &LoadedRun, record: &GuardRecord) -> Result<CommitId, PromptError> {
        self.snapshot.state = record.state.clone();
        if let Some(task) = &record.regression {
            self.snapshot.tree = task.tree.clone();
        }
        Ok(commit_id())
    }
}

impl LoopWorld for EventRecorder {
    fn end_of(&mut self, wait: &LoopWait) -> Result<u64, PromptError> {
        Ok(wait.wait.end_ms(1_000))
    }

    fn wait_for_next(&mut self, wait: Option<&LoopWait>) -> Result<WaitResult, PromptError> {
        self.waits.extend(wait.cloned());
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
    let stop = run_loop(&mut world, run, &LoopLimits::of_iterations(None)).unwrap();
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
    assert_eq!(
        run_loop(&mut world, run, &LoopLimits::of_iterations(Some(1))),
        Ok(StopReason::LoopIterations { max: 1 })
    );
    assert_eq!(world.sessions.len(), 1);
}

/// A session that the provider ended before the agent did anything.
fn outage(snapshot: &Snapshot, fault: ProviderError) -> Attempt {
    Attempt {
        exit: SessionExit::Provider { fault },
        answer: LeftFile::Missing,
        tree: LeftFile::Bytes(snapshot.tree.bytes().to_vec()),
        work: ChangeScope::Decompose,
        changes: FileChanges::default(),
        ..attempt("done", snapshot.tree.root())
    }
}

#[test]
fn an_outage_shares_one_commit_and_counts_as_no_iteration() {
    let mut snapshot = snapshot();
    snapshot.config.max_iterations = BoundedInt::new(7).unwrap();
    let faults = [ProviderError::Overloaded, ProviderError::Disconnected, ProviderError::Overloaded];
    let mut sessions: Vec<Attempt> = faults.map(|fault| outage(&snapshot, fault)).to_vec();
    sessions.push(attempt("retry", snapshot.tree.root()));
    let mut world = EventRecorder::new(snapshot, sessions);
    let run = world.load().unwrap();
    let stop = run_loop(&mut world, run, &LoopLimits::of_iterations(None)).unwrap();
    assert_eq!(stop, StopReason::MaxIterations { max: 7 }, "the limit allowed one iteration, outages aside");
    let name = |event: &serde_json::Value| event["event"].as_str().unwrap().to_owned();
    let names: Vec<String> = world.events.iter().map(name).collect();
    let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
    assert_eq!((count("committed"), count("outage_continues"), world.discarded), (2, 2, 2));
    let waits: Vec<_> = world.waits.iter().map(|wait| (wait.wait.secs.get(), wait.since)).collect();
    assert_eq!(waits, [(5, WaitSince::LastCommit), (10, WaitSince::Now), (20, WaitSince::Now)]);
    assert_eq!(world.snapshot.state.next_iter.get(), 9, "numbers stay contiguous");
    assert_eq!(world.snapshot.state.progress.outages, 1);
}

#[test]
fn what_a_failed_session_left_is_committed_and_counts() {
    let snapshot = snapshot();
    let first = outage(&snapshot, ProviderError::Overloaded);
    let work = Attempt {
        work: ChangeScope::Execute,
        changes: FileChanges { work_files: 1, runner_files: 0 },
        ..first.clone()
    };
    let memory = Attempt { changes: FileChanges { work_files: 0, runner_files: 1 }, ..first.clone() };
    let tokens = Attempt { usage: Usage { input_tokens: Some(3), ..Usage::default() }, ..first.clone() };
    for session in [work, memory, tokens] {
        let sessions = vec![first.clone(), session, attempt("retry", snapshot.tree.root())];
        let mut world = EventRecorder::new(snapshot.clone(), sessions);
        let run = world.load().unwrap();
        assert_eq!(
            run_loop(&mut world, run, &LoopLimits::of_iterations(Some(2))),
            Ok(StopReason::LoopIterations { max: 2 })
        );
        assert_eq!((world.discarded, world.snapshot.state.progress.outages), (0, 1));
        assert_eq!(world.snapshot.state.next_iter.get(), 10);
    }
}

#[test]
fn a_limit_of_another_kind_is_recorded_although_nothing_changed() {
    let snapshot = snapshot();
    let limit = ProviderError::UsageLimit { resets_unix_secs: Some(9) };
    let sessions = vec![
        outage(&snapshot, ProviderError::Overloaded),
        outage(&snapshot, limit),
        outage(&snapshot, ProviderError::Overloaded),
        outage(&snapshot, ProviderError::UsageLimit { resets_unix_secs: Some(10) }),
        attempt("retry", snapshot.tree.root()),
    ];
    let mut world = EventRecorder::new(snapshot, sessions);
    let run = world.load().unwrap();
    assert_eq!(
        run_loop(&mut world, run, &LoopLimits::of_iterations(Some(1))),
        Ok(StopReason::LoopIterations { max: 1 })
    );
    assert_eq!(world.snapshot.state.progress.outages, 2, "its wait is on record");
    assert_eq!(world.discarded, 2, "the rest of the outage is not, whatever it reports");
}

/// A run whose last task was passed by the iteration before.
fn all_passed(final_guards: Vec<GuardRun>) -> EventRecorder {
    let all = with_root(snapshot(), |root| {
        root.children.iter_mut().for_each(|child| child.passes = true);
        root.passes = true;
    });
    EventRecorder { final_guards, ..EventRecorder::new(all, Vec::new()) }
}

#[test]
fn a_run_is_complete_only_after_the_guard_succeeded_in_a_clean_checkout() {
    let mut world = all_passed(vec![ended(1), ended(0)]);
    let run = world.load().unwrap();
    let not_reproducible = StopReason::NotReproducible { exit: "1".to_owned() };
    assert_eq!(run_loop(&mut world, run, &LoopLimits::of_iterations(None)), Ok(not_reproducible));
    let names: Vec<&str> = world.events.iter().filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(names, ["final_check_started", "final_check_ended", "stopped"]);
    for (left, what) in [(0, "the failed check runs again"), (0, "a check that succeeded does not")] {
        let run = world.load().unwrap();
        assert_eq!(
            run_loop(&mut world, run, &LoopLimits::of_iterations(None)),
            Ok(StopReason::Complete),
            "{what}"
        );
        assert_eq!(world.final_guards.len(), left, "{what}");
    }
    world.snapshot.user_commits = 1;
    world.final_guards.push(ended(0));
    let run = world.load().unwrap();
    assert_eq!(run_loop(&mut world, run, &LoopLimits::of_iterations(None)), Ok(StopReason::Complete));
    assert_eq!(world.final_guards.len(), 0, "a commit of the user's is checked too");
}

#[test]
fn a_final_check_without_a_result_records_nothing() {
    let by = Interruption::Int;
    for (guard, stop) in [
        (GuardRun::TimedOut, StopReason::TimeLimit { outcome: Outcome::GuardTimedOut }),
        (GuardRun::Interrupted { by }, StopReason::Interrupted { by }),
        (
            GuardRun::NotStarted { why: "gone".to_owned() },
            StopReason::Failures { outcome: Outcome::GuardNotStarted, in_row: 1 },
        ),
    ] {
        let mut world = all_passed(vec![guard]);
        let run = world.load().unwrap();
        assert_eq!(run_loop(&mut world, run.clone(), &LoopLimits::of_iterations(None)), Ok(stop));
        assert_eq!(world.snapshot, run.snapshot);
    }
}

#[test]
fn the_final_check_is_not_an_iteration() {
    let mut world = all_passed(vec![ended(0)]);
    let run = world.load().unwrap();
    assert_eq!(run_loop(&mut world, run, &LoopLimits::of_iterations(Some(0))), Ok(StopReason::Complete));
}

/// A run in which all tasks passed, and the first of them has a check.
fn all_passed_with_a_check(rechecks: Vec<i32>) -> EventRecorder {
    let toml = "[[check]]\nname = \"x\"\ncommand = [\"x\"]\n";
    let task = TaskChecks::read(toml.as_bytes(), |_| None).unwrap();
    let mut world = all_passed(vec![ended(0), ended(0)]);
    let first = world.snapshot.tree.root().children.first().unwrap().id.clone();
    world.snapshot.node_files.checks.insert(first.clone(), task);
    world.rechecks = rechecks
        .into_iter()
        .map(|code| CheckRun::Ended {
            exit: CheckExit::Code(code),
            output: Vec::new(),
            junit: None,
            redirects: Vec::new(),
            place: GuardPlace::in_place(TreeId::none()),
        })
        .collect();
    world.past = (1..=5)
        .map(|nth| PastIteration {
            iter: IterationNumber::new(nth).unwrap(),
            commit: commit_id(),
            passed: (nth == 2).then(|| first.clone()),
        })
        .collect();
    world
}

#[test]
fn a_run_is_complete_only_after_the_checks_of_all_tasks_succeeded_again() {
    let mut world = all_passed_with_a_check(vec![0]);
    let run = world.load().unwrap();
    assert_eq!(run_loop(&mut world, run, &LoopLimits::of_iterations(None)), Ok(StopReason::Complete));
    assert_eq!(world.rechecks, []);
}

#[test]
fn the_iteration_that_broke_a_check_is_found_by_bisection() {
    // On the last commit, then iteration 5, then 3 (of 2 to 5), then 4 or 2.
    for (codes, broken_by) in [
        (vec![1, 1, 0, 1], Some(4)),
        (vec![1, 1, 0, 0], Some(5)),
        (vec![1, 1, 1, 0], Some(3)),
        (vec![1, 1, 1, 1], Some(2)),
        (vec![1, 0], None),
    ] {
        let mut world = all_passed_with_a_check(codes.clone());
        world.snapshot.config.checks.regression_tasks = BoundedInt::fixed::<0>();
        let run = world.load().unwrap();
        let stop = run_loop(&mut world, run, &LoopLimits::of_iterations(None)).unwrap();
        let StopReason::Regressed { broken_by: found, .. } = &stop else { panic!("{stop:?}") };
        assert_eq!(found.map(IterationNumber::get), broken_by, "{codes:?}");
        assert_eq!(world.rechecks, [], "{codes:?}");
        assert_eq!(stop.exit_code(), 3);
        assert_eq!(final_state(&world.snapshot.config, &world.snapshot.state), FinalState::Regressed);
    }
}

#[test]
fn a_check_that_fails_again_becomes_the_next_task() {
    let mut world = all_passed_with_a_check(vec![1, 0]);
    let run = world.load().unwrap();
    assert_eq!(step(&mut world, &run), Ok(StepResult::Rechecked));
    let task = world.snapshot.tree.root().children.first().unwrap();
    assert_eq!((task.id.as_str(), task.passes, task.attempts), ("regression-1", false, 0));
    assert!(task.goal.contains("Check `x` of task `"), "{}", task.goal);
    assert!(!world.snapshot.tree.root().passes, "the run is open again");
    assert_eq!(world.snapshot.state.ratchet.tasks, 1);
}
