//! What a step tells of a session, and what it keeps of it: in bounds, and about nothing else.

use super::*;
use crate::model::cost::LeafSpending;
use crate::step::next_state::{NOTES_MAX, guard_output};

/// What the runner says of a session that ended so and left no answer.
fn findings(exit: SessionExit) -> Vec<String> {
    let snapshot = snapshot();
    let silent = Attempt { exit, answer: LeftFile::Missing, ..attempt("done", snapshot.tree.root()) };
    settled(&snapshot, silent, &GuardRun::Skipped).meta.findings
}

#[test]
fn a_session_without_an_answer_is_told_with_its_reason() {
    let no_answer = "the agent left no answer";
    let why = || "as it said".to_owned();
    let cases: [(SessionExit, &[&str]); 5] = [
        (SessionExit::Finished { code: 0 }, &[no_answer]),
        (SessionExit::Finished { code: 7 }, &["the agent exited with code 7", no_answer]),
        (SessionExit::Killed { signal: 9 }, &["the agent was ended by signal 9", no_answer]),
        (SessionExit::NotStarted { why: why() }, &["as it said"]),
        (SessionExit::TimedOut, &[]),
    ];
    for (exit, told) in cases {
        let shown = format!("{exit:?}");
        let found = findings(exit);
        assert_eq!(found.iter().take(told.len()).collect::<Vec<_>>(), told, "{shown}");
    }
    let faults = [
        (ProviderError::Refused { why: why() }, "as it said"),
        (ProviderError::ContextFull, "the session filled the model's context"),
        (ProviderError::RateLimited { retry_after_secs: None }, "the provider had too many requests"),
        (ProviderError::Overloaded, "the provider was overloaded"),
        (ProviderError::Disconnected, "there was no connection to the provider"),
        (ProviderError::UsageLimit { resets_unix_secs: None }, "the agent's allowance is used up"),
    ];
    for (fault, told) in faults {
        assert_eq!(
            findings(SessionExit::Provider { fault }),
            [told],
            "a provider's fault needs no second line"
        );
    }
}

#[test]
fn of_what_a_guard_printed_a_quarter_is_its_beginning() {
    let of = |text: &str| {
        let output = text.as_bytes().to_vec();
        guard_output(&GuardRun::Ended { exit: GuardExit::Code(1), output }).unwrap()
    };
    let full = "x".repeat(GUARD_OUTPUT_BYTES_MAX);
    assert_eq!(of(&full), full);
    let room = GUARD_OUTPUT_BYTES_MAX - 64;
    let (begin, end) = ("b".repeat(room / 4), "e".repeat(room - room / 4));
    let told = of(&format!("{begin}{}{end}", "-".repeat(1000)));
    assert_eq!(told, format!("{begin}\n[1000 bytes left out]\n{end}"));
    assert_eq!(of(&told), told, "what is bounded stays as it is");
}

#[test]
fn of_too_many_findings_the_rest_is_counted() {
    let snapshot = snapshot();
    let found = |count: usize| {
        let mut root = snapshot.tree.root().clone();
        root.children[1].children =
            (0..count).map(|nth| node("twice", i64::try_from(nth).unwrap(), Vec::new())).collect();
        settled(&snapshot, attempt("decomposed", &root), &GuardRun::Skipped).meta.findings
    };
    let exact = found(NOTES_MAX + 1);
    assert!(!exact.last().unwrap().starts_with("and "), "{exact:?}");
    let many = found(NOTES_MAX + 8);
    assert_eq!((many.len(), many.last().unwrap().as_str()), (NOTES_MAX + 1, "and 7 more"));
}

#[test]
fn what_cost_nothing_is_not_on_the_books() {
    let mut snapshot = snapshot();
    let nothing = |name: &str| LeafSpending { node: id(name), tokens: amount(0), microdollars: amount(0) };
    snapshot.state.spent_by_leaf = vec![nothing("third")];
    let transition = settled(&snapshot, attempt("retry", snapshot.tree.root()), &GuardRun::Skipped);
    assert_eq!(transition.state.spent_by_leaf, []);
}

#[test]
fn a_new_guard_file_that_is_gone_again_is_nobodys() {
    let snapshot = snapshot();
    let file = |name: &str, exists| ProtectedPath {
        path: RepoPath::of_bytes(name.as_bytes()),
        existed_at_start: false,
        changed: true,
        exists,
    };
    let protected = vec![file("kept.just", true), file("gone.just", false)];
    let session = Attempt { protected, ..attempt("done", snapshot.tree.root()) };
    assert_eq!(settled(&snapshot, session, &ended(0)).state.pinned, [RepoPath::of_bytes(b"kept.just")]);
}

