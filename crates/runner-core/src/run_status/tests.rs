//! Every state of a run, from the facts that lead to it.

use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::model::id::RunId;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;
use crate::step::{Event, Interruption, Outcome, RecordedEvent, Wait};

fn tree(attempts: u32, passes: bool) -> Tree {
    let root = json!({ "version": 1, "root": { "id": "root", "order": 0, "title": "T", "goal": "", "acceptance": [],
        "passes": passes, "attempts": attempts, "max_attempts": 3, "children": [] } });
    Tree::decode(root.to_string().as_bytes()).unwrap()
}

fn run_id() -> RunId {
    RunId::new("x").unwrap()
}

/// The facts about run `x` with this tree, and nothing else.
fn facts<'a>(id: &'a RunId, tree: &'a Tree) -> RunFacts<'a> {
    RunFacts {
        run: Some(RunRef { id, branch: "runner/x" }),
        documents: DocumentFacts { tree: Some(tree), ..DocumentFacts::default() },
        totals: RunTotals { iterations: 1, ..RunTotals::default() },
        ..RunFacts::default()
    }
}

fn event(value: &Value) -> Event {
    serde_json::from_value(value.clone()).unwrap()
}

fn events(values: &[Value]) -> Vec<RecordedEvent> {
    (0..).zip(values).map(|(t_ms, value)| RecordedEvent { t_ms, event: event(value) }).collect()
}

fn planned() -> Value {
    json!({ "event": "planned", "run_id": "x", "iter": 3, "mode": "leaf", "node": "root", "path": "root",
        "title": "T", "attempt": { "nth": 2, "of": 3 }, "agent": "codex", "rung": { "nth": 1, "of": 1 },
        "budget": {}, "spent": RunState::new(None).spent, "prompt_bytes": 1,
        "prompt_sha256": "0".repeat(64) })
}

fn commands(status: &RunStatus) -> Vec<&str> {
    status.next.iter().map(|next| next.command.as_str()).collect()
}

#[test]
fn every_state_is_serialized_as_its_name() {
    for state in LifecycleState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    for phase in [RunPhase::Agent, RunPhase::Guard, RunPhase::Commit] {
        assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
    }
}

#[test]
fn running_run_has_the_phase_of_its_newest_event() {
    let (id, tree) = (run_id(), tree(0, false));
    let guard_started = json!({ "event": "guard_started", "iter": 3, "command": ["make"] });
    let guard_ended = json!({ "event": "guard_ended", "iter": 3, "end": "ended", "exit": { "code": 0 } });
    let checked =
        json!({ "event": "checked", "iter": 3, "result": "accepted", "status": "done", "findings": [] });
    let committed = json!({ "event": "committed", "iter": 3, "commit": "c", "next": { "then": "go" } });
    for (newest, phase, headline) in [
        (None, RunPhase::Agent, "iteration 3: the agent is working on root"),
        (Some(checked), RunPhase::Commit, "iteration 3: checking the result"),
        (Some(guard_started), RunPhase::Guard, "iteration 3: running the guard"),
        (Some(guard_ended), RunPhase::Commit, "iteration 3: committing the result"),
        (Some(committed), RunPhase::Agent, "starting the next iteration"),
    ] {
        let unknown = json!({ "event": "of_a_newer_runner" });
        let events =
            events(&[Some(planned()), newest, Some(unknown)].into_iter().flatten().collect::<Vec<_>>());
        let facts = RunFacts { lock: LockHolder::Runner { pid: 7 }, events: &events, ..facts(&id, &tree) };
        let status = run_status(&facts);
        assert_eq!((status.state, status.phase), (LifecycleState::Running, Some(phase)), "{headline}");
        assert_eq!(status.headline, headline);
        assert_eq!(status.details, ["process 7", "agent codex, attempt 2 of 3"]);
        assert!(status.next.is_empty() && status.is_live(), "{headline}");
        let pausing = RunFacts { is_paused: true, ..facts };
        assert_eq!(run_status(&pausing).headline, format!("{headline}; pauses after this iteration"));
        let stopping = run_status(&RunFacts { is_stopping: true, ..pausing });
        assert_eq!(stopping.headline, format!("{headline}; stopping after this iteration"));
    }
}

