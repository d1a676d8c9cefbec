//! What a step records about a session, and the bounds of it.

use super::*;
use crate::config::IgnoredFiles;
use crate::model::cost::LeafSpending;
use crate::model::object_id::TreeId;
use crate::step::RoomLevel;
use crate::step::next_state::{NOTES_MAX, guard_output};

/// The findings about a session that ended like this and left no answer.
fn findings(exit: SessionExit) -> Vec<String> {
    let snapshot = snapshot();
    let session = Attempt { exit, answer: LeftFile::Missing, ..attempt("done", snapshot.tree.root()) };
    settled(&snapshot, session, &GuardRun::Skipped).meta.findings
}

#[test]
fn a_session_without_an_answer_is_recorded_with_its_reason() {
    let no_answer = "the agent left no answer";
    let why = || "the cause".to_owned();
    let cases: [(SessionExit, &[&str]); 5] = [
        (SessionExit::Finished { code: 0 }, &[no_answer]),
        (SessionExit::Finished { code: 7 }, &["the agent exited with code 7", no_answer]),
        (SessionExit::Killed { signal: 9 }, &["signal 9 killed the agent", no_answer]),
        (SessionExit::NotStarted { why: why() }, &["the cause"]),
        (SessionExit::TimedOut, &[]),
    ];
    for (exit, expected) in cases {
        let shown = format!("{exit:?}");
        let found = findings(exit);
        assert_eq!(found.iter().take(expected.len()).collect::<Vec<_>>(), expected, "{shown}");
    }
    let faults = [
        (ProviderError::Refused { why: why() }, "the cause"),
        (ProviderError::ContextFull, "the session filled the model's context"),
        (ProviderError::RateLimited { retry_after_secs: None }, "rate limited by the provider"),
        (ProviderError::Overloaded, "the provider is overloaded"),
        (ProviderError::Disconnected, "could not connect to the provider"),
        (ProviderError::UsageLimit { resets_unix_secs: None }, "usage limit reached"),
    ];
    for (fault, expected) in faults {
        assert_eq!(
            findings(SessionExit::Provider { fault }),
            [expected],
            "the missing answer is not reported as well"
        );
    }
}

#[test]
fn a_quarter_of_the_kept_guard_output_is_its_beginning() {
    let of = |text: &str| {
        let output = text.as_bytes().to_vec();
        guard_output(&GuardRun::Ended {
            exit: GuardExit::Code(1),
            output,
            place: GuardPlace::in_place(TreeId::none()),
        })
        .unwrap()
    };
    let full = "x".repeat(GUARD_OUTPUT_BYTES_MAX);
    assert_eq!(of(&full), full);
    let room = GUARD_OUTPUT_BYTES_MAX - 64;
    let begin = "b".repeat(room / 4);
    let end = "e".repeat(room - room / 4);
    let bounded = of(&format!("{begin}{}{end}", "-".repeat(1000)));
    assert_eq!(bounded, format!("{begin}\n[1000 bytes left out]\n{end}"));
    assert_eq!(of(&bounded), bounded, "bounding it again changes nothing");
}

#[test]
fn findings_beyond_the_bound_are_counted() {
    let snapshot = snapshot();
    let found = |count: usize| {
        let mut root = snapshot.tree.root().clone();
        root.children[1].children =
            (0..count).map(|nth| node("twice", i64::try_from(nth).unwrap(), Vec::new())).collect();
        settled(&snapshot, attempt("decomposed", &root), &GuardRun::Skipped)
    };
    let repair = |count| found(count).state.repair.unwrap();
    let exact = repair(NOTES_MAX + 1);
    assert_eq!((exact.errors.len(), exact.errors_omitted), (NOTES_MAX, 0), "{exact:?}");
    let many = repair(NOTES_MAX + 8);
    assert_eq!((many.errors.len(), many.errors_omitted), (NOTES_MAX, 7));
    assert_eq!(many.error_lines().last().unwrap(), "… and 7 more");
    assert_eq!(found(NOTES_MAX + 8).meta.findings, many.error_lines());
}

#[test]
fn a_leaf_that_used_nothing_is_not_listed() {
    let mut snapshot = snapshot();
    let nothing = |name: &str| LeafSpending { node: id(name), tokens: amount(0), microdollars: amount(0) };
    snapshot.state.spent_by_leaf = vec![nothing("third")];
    let transition = settled(&snapshot, attempt("retry", snapshot.tree.root()), &GuardRun::Skipped);
    assert_eq!(transition.state.spent_by_leaf, []);
}

#[test]
fn a_new_guard_file_that_was_deleted_again_is_not_pinned() {
    let snapshot = snapshot();
    let file = |name: &str, exists| ProtectedPath {
        path: RepoPath::of_bytes(name.as_bytes()),
        existed_at_start: false,
        changed: true,
        exists,
    };
    let protected = vec![file("kept.just", true), file("deleted.just", false)];
    let session = Attempt { protected, ..attempt("done", snapshot.tree.root()) };
    assert_eq!(settled(&snapshot, session, &ended(0)).state.pinned, [RepoPath::of_bytes(b"kept.just")]);
}

