//! The audit of runs without progress: claims, confirmations, outages, skipped tasks, and their forgeries.

use super::*;

/// A session that answers `done` and changes no file.
fn lazy(run: &AuditedRun) -> Attempt {
    Attempt { work: ChangeScope::Decompose, changes: FileChanges::default(), ..run.answer("done") }
}

fn docs(transition: &Transition) -> [(Doc, Vec<u8>); 2] {
    [(Doc::Tree, transition.tree.bytes().to_vec()), (Doc::RunState, transition.state.to_bytes())]
}

/// The rules that a commit violates which another configuration would have made.
fn forged_with(run: &mut AuditedRun, config: &str, attempt: Attempt) -> Vec<Rule> {
    let mut other = run.clone();
    other.files.insert(Doc::Config.path().into(), config.into());
    let transition = other.settle(attempt, &guard_succeeded());
    run.commit(&transition.message, &docs(&transition), Vec::new())
}

#[test]
fn a_pass_without_work_needs_a_claim_and_a_confirmation() {
    let mut run = AuditedRun::start("", 2, &[]);
    assert_eq!(run.iterate(lazy(&run), &guard_succeeded(), Vec::new()), Outcome::Unconfirmed);
    let claimed = run.clone();
    assert_eq!(run.iterate(lazy(&run), &guard_succeeded(), Vec::new()), Outcome::Passed);

    // The confirmation without its annotation, and with one for a commit that holds work.
    let transition = claimed.settle(lazy(&claimed), &guard_succeeded());
    let annotation = "Runner-Annotation: confirmed-unchanged\n";
    assert!(transition.message.contains(annotation), "{}", transition.message);
    let dropped = transition.message.replace(annotation, "");
    assert_eq!(claimed.clone().commit(&dropped, &docs(&transition), Vec::new()), [Rule::Annotations]);
    let work = vec![file("src/work", false)];
    assert_eq!(claimed.clone().commit(&transition.message, &docs(&transition), work), [Rule::Annotations]);

    // A claim that a user's commit made void.
    let mut user = claimed.clone();
    assert_eq!(user.commit("fix: by hand\n", &[], vec![file("src/work", false)]), []);
    assert!(user.commit(&transition.message, &docs(&transition), Vec::new()).contains(&Rule::Confirmation));

    // A claim about a task that was edited since.
    let mut edited = claimed;
    let mut root = edited.tree().root().clone();
    root.children[0].goal = "another".to_owned();
    let tree = Tree::new(root).unwrap();
    assert_eq!(
        edited.commit(&start::message(&run_id(), 0, None), &[(Doc::Tree, tree.bytes().to_vec())], Vec::new()),
        []
    );
    let mut other = edited.clone();
    let mut state = other.state();
    let claim = state.progress.unconfirmed.unwrap();
    state.progress.unconfirmed = Some(UnconfirmedClaim::new(&tree.root().children[0], claim.iter));
    other.files.insert(Doc::RunState.path().into(), state.to_bytes());
    let transition = other.settle(lazy(&other), &guard_succeeded());
    assert_eq!(transition.outcome, Outcome::Passed, "by a forged claim");
    assert_eq!(edited.commit(&transition.message, &docs(&transition), Vec::new()), [Rule::Confirmation]);
}

#[test]
fn a_forged_pass_on_one_sessions_word_is_named() {
    let mut run = AuditedRun::start("", 2, &[]);
    let attempt = lazy(&run);
    assert_eq!(forged_with(&mut run, "[accept]\nunchanged = \"pass\"\n", attempt), [Rule::Confirmation]);
    let mut pass = AuditedRun::start("[accept]\nunchanged = \"pass\"\n", 2, &[]);
    assert_eq!(pass.iterate(lazy(&pass), &guard_succeeded(), Vec::new()), Outcome::Passed);
    let mut retry = AuditedRun::start("[accept]\nunchanged = \"retry\"\n", 2, &[]);
    assert_eq!(retry.iterate(lazy(&retry), &guard_succeeded(), Vec::new()), Outcome::Unconfirmed);
    let attempt = lazy(&retry);
    let rules = forged_with(&mut retry, "", attempt);
    assert!(
        rules.contains(&Rule::Charge) || rules.contains(&Rule::Attempts),
        "an attempt was not charged: {rules:?}"
    );
}

#[test]
fn a_restored_file_is_no_work_for_the_audit_either() {
    let mut run = AuditedRun::start("", 2, &guard_files(1));
    let touched = Attempt { protected: vec![changed_path("f00.just", true)], ..run.answer("done") };
    assert_eq!(run.iterate(touched.clone(), &guard_succeeded(), Vec::new()), Outcome::Unconfirmed);
    assert_eq!(run.iterate(touched, &guard_succeeded(), Vec::new()), Outcome::Passed);
}

#[test]
fn an_outage_does_not_count_and_one_with_work_does() {
    let overloaded = SessionExit::Provider { fault: ProviderError::Overloaded };
    let mut run = AuditedRun::start("max_iterations = 1\n", 2, &[]);
    run.iterate(run.no_answer(overloaded.clone()), &GuardRun::Skipped, Vec::new());
    run.iterate(run.no_answer(overloaded.clone()), &GuardRun::Skipped, Vec::new());
    let before = run.clone();
    let retry = run.answer("retry");
    assert_eq!(run.iterate(retry, &GuardRun::Skipped, vec![file("src/work", false)]), Outcome::Retry);
    let mut beyond = run.clone();
    let mut raised = run;
    raised.files.insert(Doc::Config.path().into(), b"max_iterations = 9\n".to_vec());
    let transition = raised.settle(raised.answer("retry"), &GuardRun::Skipped);
    assert_eq!(beyond.commit(&transition.message, &docs(&transition), Vec::new()), [Rule::Stopped]);

    // A session that worked before its provider failed, recorded as one that did nothing.
    let mut forged = before;
    let transition = forged.settle(forged.no_answer(overloaded), &GuardRun::Skipped);
    let work = vec![file("src/work", false)];
    assert!(forged.commit(&transition.message, &docs(&transition), work).contains(&Rule::RunState));
}

#[test]
fn a_skipped_task_is_derived_from_tree_and_configuration() {
    let config = "on_stuck = \"skip\"\nmax_attempts_default = 1\n";
    let mut run = AuditedRun::start(config, 3, &[]);
    for _ in 0..3 {
        let retry = run.answer("retry");
        run.iterate(retry, &GuardRun::Skipped, vec![file("src/work", false)]);
    }
    let before = run.clone();
    let retry = run.answer("retry");
    run.iterate(retry.clone(), &GuardRun::Skipped, vec![file("src/work", false)]);
    assert_eq!(run.state().last_node.unwrap().as_str(), "n001", "the first leaf is stuck");
    // The same commit in a run that stops at a stuck task.
    let mut stopped = before;
    assert_eq!(
        stopped.commit(&start::message(&run_id(), 0, None), &[(Doc::Config, Vec::new())], Vec::new()),
        []
    );
    let mut other = stopped.clone();
    other.files.insert(Doc::Config.path().into(), config.into());
    let transition = other.settle(retry, &GuardRun::Skipped);
    let work = vec![file("src/work", false)];
    assert_eq!(stopped.commit(&transition.message, &docs(&transition), work), [Rule::Stopped]);
}