#[test]
fn running_comes_before_documents_that_an_agent_may_be_writing() {
    let facts = RunFacts {
        lock: LockHolder::Runner { pid: 7 },
        documents: DocumentFacts { invalid: &[Doc::Tree], ..DocumentFacts::default() },
        ..RunFacts::default()
    };
    assert_eq!(run_status(&facts).state, LifecycleState::Running);
    let idle = run_status(&RunFacts { lock: LockHolder::Free, ..facts });
    assert_eq!(idle.state, LifecycleState::Invalid);
    assert_eq!(idle.headline, "tree.json is missing or invalid");
    assert_eq!(commands(&idle), ["runner validate"]);
}

#[test]
fn dead_runner_is_a_crash() {
    let (id, tree) = (run_id(), tree(0, false));
    let crashed = |iteration| {
        let lock = LockHolder::DeadRunner { iteration };
        run_status(&RunFacts { lock, ..facts(&id, &tree) })
    };
    let status = crashed(IterationNumber::new(3));
    assert_eq!(status.state, LifecycleState::Crashed);
    assert_eq!(status.headline, "the runner died in iteration 3");
    assert_eq!(commands(&status), ["runner loop"]);
    assert_eq!(crashed(None).headline, "the runner died while it moved the branch");
}

/// Stop reasons, each with its headline and the first command.
fn stops_and_advice() -> Vec<(Value, &'static str, &'static str)> {
    let budget =
        json!({ "reason": "budget", "limit": "leaf_usd", "node": "root", "spent": 500_000, "max": 400_000 });
    vec![
        (json!({ "reason": "complete" }), "the task passed", "runner report"),
        (
            json!({ "reason": "stuck", "node": "root" }),
            "`root` failed 0 of 3 attempts",
            "runner node allow root",
        ),
        (
            json!({ "reason": "max_iterations", "max": 9 }),
            "reached max_iterations (9)",
            "${EDITOR:-vi} .runner/state/config.toml",
        ),
        (json!({ "reason": "loop_iterations", "max": 1 }), "reached --max-iterations (1)", "runner loop"),
        (
            json!({ "reason": "loop_budget", "limit": "run_usd", "spent": 2_500_000, "max": 2_000_000 }),
            "reached --max-usd: $2.50 of $2.00 spent by this loop",
            "runner loop",
        ),
        (
            json!({ "reason": "loop_budget", "limit": "run_tokens", "spent": null, "max": 5 }),
            "a limit in tokens ([budget] or --max-tokens) cannot be enforced: the last session did not report what it used",
            "runner log @",
        ),
        (
            budget,
            "reached leaf_usd: $0.50 of $0.40 spent on `root`",
            "${EDITOR:-vi} .runner/state/config.toml",
        ),
        (
            json!({ "reason": "stalled", "iterations": 12 }),
            "no task passed and no check turned green in 12 iterations (stall_iterations)",
            "runner log --errors",
        ),
        (
            json!({ "reason": "time_limit", "outcome": "idle_timeout" }),
            "no output for too long (idle_timeout_secs)",
            "runner loop",
        ),
        (
            json!({ "reason": "failures", "outcome": "agent_not_started", "in_row": 3 }),
            "3 failures in a row (agent not started)",
            "runner log @",
        ),
        (json!({ "reason": "needs_user", "outcome": "not_logged_in" }), "not logged in", "runner doctor"),
        (json!({ "reason": "interrupted", "by": "int" }), "interrupted (Ctrl-C)", "runner loop"),
        (json!({ "reason": "user_stop" }), "requested by the user", "runner loop"),
        (
            json!({ "reason": "of_a_newer_runner" }),
            "for a reason that this version does not know",
            "runner loop",
        ),
    ]
}

