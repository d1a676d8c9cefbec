//! Progress: `done` without work, runs that stall, time limits, tasks that are too large, and limits on splitting.

use super::*;
use crate::config::{Executor, OnTimeout, Rung, UnchangedPolicy};

/// A session that answers and changes no file.
fn unchanged(status: &str, root: &Node) -> Attempt {
    Attempt { work: ChangeScope::Decompose, changes: FileChanges::default(), ..attempt(status, root) }
}

fn annotations(transition: &Transition) -> Vec<String> {
    transition.meta.annotations.iter().map(ToString::to_string).collect()
}

fn without_answer(snapshot: &Snapshot, exit: SessionExit) -> Attempt {
    Attempt { exit, answer: LeftFile::Missing, ..unchanged("done", snapshot.tree.root()) }
}

#[test]
fn done_without_a_change_needs_a_second_session() {
    let first = snapshot();
    let claimed = settled(&first, unchanged("done", first.tree.root()), &ended(0));
    assert_eq!((claimed.outcome, claimed.meta.charge), (Outcome::Unconfirmed, AttemptCharge::Free));
    assert!(!leaf(&claimed.tree, "second").passes);
    assert!(claimed.message.contains("status=done guard=pass"), "{}", claimed.message);

    let now = after(&first, &claimed);
    let prompt = job(&now).prompt.text;
    assert!(
        prompt.contains("Iteration 0007 answered `done` for this node, and that alone does not count."),
        "{prompt}"
    );
    let confirmed = settled(&now, unchanged("done", now.tree.root()), &ended(0));
    assert_eq!(confirmed.outcome, Outcome::Passed);
    assert!(leaf(&confirmed.tree, "second").passes);
    assert_eq!(annotations(&confirmed), ["nothing-changed", "confirmed-unchanged", "in-place"]);
    assert_eq!(confirmed.state.progress.unconfirmed, None);

    let red = settled(&now, unchanged("done", now.tree.root()), &ended(1));
    assert_eq!((red.outcome, red.meta.charge), (Outcome::GuardFailed, AttemptCharge::Charged));
    let worked = settled(&now, attempt("done", now.tree.root()), &ended(0));
    assert_eq!((worked.outcome, annotations(&worked)), (Outcome::Passed, vec!["in-place".to_owned()]));
}

#[test]
fn a_restored_file_is_no_work() {
    let first = snapshot();
    let path = ProtectedPath {
        path: RepoPath::of_bytes(b"justfile"),
        existed_at_start: true,
        changed: true,
        exists: true,
    };
    let touched = Attempt { protected: vec![path], ..attempt("done", first.tree.root()) };
    assert_eq!(settled(&first, touched.clone(), &ended(0)).outcome, Outcome::Unconfirmed);
    let more = Attempt { changes: FileChanges { work_files: 2, runner_files: 0 }, ..touched };
    assert_eq!(settled(&first, more, &ended(0)).outcome, Outcome::Passed);
}

#[test]
fn a_claim_is_void_once_the_task_or_the_files_changed() {
    let first = snapshot();
    let now = after(&first, &settled(&first, unchanged("done", first.tree.root()), &ended(0)));
    let outcome =
        |snapshot: &Snapshot| settled(snapshot, unchanged("done", snapshot.tree.root()), &ended(0)).outcome;
    assert_eq!(outcome(&now), Outcome::Passed);
    assert_eq!(
        outcome(&with_root(now.clone(), |root| root.children[1].goal.push('!'))),
        Outcome::Unconfirmed
    );
    assert_eq!(outcome(&Snapshot { user_commits: 1, ..now.clone() }), Outcome::Unconfirmed);

    let mut rewritten = now.tree.root().clone();
    rewritten.children[1].goal = "nothing".to_owned();
    let easier = settled(&now, unchanged("done", &rewritten), &ended(0));
    assert_eq!(easier.outcome, Outcome::Unconfirmed, "a session that rewrites its task confirms nothing");

    let cut = settled(&now, without_answer(&now, SessionExit::TimedOut), &GuardRun::Skipped);
    assert_eq!(outcome(&after(&now, &cut)), Outcome::Passed, "a session without an answer changes nothing");
    let edited = Attempt { exit: SessionExit::TimedOut, ..attempt("done", now.tree.root()) };
    let cut = settled(&now, edited, &GuardRun::Skipped);
    assert_eq!(
        outcome(&after(&now, &cut)),
        Outcome::Unconfirmed,
        "one that changed files makes the claim void"
    );
    let retried = settled(&now, unchanged("retry", now.tree.root()), &GuardRun::Skipped);
    assert_eq!(outcome(&after(&now, &retried)), Outcome::Unconfirmed, "one that disagrees too");
}

