//! Commit messages survive a round trip, and subjects that only resemble the runner's are recognised as such.

use proptest::prelude::*;

use super::reference::SUBJECTS;
use super::*;

fn run_id() -> impl Strategy<Value = RunId> {
    "[a-z0-9]([a-z0-9._-]{0,8}[a-z0-9])?".prop_filter_map("git accepts it", |id| RunId::new(id).ok())
}

fn node_id() -> impl Strategy<Value = NodeId> {
    "[A-Za-z0-9._-]{1,12}".prop_filter_map("a node id", |id| NodeId::new(id).ok())
}

fn kind() -> impl Strategy<Value = CommitKind> {
    let status = prop::sample::select(vec![AgentStatus::Done, AgentStatus::Retry, AgentStatus::Decomposed]);
    let guard = prop::sample::select(vec![GuardResult::Pass, GuardResult::Fail, GuardResult::Skipped]);
    let target = prop_oneof![
        node_id().prop_map(IterationTarget::Node),
        Just(IterationTarget::Repair),
        Just(IterationTarget::Plan)
    ];
    let iter = (1..=u32::MAX).prop_filter_map("a number", IterationNumber::new);
    let verb = prop::sample::select(NodeVerb::ALL.to_vec());
    let edit = prop_oneof![
        (verb, node_id()).prop_map(|(verb, node)| EditSubject::Node { verb, node }),
        any::<usize>().prop_map(|question| EditSubject::Answer { question }),
        Just(EditSubject::Note),
        Just(EditSubject::PlanApproval),
    ];
    prop_oneof![
        run_id().prop_map(|run_id| CommitKind::Start { run_id }),
        (run_id(), iter, target, status, guard.clone()).prop_map(|(run_id, iter, target, status, guard)| {
            CommitKind::Iteration { run_id, iter, target, status, guard }
        }),
        (run_id(), guard.clone()).prop_map(|(run_id, guard)| CommitKind::Baseline { run_id, guard }),
        (run_id(), guard.clone()).prop_map(|(run_id, guard)| CommitKind::Final { run_id, guard }),
        (run_id(), guard).prop_map(|(run_id, checks)| CommitKind::Milestone { run_id, checks }),
        (run_id(), edit).prop_map(|(run_id, edit)| CommitKind::Edit { run_id, edit }),
    ]
}

/// Paragraphs of text, some of which look like trailers.
fn body() -> impl Strategy<Value = String> {
    let line = prop_oneof!["[a-zé:]{1,12}( [a-z]{1,5})?", Just("Runner-Outcome: passed".to_owned())];
    let paragraph = prop::collection::vec(line, 1..4).prop_map(|lines| lines.join("\n"));
    prop::collection::vec(paragraph, 0..4).prop_map(|paragraphs| paragraphs.join("\n\n"))
}

fn trailers() -> impl Strategy<Value = Vec<(Trailer, String)>> {
    let trailer = prop::sample::select(Trailer::ALL.to_vec());
    prop::collection::vec((trailer, "[!-~][ -~]{0,20}"), 0..6)
}

proptest! {
    #[test]
    fn a_message_is_parsed_as_it_was_written(kind in kind(), body in body(), trailers in trailers()) {
        let mut message = CommitMessage::new(kind.clone()).body(&body);
        for (trailer, value) in &trailers {
            message = message.trailer(*trailer, value);
        }
        let text = message.to_string();
        prop_assert_eq!(CommitKind::parse(text.as_bytes()), kind.clone());
        let parts = MessageParts::parse(&text);
        prop_assert_eq!(parts.subject, kind.to_string());
        prop_assert_eq!(parts.text(), body);
        let written: Vec<(&str, &str)> =
            trailers.iter().map(|(trailer, value)| (trailer.key(), value.as_str())).collect();
        prop_assert_eq!(parts.trailers, written);
    }
}

fn kind_word(message: &str) -> String {
    let kind = serde_json::to_value(CommitKind::parse(message.as_bytes())).unwrap();
    kind["kind"].as_str().unwrap().to_owned()
}