#[test]
fn every_stop_reason_says_what_to_type() {
    let (id, tree) = (run_id(), tree(0, false));
    for (stop, headline, command) in stops_and_advice() {
        let reason: StopReason = serde_json::from_value(stop).unwrap();
        let status = run_status(&RunFacts { stop: Some(&reason), ..facts(&id, &tree) });
        let state =
            if reason == StopReason::Complete { LifecycleState::Complete } else { LifecycleState::Stopped };
        assert_eq!((status.state, status.headline.as_str()), (state, headline));
        assert_eq!(commands(&status).first(), Some(&command), "{headline}");
        assert_eq!(status.label().text, state.label().text);
        assert_eq!(status.stop, Some(reason));
    }
}

#[test]
fn time_limits_name_the_configured_time() {
    let (id, tree, config) = (run_id(), tree(0, false), Config::default());
    let headline = |outcome| {
        let reason = StopReason::TimeLimit { outcome };
        let documents =
            DocumentFacts { tree: Some(&tree), config: Some(&config), ..DocumentFacts::default() };
        run_status(&RunFacts { stop: Some(&reason), documents, ..facts(&id, &tree) }).headline
    };
    assert_eq!(headline(Outcome::IdleTimeout), "no output for 10 min (idle_timeout_secs)");
    assert_eq!(
        headline(Outcome::TimedOut),
        "the agent did not finish within 30 min (iteration_timeout_secs)"
    );
    assert_eq!(
        headline(Outcome::GuardTimedOut),
        "the guard did not finish within 30 min (iteration_timeout_secs)"
    );
}

#[test]
fn recorded_reason_holds_until_the_documents_say_otherwise() {
    let (id, open, stuck, done) = (run_id(), tree(0, false), tree(3, false), tree(0, true));
    let stopped = json!({ "event": "stopped", "exit_code": 130,
        "stop": { "reason": "interrupted", "by": "int" } });
    let recorded = events(&[planned(), stopped.clone()]);
    let status = |tree, events| run_status(&RunFacts { events, ..facts(&id, tree) });
    let interrupted = status(&open, &recorded);
    assert_eq!(interrupted.stop, Some(StopReason::Interrupted { by: Interruption::Int }));
    assert_eq!((interrupted.since_ms, interrupted.state), (Some(1), LifecycleState::Stopped));
    assert_eq!(status(&stuck, &recorded).stop, Some(StopReason::Stuck { node: NodeId::root() }));
    assert_eq!(status(&done, &recorded).state, LifecycleState::Complete);
    let was_stuck =
        json!({ "event": "stopped", "exit_code": 3, "stop": { "reason": "stuck", "node": "root" } });
    let allowed = events(&[planned(), was_stuck]);
    assert_eq!(status(&open, &allowed).stop, None, "more attempts were allowed");
    let newer = events(&[stopped, planned()]);
    assert_eq!(status(&open, &newer).stop, None, "a newer session has begun");
}

#[test]
fn limits_of_the_configuration_stop_a_run() {
    let (id, tree, mut config) = (run_id(), tree(0, false), Config::default());
    let mut state = RunState::new(Some(id.clone()));
    state.next_iter = IterationNumber::new(201).unwrap();
    let status = |config: &Config| {
        let documents =
            DocumentFacts { tree: Some(&tree), config: Some(config), state: Some(&state), invalid: &[] };
        run_status(&RunFacts { documents, ..facts(&id, &tree) })
    };
    assert_eq!(status(&config).headline, "reached max_iterations (200)");
    config.max_iterations = crate::strict::BoundedInt::fixed::<300>();
    assert_eq!(status(&config).headline, "tasks are open");
    config.budget.run_usd = Some(crate::config::Usd::of_microdollars(0));
    assert_eq!(status(&config).headline, "reached run_usd: $0.00 of $0.00 spent");
}