#[test]
fn the_policy_decides_about_done_without_a_change() {
    let mut snapshot = snapshot();
    snapshot.config.accept.unchanged = UnchangedPolicy::Pass;
    let passed = settled(&snapshot, unchanged("done", snapshot.tree.root()), &ended(0));
    assert_eq!(
        (passed.outcome, annotations(&passed)),
        (Outcome::Passed, vec!["nothing-changed".to_owned(), "in-place".to_owned()])
    );
    snapshot.config.accept.unchanged = UnchangedPolicy::Retry;
    let retried = settled(&snapshot, unchanged("done", snapshot.tree.root()), &ended(0));
    assert_eq!((retried.outcome, retried.meta.charge), (Outcome::Unconfirmed, AttemptCharge::Charged));
    let again = after(&snapshot, &retried);
    let again = settled(&again, unchanged("done", again.tree.root()), &ended(0));
    assert_eq!((again.outcome, again.meta.charge), (Outcome::Unconfirmed, AttemptCharge::Charged));
}

#[test]
fn a_run_without_progress_stops_and_the_next_loop_counts_again() {
    let mut now = snapshot();
    now.config.limits.stall_iterations = BoundedInt::new(2).unwrap();
    let retry = |now: &Snapshot| settled(now, attempt("retry", now.tree.root()), &GuardRun::Skipped);
    let first = retry(&now);
    assert_eq!((first.next.clone(), first.state.progress.iterations_without_pass), (NextAction::Go, 1));
    now = after(&now, &first);
    let interrupted = settled(
        &now,
        without_answer(&now, SessionExit::Interrupted { by: Interruption::Int }),
        &GuardRun::Skipped,
    );
    assert_eq!(interrupted.state.progress.iterations_without_pass, 1, "a signal says nothing about progress");
    let second = retry(&now);
    assert_eq!(second.next, NextAction::Stop(StopReason::Stalled { iterations: 2 }));
    assert_eq!(second.state.progress.iterations_without_pass, 0);
    let passed = settled(&now, attempt("done", now.tree.root()), &ended(0));
    assert_eq!((passed.next, passed.state.progress.iterations_without_pass), (NextAction::Go, 0));
    now = with_root(now, |root| root.children[1].attempts = 2);
    assert_eq!(retry(&now).next, NextAction::Go, "a stuck run stops for that reason");
    now.config.limits.stall_iterations = BoundedInt::new(0).unwrap();
    now.state.progress.iterations_without_pass = 1_000;
    assert_eq!(
        settled(&now, without_answer(&now, SessionExit::Finished { code: 0 }), &GuardRun::Skipped).next,
        NextAction::Go
    );
}

#[test]
fn three_time_limits_in_a_row_on_a_task_stop_the_run() {
    let mut now = snapshot();
    let timed_out = |now: &Snapshot, exit| settled(now, without_answer(now, exit), &GuardRun::Skipped);
    let stop = |outcome| NextAction::Stop(StopReason::TimeLimit { outcome });
    assert_eq!(timed_out(&now, SessionExit::TimedOut).next, stop(Outcome::TimedOut), "the default");
    now.config.on_timeout = OnTimeout::Retry;
    for exit in [SessionExit::TimedOut, SessionExit::Idle] {
        let transition = timed_out(&now, exit);
        assert_eq!((&transition.next, transition.meta.charge), (&NextAction::Go, AttemptCharge::Free));
        now = after(&now, &transition);
        assert!(job(&now).prompt.text.contains("# What happened before"), "the next session is told");
    }
    let third = timed_out(&now, SessionExit::TimedOut);
    assert_eq!(third.next, stop(Outcome::TimedOut));
    assert_eq!(third.state.progress.timeouts_in_row, 0, "the next loop starts to count again");
    let answered = settled(&now, attempt("retry", now.tree.root()), &GuardRun::Skipped);
    assert_eq!(answered.state.progress.timeouts_in_row, 0);
    let mut other = with_root(now, |root| root.children[1].passes = true);
    other.state.last_node = Some(id("second"));
    assert_eq!(timed_out(&other, SessionExit::TimedOut).next, NextAction::Go, "another task");
}