#[test]
fn the_subject_decides_what_a_commit_is() {
    for (subject, word) in [
        ("chore(loop): start run a\n", "start"),
        ("chore(loop): run a iter 0001 node b status=done guard=pass\n\nx\n", "iteration"),
        ("chore(loop): run a iter 12345 repair status=retry guard=skipped", "iteration"),
        ("chore(loop): run a baseline guard=fail\n", "baseline"),
        ("chore(loop): run a final guard=pass\n", "final"),
        ("chore(loop): run a edit node add b\n", "edit"),
        ("chore(loop): run a edit node allow b.c\n", "edit"),
        ("chore(loop): run a edit answer 12\n", "edit"),
        ("chore(loop): run a edit note\n", "edit"),
        ("chore(loop): run a baseline guard=red\n", "malformed"),
        ("chore(loop): run a final guard=red\n", "malformed"),
        ("chore(loop): run a edit", "malformed"),
        ("chore(loop): run a edit node pass b", "malformed"),
        ("chore(loop): run a edit answer x", "malformed"),
        ("chore(loop): run a edit answer 012", "malformed"),
        ("chore(loop): run a iter 1 node b status=done guard=pass", "malformed"),
        ("chore(loop): run a iter 0001 node b status=done guard=green", "malformed"),
        ("chore(loop): run a iter 0001 node b status=done guard=pass ", "malformed"),
        ("chore(loop): run a iter 0000 repair status=done guard=pass", "malformed"),
        ("chore(loop): start run a b", "malformed"),
        ("fix: it", "user"),
        ("", "user"),
        ("chore(loop): tidy", "user"),
        (" chore(loop): start run a", "user"),
    ] {
        assert_eq!(kind_word(subject), word, "{subject}");
    }
}

#[test]
fn the_last_paragraph_holds_the_trailers() {
    let parts = MessageParts::parse("s\n\n  a\n\n  Runner-X: 1\n\nRunner-A: 1\nRunner-B: 2\n");
    assert_eq!((parts.subject, parts.body), ("s", "  a\n\n  Runner-X: 1"));
    assert_eq!(parts.trailers, [("Runner-A", "1"), ("Runner-B", "2")]);
    assert_eq!(MessageParts::parse("s\n\nRunner-A: 1\n").trailers, [("Runner-A", "1")]);
    assert_eq!(
        MessageParts::parse("s\n\nwords\n"),
        MessageParts { subject: "s", body: "words", trailers: Vec::new() }
    );
}

#[test]
fn every_documented_subject_is_parsed() {
    for (subject, _) in SUBJECTS {
        let edit = subject.replace("<edit>", "node add b");
        let ids = edit.replace("<run-id>", "a").replace("<NNNN>", "0007").replace("<node-id>", "b");
        let text = ids.replace("<status>", "done").replace("<guard>", "pass").replace("<result>", "pass");
        if text == stray_files_subject("a") {
            assert_eq!(kind_word(&text), "user", "it is not on a run's branch");
        } else {
            assert_eq!(
                CommitKind::parse(text.as_bytes()).run_id(),
                Some(&RunId::new("a").unwrap()),
                "{text}"
            );
            assert_eq!(CommitKind::parse(text.as_bytes()).to_string(), text);
        }
    }
}

/// A kind of commit without its values, as the documented subjects have it.
fn documented_form(kind: &CommitKind) -> String {
    const ITERATION: &str = "chore(loop): run <run-id> iter <NNNN>";
    match kind {
        CommitKind::Start { .. } => "chore(loop): start run <run-id>".to_owned(),
        CommitKind::Iteration { target, .. } => match target {
            IterationTarget::Node(_) => format!("{ITERATION} node <node-id> status=<status> guard=<guard>"),
            IterationTarget::Repair => format!("{ITERATION} repair status=<status> guard=skipped"),
            IterationTarget::Plan => format!("{ITERATION} plan status=<status> guard=skipped"),
        },
        CommitKind::Baseline { .. } => "chore(loop): run <run-id> baseline guard=<guard>".to_owned(),
        CommitKind::Final { .. } => "chore(loop): run <run-id> final guard=<guard>".to_owned(),
        CommitKind::Milestone { .. } => "chore(loop): run <run-id> milestone checks=<result>".to_owned(),
        CommitKind::Edit { .. } => "chore(loop): run <run-id> edit <edit>".to_owned(),
        CommitKind::Malformed { subject } | CommitKind::User { subject } => subject.clone(),
    }
}

proptest! {
    #[test]
    fn every_subject_is_documented(kind in kind()) {
        let form = documented_form(&kind);
        let documented = SUBJECTS.iter().find(|(subject, _)| *subject == form);
        prop_assert!(documented.is_some(), "{form}");
        if let (CommitKind::Edit { edit, .. }, Some((_, text))) = (&kind, documented) {
            let word = match edit {
                EditSubject::Node { verb: NodeVerb::Add, .. } => "`node add`".to_owned(),
                EditSubject::Node { verb, .. } => format!("`{}`", verb.as_str()),
                EditSubject::Answer { .. } => "`answer`".to_owned(),
                EditSubject::Note | EditSubject::PlanApproval => format!("`{edit}`"),
            };
            prop_assert!(text.contains(&word), "{word}");
        }
    }
}

#[test]
fn patterns_for_git_escape_the_prefix_and_the_run() {
    assert_eq!(grep_pattern::start_of("a.b"), r"^chore\(loop\): start run a\.b$");
    assert_eq!(grep_pattern::any_of("a.b"), r"^chore\(loop\): (start run a\.b$|run a\.b )");
    assert_eq!(grep_pattern::any_iteration(), r"^chore\(loop\): run [^ ]+ iter ");
}