#[test]
fn started_run_without_iterations_is_stopped_without_a_reason() {
    let (id, tree) = (run_id(), tree(0, false));
    let facts = RunFacts { totals: RunTotals::default(), ..facts(&id, &tree) };
    let status = run_status(&facts);
    assert_eq!((status.state, &status.stop), (LifecycleState::Stopped, &None));
    assert_eq!(status.headline, "not run yet");
    assert_eq!((commands(&status), status.task.as_deref()), (vec!["runner loop"], Some("root")));
    for (blocker, first) in [
        (StartBlocker::GoalNotWritten, "${EDITOR:-vi} .runner/GOAL.md"),
        (StartBlocker::UncommittedRunnerFiles, "runner start"),
        (StartBlocker::DirtyWorktree, "git status"),
    ] {
        let checkout = CheckoutFacts { blocker: Some(blocker), ..CheckoutFacts::default() };
        let status = run_status(&RunFacts { checkout, ..facts.clone() });
        assert_eq!(commands(&status).first(), Some(&first), "{blocker:?}");
    }
}

#[test]
fn paused_run_names_both_ways_to_continue() {
    let (id, tree) = (run_id(), tree(0, false));
    let paused = RunFacts { is_paused: true, ..facts(&id, &tree) };
    let status = run_status(&paused);
    assert_eq!((status.state, status.headline.as_str()), (LifecycleState::Paused, "no loop is running"));
    assert_eq!(commands(&status), ["runner resume", "runner loop"]);
    let events = events(&[planned(), json!({ "event": "paused" })]);
    let status = run_status(&RunFacts { events: &events, ..paused });
    assert_eq!(status.headline, "a loop is waiting for `runner resume`");
    assert_eq!(commands(&status), ["runner resume", "runner loop"]);
}

#[test]
fn wait_names_its_reason_its_agent_and_its_end() {
    let (id, tree) = (run_id(), tree(0, false));
    let wait = json!({ "agent": "codex", "outcome": "usage_limit", "secs": 60, "until_unix_secs": null,
        "secs_max": 3600 });
    let wait: Wait = serde_json::from_value(wait).unwrap();
    let pending = Some(PendingWait { wait: &wait, ends_ms: 9 });
    let status = run_status(&RunFacts { wait: pending, ..facts(&id, &tree) });
    assert_eq!((status.state, status.headline.as_str()), (LifecycleState::Waiting, "usage limit, codex"));
    assert_eq!((status.until_ms, commands(&status)), (Some(9), vec!["runner loop"]));
    let events = events(&[json!({ "event": "waiting", "wait": wait, "ends_unix_ms": 5 })]);
    let lock = LockHolder::Runner { pid: 7 };
    let live = run_status(&RunFacts { lock, events: &events, ..facts(&id, &tree) });
    assert_eq!((live.state, live.until_ms), (LifecycleState::Waiting, Some(5)));
    assert!(live.next.is_empty());
}

