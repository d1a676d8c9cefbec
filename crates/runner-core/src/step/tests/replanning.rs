//! Sessions that do not work on a leaf: repairs and replans.

use super::*;

#[test]
fn an_invalid_tree_is_restored_and_repaired_a_bounded_number_of_times() {
    let mut now = snapshot();
    let broken =
        || Attempt { tree: LeftFile::Bytes(b"{\"version\": 1".to_vec()), ..attempt("done", now.tree.root()) };
    let invalid = broken();
    let transition = settled(&now, invalid.clone(), &GuardRun::Skipped);
    assert_eq!(transition.outcome, Outcome::InvalidTree);
    assert_eq!(leaf(&transition.tree, "second").attempts, 1, "it costs the leaf an attempt");
    assert!(!interpret(&now, &job(&now), invalid.clone()).wants_guard(&job(&now)));
    now = after(&now, &transition);
    for (nth, outcome) in [(1, Outcome::RepairFailed), (2, Outcome::RepairAbandoned)] {
        let job = job(&now);
        assert_eq!(
            (job.target.mode(), job.target.node(), job.task.attempt),
            (SessionMode::Repair, None, Ordinal { nth, of: 2 })
        );
        assert!(job.prompt.text.contains("{\"version\": 1"));
        let transition = settled(&now, invalid.clone(), &GuardRun::Skipped);
        assert_eq!((transition.outcome, transition.meta.charge), (outcome, AttemptCharge::Free));
        let subject = transition.message.lines().next().unwrap();
        assert!(subject.ends_with(" repair status=retry guard=skipped"), "{subject}");
        now = after(&now, &transition);
    }
    assert_eq!(
        job(&now).target,
        SessionTarget::Leaf(id("second")),
        "the loop continues from the last valid tree"
    );
}

#[test]
fn a_repair_accepts_a_valid_tree() {
    let first = snapshot();
    let invalid = Attempt { tree: LeftFile::Missing, ..attempt("decomposed", first.tree.root()) };
    let now = after(&first, &settled(&first, invalid, &GuardRun::Skipped));
    let mut root = now.tree.root().clone();
    root.children[1].children.push(node("part", 0, Vec::new()));
    let transition = settled(&now, attempt("done", &root), &GuardRun::Skipped);
    assert_eq!((transition.outcome, &transition.state.repair), (Outcome::Repaired, &None));
    assert_eq!(job(&after(&now, &transition)).task.path, "root/second/part");
}

#[test]
fn a_repair_that_gives_up_does_not_lose_the_rejected_plan() {
    let first = snapshot();
    let invalid = Attempt { tree: LeftFile::Missing, ..attempt("decomposed", first.tree.root()) };
    let mut now = after(&first, &settled(&first, invalid, &GuardRun::Skipped));
    for outcome in [Outcome::RepairFailed, Outcome::RepairAbandoned] {
        let is_pending = now.state.repair.is_some();
        let transition = settled(&now, attempt("retry", now.tree.root()), &GuardRun::Skipped);
        assert_eq!((transition.outcome, is_pending), (outcome, true));
        let rejected = |state: &RunState| state.repair.as_ref().map(|repair| repair.errors.clone());
        if outcome == Outcome::RepairFailed {
            assert_eq!(rejected(&transition.state), rejected(&now.state), "the next repair sees it too");
        }
        now = after(&now, &transition);
    }
    assert_eq!(now.state.repair, None);
}

#[test]
fn a_stuck_leaf_is_replanned_once_and_must_change() {
    let mut stuck = with_root(snapshot(), |root| root.children[1].attempts = 3);
    stuck.config.on_stuck = OnStuck::Replan;
    assert_eq!(job(&stuck).target, SessionTarget::Replan(id("second")));
    let same = settled(&stuck, attempt("retry", stuck.tree.root()), &GuardRun::Skipped);
    assert_eq!(same.outcome, Outcome::ReplanRefused);
    assert_eq!(same.next, NextAction::Stop(StopReason::Stuck { node: id("second") }));
    assert_eq!(stop(&after(&stuck, &same)), StopReason::Stuck { node: id("second") });

    let mut root = stuck.tree.root().clone();
    root.children[1].goal = "a smaller goal".to_owned();
    let rewritten = settled(&stuck, attempt("retry", &root), &GuardRun::Skipped);
    assert_eq!((rewritten.outcome, rewritten.meta.charge), (Outcome::Replanned, AttemptCharge::Free));
    assert_eq!(leaf(&rewritten.tree, "second").max_attempts, 6, "new attempts for a new goal");
    assert_eq!(job(&after(&stuck, &rewritten)).target, SessionTarget::Leaf(id("second")));

    root.children[1].children.push(node("part", 0, Vec::new()));
    let split = settled(&stuck, attempt("decomposed", &root), &GuardRun::Skipped);
    assert_eq!(split.outcome, Outcome::Replanned);
    assert_eq!(leaf(&split.tree, "second").max_attempts, 3);
    assert_eq!(job(&after(&stuck, &split)).task.path, "root/second/part");
    let crashed = Attempt { exit: SessionExit::TimedOut, ..attempt("retry", &root) };
    let crashed = settled(&stuck, crashed, &GuardRun::Skipped);
    assert_eq!(
        job(&after(&stuck, &crashed)).target,
        SessionTarget::Replan(id("second")),
        "a session without an answer uses up no replan"
    );
}

#[test]
fn a_repair_of_a_replan_grants_the_same_attempts_as_the_replan() {
    let replan = {
        let mut stuck = with_root(snapshot(), |root| root.children[1].attempts = 3);
        stuck.config.on_stuck = OnStuck::Replan;
        stuck
    };
    let reject_tree = |now: &Snapshot| {
        let invalid = Attempt { tree: LeftFile::Missing, ..attempt("retry", now.tree.root()) };
        let now = after(now, &settled(now, invalid, &GuardRun::Skipped));
        assert_eq!(job(&now).target.mode(), SessionMode::Repair);
        now
    };
    let rewritten = |now: &Snapshot| {
        let mut root = now.tree.root().clone();
        root.children[1].goal = "a smaller goal".to_owned();
        let transition = settled(now, attempt("retry", &root), &GuardRun::Skipped);
        assert_eq!(transition.outcome, Outcome::Repaired);
        let edits: Vec<&NodeId> = transition.meta.plan_edits.iter().map(|edit| &edit.node).collect();
        assert_eq!(edits, [&id("second")], "the repair's changes are recorded");
        transition
    };
    let repaired = reject_tree(&replan);
    assert_eq!(leaf(&rewritten(&repaired).tree, "second").max_attempts, 6, "new attempts for a new goal");
    let same = settled(&repaired, attempt("done", repaired.tree.root()), &GuardRun::Skipped);
    assert_eq!(leaf(&same.tree, "second").max_attempts, 3, "the same goal gets no new attempts");
    assert_eq!((same.outcome, same.meta.plan_edits.is_empty()), (Outcome::Repaired, true));
    let of_a_leaf = rewritten(&reject_tree(&snapshot()));
    assert_eq!(leaf(&of_a_leaf.tree, "second").max_attempts, 3, "a repair alone grants nothing");
}