#[test]
fn a_task_that_fills_the_context_must_be_split() {
    let first = snapshot();
    let full = SessionExit::Provider { fault: ProviderError::ContextFull };
    let too_large = settled(&first, without_answer(&first, full.clone()), &GuardRun::Skipped);
    assert_eq!((too_large.outcome, &too_large.next), (Outcome::ContextFull, &NextAction::Go));
    assert_eq!((too_large.state.failures_in_row, too_large.meta.charge), (0, AttemptCharge::Free));
    let now = after(&first, &too_large);
    let planned = job(&now);
    assert_eq!(
        (&planned.target, planned.target.mode().as_str()),
        (&SessionTarget::Split(id("second")), "split")
    );
    assert!(planned.prompt.text.contains("did not fit into one session"), "{}", planned.prompt.text);

    let mut root = now.tree.root().clone();
    root.children[1].children = vec![node("part", 0, Vec::new())];
    let split = settled(&now, attempt("decomposed", &root), &GuardRun::Skipped);
    assert_eq!((split.outcome, &split.state.progress.must_split), (Outcome::Decomposed, &None));
    assert_eq!(job(&after(&now, &split)).target, SessionTarget::Leaf(id("part")));

    for status in ["done", "retry"] {
        let refused = settled(&now, attempt(status, now.tree.root()), &GuardRun::Skipped);
        assert_eq!((refused.outcome, refused.meta.charge), (Outcome::SplitRefused, AttemptCharge::Charged));
        assert_eq!(job(&after(&now, &refused)).target, SessionTarget::Leaf(id("second")));
    }
    let mut again = now;
    for in_row in 1..=2 {
        let transition = settled(&again, without_answer(&again, full.clone()), &GuardRun::Skipped);
        assert_eq!((&transition.next, transition.state.failures_in_row), (&NextAction::Go, in_row));
        again = after(&again, &transition);
        assert_eq!(job(&again).target, SessionTarget::Split(id("second")), "a session without an answer");
    }
    let third = settled(&again, without_answer(&again, full), &GuardRun::Skipped);
    assert_eq!(
        third.next,
        NextAction::Stop(StopReason::Failures { outcome: Outcome::ContextFull, in_row: 3 })
    );
}

#[test]
fn a_stuck_task_is_skipped_where_the_configuration_says_so() {
    let mut stuck = with_root(snapshot(), |root| root.children[1].attempts = 3);
    stuck.config.on_stuck = OnStuck::Skip;
    assert_eq!(job(&stuck).target, SessionTarget::Leaf(id("third")));
    let all = with_root(stuck, |root| root.children[2].attempts = 3);
    assert_eq!(stop(&all), StopReason::Stuck { node: id("second") });
}

#[test]
fn agents_cannot_split_beyond_the_limits() {
    let violations = |snapshot: &Snapshot, root: &Node| {
        let transition = settled(snapshot, attempt("decomposed", root), &GuardRun::Skipped);
        (transition.outcome, transition.meta.findings)
    };
    let mut snapshot = snapshot();
    snapshot.config.limits.max_depth = BoundedInt::new(2).unwrap();
    let mut root = snapshot.tree.root().clone();
    root.children[1].children = vec![node("part", 0, Vec::new()), node("rest", 1, Vec::new())];
    let (outcome, findings) = violations(&snapshot, &root);
    assert_eq!(outcome, Outcome::RuleViolation);
    let deep = "was added on level 3, but `max_depth` is 2: do the work, or split a node higher up";
    assert_eq!(findings, [format!("root/second/part: {deep}"), format!("root/second/rest: {deep}")]);

    snapshot.config.limits = Config::default().limits;
    snapshot.config.limits.max_children = BoundedInt::new(1).unwrap();
    let wide = "root/second: got 2 children, but `max_children` is 1: add fewer and larger ones";
    assert_eq!(violations(&snapshot, &root), (Outcome::RuleViolation, vec![wide.to_owned()]));
    snapshot.config.limits = Config::default().limits;
    snapshot.config.limits.max_nodes = BoundedInt::new(5).unwrap();
    let many = "the tree: has 6 nodes, but `max_nodes` is 5: do the work instead of splitting it";
    assert_eq!(violations(&snapshot, &root), (Outcome::RuleViolation, vec![many.to_owned()]));

    snapshot.config.limits.max_nodes = BoundedInt::new(2).unwrap();
    snapshot.config.limits.max_children = BoundedInt::new(1).unwrap();
    snapshot.config.limits.max_depth = BoundedInt::new(1).unwrap();
    let same = settled(&snapshot, attempt("retry", snapshot.tree.root()), &GuardRun::Skipped);
    assert_eq!(same.outcome, Outcome::Retry, "a tree that is larger already stays as it is");
}

#[test]
fn the_same_failure_twice_moves_the_ladder() {
    let mut now = snapshot();
    let executor = Executor { model: Some("large".to_owned()), ..Config::default().executor };
    now.config.ladder = vec![Rung { after_attempts: BoundedInt::new(9), executor }];
    now = with_root(now, |root| root.children[1].max_attempts = 9);
    let failed = |now: &Snapshot, output: &str| {
        let guard = GuardRun::Ended {
            exit: GuardExit::Code(1),
            output: output.as_bytes().to_vec(),
            place: GuardPlace::in_place(TreeId::none()),
        };
        after(now, &settled(now, attempt("done", now.tree.root()), &guard))
    };
    let rung = |now: &Snapshot| job(now).agent.rung.nth;
    let first = failed(&now, "1 failed in 0.10s\n");
    let other = failed(&first, "2 failed in 0.10s\n");
    assert_eq!((rung(&first), rung(&other)), (1, 1), "another failure");
    let same = failed(&first, "1 failed in 7.31s\n");
    assert_eq!((rung(&same), job(&same).agent.label().as_str()), (2, "codex:large"));
    assert_eq!(rung(&failed(&same, "1 failed in 7.31s\n")), 2, "the new agent fails once");
}