#[test]
fn a_passed_node_that_gains_a_child_is_told_with_that_child() {
    let part = Node { passes: true, ..node("part", 1, Vec::new()) };
    let snapshot = with_root(snapshot(), |root| root.children[0].children = vec![part]);
    let mut root = snapshot.tree.root().clone();
    root.children[0].children.push(node("more", 2, Vec::new()));
    let found = settled(&snapshot, attempt("retry", &root), &GuardRun::Skipped).meta.findings;
    let gained: Vec<&String> = found.iter().filter(|told| told.contains("root/first")).collect();
    assert!(gained.iter().any(|told| told.contains("more")), "{found:?}");
    assert!(!gained.iter().any(|told| told.contains("part")), "{found:?}");
}

#[test]
fn of_too_many_guard_files_the_rest_is_counted() {
    let snapshot = snapshot();
    let marks = |count: usize| {
        let file = |nth: usize| ProtectedPath {
            path: RepoPath::of_bytes(format!("f{nth:02}").as_bytes()),
            existed_at_start: true,
            changed: true,
            exists: true,
        };
        let protected = (0..count).map(file).collect();
        settled(
            &snapshot,
            Attempt { protected, ..attempt("retry", snapshot.tree.root()) },
            &GuardRun::Skipped,
        )
        .meta
        .annotations
    };
    assert!(matches!(marks(20).last(), Some(Annotation::GuardFileRestored { .. })));
    let many = marks(23);
    assert_eq!((many.len(), many.last()), (21, Some(&Annotation::GuardFilesOmitted { count: 3 })));
}

#[test]
fn who_rewords_the_goal_it_was_given_is_marked() {
    let snapshot = snapshot();
    let marks = |edit: fn(&mut Node)| {
        let mut root = snapshot.tree.root().clone();
        edit(&mut root);
        settled(&snapshot, attempt("retry", &root), &GuardRun::Skipped).meta.annotations
    };
    let reworded = |marks: &[Annotation]| marks.contains(&Annotation::SelectedTaskEdited);
    assert!(reworded(&marks(|root| root.children[1].goal = "less".to_owned())));
    assert!(reworded(&marks(|root| root.children[1].acceptance.clear())));
    assert!(!reworded(&marks(|root| root.children[1].title = "other".to_owned())));
    assert!(!reworded(&marks(|root| root.children[2].goal = "less".to_owned())));
}

#[test]
fn commits_of_the_users_own_are_counted_in_the_message() {
    let message = |own_commits| {
        let snapshot = Snapshot { user_commits: own_commits, ..snapshot() };
        settled(&snapshot, attempt("retry", snapshot.tree.root()), &GuardRun::Skipped).message
    };
    assert!(message(2).contains("\nRunner-Taken-In: 2\n"), "{}", message(2));
    assert!(!message(0).contains("Runner-Taken-In"), "{}", message(0));
}

#[test]
fn no_idle_limit_is_none() {
    let mut snapshot = snapshot();
    snapshot.config.idle_timeout_secs = BoundedInt::new(0).unwrap();
    assert_eq!(job(&snapshot).limits.idle_secs, None);
}

#[test]
fn a_replanning_is_recorded_with_its_edits() {
    let mut snapshot = with_root(snapshot(), |root| root.children[1].attempts = 3);
    snapshot.config.on_stuck = OnStuck::Replan;
    let mut root = snapshot.tree.root().clone();
    root.children[1].children.push(node("part", 0, Vec::new()));
    let transition = settled(&snapshot, attempt("decomposed", &root), &GuardRun::Skipped);
    assert_eq!(transition.outcome, Outcome::Replanned);
    let added = PlanEdit { node: id("part"), edit: EditKind::Added { under: Some(id("second")) } };
    assert_eq!(transition.meta.plan_edits, [added]);
}

#[test]
fn after_a_used_up_allowance_the_next_agent_is_asked_or_the_first_to_be_ready_waited_for() {
    let ladder = "on_usage_limit = \"next\"\n[executor]\nkind = \"codex\"\n[[ladder]]\nkind = \"claude\"\n";
    let next = |text: &str, limits: Vec<UsageLimit>, resets: u64| {
        let mut snapshot = snapshot();
        snapshot.config = Config::decode(text.as_bytes()).unwrap();
        snapshot.state.usage_limits = limits;
        let fault = ProviderError::UsageLimit { resets_unix_secs: Some(resets) };
        let used_up = Attempt {
            exit: SessionExit::Provider { fault },
            answer: LeftFile::Missing,
            ..attempt("done", snapshot.tree.root())
        };
        settled(&snapshot, used_up, &GuardRun::Skipped).next
    };
    let until = |agent: &str, secs| {
        NextAction::Wait(Wait { agent: agent.to_owned(), ..waits(Outcome::UsageLimit, 0, Some(secs)) })
    };
    let claude = |secs| UsageLimit {
        agent: "claude".to_owned(),
        node: id("second"),
        resets_unix_secs: Some(amount(secs)),
    };
    assert_eq!(next(ladder, Vec::new(), 900), NextAction::Go);
    assert_eq!(next(&ladder.replace("\"next\"", "\"wait\""), Vec::new(), 900), until("codex", 900));
    assert_eq!(next(ladder, vec![claude(500)], 900), until("claude", 500));
    assert_eq!(next(ladder, vec![claude(1500)], 900), until("codex", 900));
}