#[test]
fn a_passed_node_that_gets_a_child_is_reported_with_that_child() {
    let part = Node { passes: true, ..node("part", 1, Vec::new()) };
    let snapshot = with_root(snapshot(), |root| root.children[0].children = vec![part]);
    let mut root = snapshot.tree.root().clone();
    root.children[0].children.push(node("more", 2, Vec::new()));
    let found = settled(&snapshot, attempt("retry", &root), &GuardRun::Skipped).meta.findings;
    let reported: Vec<&String> = found.iter().filter(|line| line.contains("root/first")).collect();
    assert!(reported.iter().any(|line| line.contains("more")), "{found:?}");
    assert!(!reported.iter().any(|line| line.contains("part")), "{found:?}");
}

#[test]
fn a_pass_is_annotated_if_its_guard_saw_more_than_the_commit() {
    let snapshot = snapshot();
    let in_room = |ignored| RoomLevel::Bubblewrap { ignored };
    for (room, expected) in [
        (RoomLevel::InPlace, vec![Annotation::InPlace]),
        (in_room(IgnoredFiles::Worktree), vec![Annotation::IgnoredWorktree]),
        (in_room(IgnoredFiles::Room), vec![]),
        (in_room(IgnoredFiles::None), vec![]),
    ] {
        let annotations = |code| {
            let place = GuardPlace { room, candidate: TreeId::none() };
            let guard = GuardRun::Ended { exit: GuardExit::Code(code), output: Vec::new(), place };
            settled(&snapshot, attempt("done", snapshot.tree.root()), &guard).meta.annotations
        };
        assert_eq!(annotations(0), expected, "{room}");
        assert_eq!(annotations(1), [], "{room}: only a pass needs it");
    }
}

#[test]
fn guard_files_beyond_the_bound_are_counted() {
    let snapshot = snapshot();
    let annotations = |count: usize| {
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
    assert!(matches!(annotations(20).last(), Some(Annotation::GuardFileRestored { .. })));
    let many = annotations(23);
    assert_eq!((many.len(), many.last()), (21, Some(&Annotation::GuardFilesOmitted { count: 3 })));
}

#[test]
fn an_agent_that_rewords_its_own_task_gets_an_annotation() {
    let snapshot = snapshot();
    let annotations = |edit: fn(&mut Node)| {
        let mut root = snapshot.tree.root().clone();
        edit(&mut root);
        settled(&snapshot, attempt("retry", &root), &GuardRun::Skipped).meta.annotations
    };
    let is_annotated = |edit| annotations(edit).contains(&Annotation::SelectedTaskEdited);
    assert!(is_annotated(|root| root.children[1].goal = "less".to_owned()));
    assert!(is_annotated(|root| root.children[1].acceptance.push("more".to_owned())));
    assert!(!is_annotated(|root| root.children[1].acceptance.clear()), "that is undone");
    assert!(!is_annotated(|root| root.children[1].title = "other".to_owned()));
    assert!(!is_annotated(|root| root.children[2].goal = "less".to_owned()));
}

#[test]
fn the_message_counts_the_users_commits() {
    let message = |user_commits| {
        let snapshot = Snapshot { user_commits, ..snapshot() };
        settled(&snapshot, attempt("retry", snapshot.tree.root()), &GuardRun::Skipped).message
    };
    assert!(message(2).contains("\nRunner-User-Commits: 2\n"), "{}", message(2));
    assert!(!message(0).contains("Runner-User-Commits"), "{}", message(0));
}

#[test]
fn an_idle_timeout_of_zero_means_no_limit() {
    let mut snapshot = snapshot();
    snapshot.config.idle_timeout_secs = BoundedInt::new(0).unwrap();
    assert_eq!(job(&snapshot).limits.idle_secs, None);
}

#[test]
fn a_replan_is_recorded_with_its_edits() {
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
fn after_a_usage_limit_the_next_agent_runs_or_the_loop_waits_for_the_limit_that_ends_first() {
    let ladder = "on_usage_limit = \"next\"\n[executor]\nkind = \"codex\"\n[[ladder]]\nkind = \"claude\"\n";
    let next = |text: &str, limits: Vec<UsageLimit>, resets: u64| {
        let mut snapshot = snapshot();
        snapshot.config = Config::decode(text.as_bytes()).unwrap();
        snapshot.state.usage_limits = limits;
        let fault = ProviderError::UsageLimit { resets_unix_secs: Some(resets) };
        let session = Attempt {
            exit: SessionExit::Provider { fault },
            answer: LeftFile::Missing,
            ..attempt("done", snapshot.tree.root())
        };
        settled(&snapshot, session, &GuardRun::Skipped).next
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