#[test]
fn loop_that_is_ended_in_a_wait_or_a_pause_leaves_the_same_status_as_its_end() {
    let (id, tree) = (run_id(), tree(0, false));
    let wait = json!({ "agent": "codex", "outcome": "usage_limit", "secs": 60, "until_unix_secs": null,
        "secs_max": 3600 });
    let stopped = json!({ "event": "stopped", "stop": { "reason": "user_stop" }, "exit_code": 130 });
    let waiting = json!({ "event": "waiting", "wait": wait, "ends_unix_ms": 5 });
    let wait: Wait = serde_json::from_value(wait).unwrap();
    let pending = Some(PendingWait { wait: &wait, ends_ms: 9 });
    let in_wait = events(&[planned(), waiting.clone(), stopped.clone()]);
    let later = run_status(&RunFacts { events: &in_wait, wait: pending, ..facts(&id, &tree) });
    let end = RunFacts { stop: Some(&StopReason::UserStop), wait: pending, ..facts(&id, &tree) };
    assert_eq!(later.stop, Some(StopReason::UserStop));
    assert_eq!((&later.details, later.until_ms), (&run_status(&end).details, Some(9)));
    assert_eq!(later.details, ["usage limit, codex: `runner loop` waits for the rest"]);
    // A later loop that was killed in its wait has no end.
    let again = events(&[planned(), stopped.clone(), waiting]);
    let killed = run_status(&RunFacts { events: &again, wait: pending, ..facts(&id, &tree) });
    assert_eq!((killed.state, killed.stop), (LifecycleState::Waiting, None));

    let in_pause = events(&[planned(), json!({ "event": "paused" }), stopped]);
    let later = run_status(&RunFacts { events: &in_pause, is_paused: true, ..facts(&id, &tree) });
    let end = run_status(&RunFacts { is_paused: true, wait: None, ..end });
    for status in [later, end] {
        assert_eq!((status.state, &*status.headline), (LifecycleState::Paused, "no loop is running"));
    }
}

#[test]
fn without_a_run_the_start_is_advised() {
    let status = run_status(&RunFacts::default());
    assert_eq!((status.state, status.headline.as_str()), (LifecycleState::NoRun, "no run started yet"));
    assert_eq!(commands(&status), ["runner start"]);
    let identity = [IdentityError::WrongBranch { run: run_id(), branch: Some("main".to_owned()) }];
    let checkout = CheckoutFacts { identity: &identity, ..CheckoutFacts::default() };
    let status = run_status(&RunFacts { checkout, ..RunFacts::default() });
    assert_eq!(status.headline, "another branch is checked out");
    assert_eq!((status.details.len(), commands(&status)), (1, vec!["runner start"]));
}

#[test]
fn run_of_another_work_tree_is_continued_there() {
    let (id, tree) = (run_id(), tree(0, false));
    let status = |worktree| {
        let checkout = CheckoutFacts { is_elsewhere: true, worktree, ..CheckoutFacts::default() };
        run_status(&RunFacts { checkout, ..facts(&id, &tree) })
    };
    assert_eq!(commands(&status(None)), ["runner switch x", "runner loop"]);
    let there = status(Some("/w/x"));
    assert_eq!(commands(&there), ["runner -C /w/x loop"]);
    assert_eq!(there.details, ["`runner/x` is checked out in /w/x"]);
}

/// Whether a complete run is landed is not known here.
#[test]
fn complete_run_names_the_steps_before_and_after_its_landing() {
    let (id, tree) = (run_id(), tree(0, true));
    let status = run_status(&facts(&id, &tree));
    assert_eq!(commands(&status), ["runner report", "runner land", "runner clean x"]);
}

#[test]
fn stuck_run_shows_its_last_attempt() {
    let (id, tree) = (run_id(), tree(3, false));
    let mut state = RunState::new(Some(id.clone()));
    let history = json!({ "node": "root", "iter": 3, "outcome": "guard_failed", "summary": "works\nnow",
        "notes": ["restored check"], "notes_omitted": 0, "restored": [], "restored_omitted": 0, "guard_output": null, "later_outcome": null });
    state.node_history = vec![serde_json::from_value(history).unwrap()];
    let documents = DocumentFacts { tree: Some(&tree), state: Some(&state), ..DocumentFacts::default() };
    let status = run_status(&RunFacts { documents, ..facts(&id, &tree) });
    assert_eq!(status.headline, "`root` failed 3 of 3 attempts");
    assert_eq!(status.details, ["last attempt, #3, guard failed: works now", "restored check"]);
    let config = Config { on_stuck: OnStuck::Replan, ..Config::default() };
    let documents = DocumentFacts { config: Some(&config), ..documents };
    let replanned = run_status(&RunFacts { documents, ..facts(&id, &tree) });
    assert_eq!(replanned.headline, "tasks are open", "the next session replans the task");
}
