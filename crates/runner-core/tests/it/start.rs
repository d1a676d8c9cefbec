//! The documents that `runner start` composes from the work tree, HEAD and the run's branch.

use std::collections::BTreeMap;

use runner_core::config::Config;
use runner_core::guard_files;
use runner_core::layout::Doc;
use runner_core::model::goal::{GoalError, TEMPLATE};
use runner_core::model::id::RunId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{Node, Tree};
use runner_core::runs::import::PlanFormat;
use runner_core::runs::start::{
    DocSet, DocumentSources, StartDocuments, StartError, StartOptions, compose, goal_file, message,
    unseeded_tree,
};

fn id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

fn options_with_goal(goal: &str) -> StartOptions {
    StartOptions { goal: Some(goal.to_owned()), ..StartOptions::default() }
}

fn with(docs: &DocSet, doc: Doc, bytes: impl Into<Vec<u8>>) -> DocSet {
    let mut docs = docs.clone();
    docs.insert(doc, bytes.into());
    docs
}

/// The documents of a newly started run.
fn new_run(name: &str, goal: &str) -> DocSet {
    let nothing = DocSet::new();
    let sources = DocumentSources { work: &nothing, head: &nothing, tip: None, on_branch: false, last: None };
    compose(&id(name), goal.as_bytes(), sources, &BTreeMap::new(), &StartOptions::default()).unwrap().docs
}

/// Starts on the run's branch with these files in the work tree.
fn resume(name: &str, work: &DocSet, tip: &DocSet) -> Result<StartDocuments, StartError> {
    let sources = DocumentSources { work, head: tip, tip: Some(tip), on_branch: true, last: None };
    compose(&id(name), &work[&Doc::Goal], sources, &BTreeMap::new(), &StartOptions::default())
}

/// Starts on another branch and switches to the run's.
fn switch(name: &str, work: &DocSet, head: &DocSet, tip: &DocSet) -> Result<StartDocuments, StartError> {
    let sources = DocumentSources { work, head, tip: Some(tip), on_branch: false, last: None };
    compose(&id(name), &work[&Doc::Goal], sources, &BTreeMap::new(), &StartOptions::default())
}

/// Starts a new run where files of another exist.
fn start_new(name: &str, work: &DocSet, keep_plan: bool) -> Result<StartDocuments, StartError> {
    let sources = DocumentSources { work, head: work, tip: None, on_branch: false, last: None };
    compose(
        &id(name),
        &work[&Doc::Goal],
        sources,
        &BTreeMap::new(),
        &StartOptions { keep_plan, ..StartOptions::default() },
    )
}

fn tree_of(docs: &DocSet) -> Tree {
    Tree::decode(&docs[&Doc::Tree]).unwrap()
}

fn state_of(docs: &DocSet) -> RunState {
    RunState::decode(&docs[&Doc::RunState]).unwrap()
}

fn text_of(docs: &DocSet, doc: Doc) -> String {
    String::from_utf8(docs[&doc].clone()).unwrap()
}

/// A node for the root's children.
fn child(id: &str, change: impl Fn(&mut Node)) -> Node {
    let mut node = unseeded_tree().root().clone();
    node.id = id.parse().unwrap();
    change(&mut node);
    node
}

/// The tree of these documents with these children of the root.
fn tree_with_children(docs: &DocSet, children: Vec<Node>) -> Vec<u8> {
    let mut root = tree_of(docs).root().clone();
    root.children = children;
    Tree::new(root).unwrap().bytes().to_vec()
}

/// The state of a new run whose guard is `just ci`, in a repository without a justfile.
fn fresh_state(name: &str) -> RunState {
    let no_files = BTreeMap::<String, Vec<u8>>::new();
    let protection = guard_files::protection(&Config::default().guard, &no_files);
    assert_eq!(protection.files, [".justfile", "Justfile", "justfile"]);
    RunState { protection: Some(protection), ..RunState::new(Some(id(name))) }
}

#[test]
fn first_start_creates_every_document() {
    let docs = new_run("x", "# Ship it\n\n## Acceptance\n- it ships\n");
    assert_eq!(docs.keys().copied().collect::<Vec<_>>(), Doc::ALL);
    assert_eq!(text_of(&docs, Doc::Goal), "---\nid: x\n---\n\n# Ship it\n\n## Acceptance\n- it ships\n");
    assert_eq!(state_of(&docs), fresh_state("x"));
    let tree = tree_of(&docs);
    assert_eq!((tree.root().id.as_str(), tree.root().title.as_str()), ("root", "Ship it"));
    assert_eq!(
        (tree.root().acceptance.as_slice(), tree.root().max_attempts),
        (&["it ships".to_owned()][..], 3)
    );
    for doc in [Doc::Gitignore, Doc::Config, Doc::TreeSchema, Doc::OutputSchema, Doc::Feedback] {
        assert_eq!(docs[&doc], doc.scaffold(), "{doc:?}");
    }
}

#[test]
fn template_goal_counts_as_unwritten() {
    let nothing = DocSet::new();
    let sources = DocumentSources { work: &nothing, head: &nothing, tip: None, on_branch: false, last: None };
    let composed = |goal: &str| {
        compose(&id("x"), goal.as_bytes(), sources, &BTreeMap::new(), &StartOptions::default()).unwrap()
    };
    assert!(composed(TEMPLATE).goal_unwritten);
    assert!(!composed("Do it.\n").goal_unwritten);
}

#[test]
fn goal_option_fills_an_empty_file_and_never_overwrites() {
    let work = |text: &str| with(&DocSet::new(), Doc::Goal, text);
    let file = |work: &DocSet, goal: &str| {
        goal_file(work, &options_with_goal(goal)).map(|bytes| String::from_utf8(bytes).unwrap())
    };
    assert_eq!(goal_file(&DocSet::new(), &StartOptions::default()), Ok(TEMPLATE.into()));
    assert_eq!(goal_file(&work("mine"), &StartOptions::default()), Ok("mine".into()));
    assert_eq!(file(&DocSet::new(), "Do it.\n\n").as_deref(), Ok("Do it.\n"));
    assert_eq!(file(&work(TEMPLATE), "Do it.").as_deref(), Ok("Do it.\n"));
    assert_eq!(file(&work("---\nid: x\n---\n\n"), "Do it.").as_deref(), Ok("---\nid: x\n---\nDo it.\n"));
    assert_eq!(
        file(&work("---\nid: x\n---\n\nDo it.\n\n"), " Do it.").as_deref(),
        Ok("---\nid: x\n---\n\nDo it.\n\n")
    );
    assert_eq!(file(&work("Other.\n"), "Do it."), Err(StartError::GoalTaken));
    assert_eq!(file(&work(TEMPLATE), " \n"), Err(StartError::GoalEmpty));
    assert_eq!(file(&work("---\nid: x\n"), "Do it."), Err(StartError::Goal(GoalError::Unclosed)));
}

#[test]
fn second_start_changes_nothing() {
    let docs = new_run("x", "Do it.\n");
    assert_eq!(resume("x", &docs, &docs).map(|composed| composed.docs), Ok(docs));
}

#[test]
fn user_changes_on_the_branch_are_kept() {
    let tip = new_run("x", "Do it.\n");
    let mut work = with(&tip, Doc::Config, "max_iterations = 7\n");
    work.insert(Doc::Goal, "---\nid: x\n---\nDo more.\n".into());
    work.insert(Doc::Feedback, "learned\n".into());
    work.insert(Doc::Gitignore, "mine\n".into());
    work.insert(Doc::TreeSchema, "{}".into());
    work.insert(Doc::Tree, tree_with_children(&tip, vec![child("a", |_| {})]));
    let docs = resume("x", &work, &tip).unwrap().docs;
    for doc in [Doc::Config, Doc::Goal, Doc::Feedback, Doc::Tree] {
        assert_eq!(docs[&doc], work[&doc], "{doc:?}");
    }
    assert!(text_of(&docs, Doc::Gitignore).starts_with("mine\ncontext/\n"));
    assert_eq!(docs[&Doc::TreeSchema], Doc::TreeSchema.scaffold(), "schemas are the runner's");
}

#[test]
fn user_edit_of_the_tree_must_satisfy_the_rules() {
    let tip = new_run("x", "Do it.\n");
    let tip = with(&tip, Doc::Tree, tree_with_children(&tip, vec![child("a", |_| {})]));
    let passed = tree_with_children(&tip, vec![child("a", |node| node.passes = true), child("b", |_| {})]);
    let error = resume("x", &with(&tip, Doc::Tree, passed), &tip).unwrap_err();
    assert!(matches!(&error, StartError::TreeEdit(faults) if faults.len() == 1));
    assert_eq!(error.to_string(), "the edit of tree.json violates 1 rule");
    let error = resume("x", &with(&tip, Doc::Tree, "{}"), &tip).unwrap_err();
    assert_eq!(error.to_string(), "tree.json has 2 errors");
}

#[test]
fn run_state_is_kept_for_its_run_and_reset_for_another() {
    let tip = new_run("x", "Do it.\n");
    let later = RunState { last_summary: Some("half".to_owned()), ..state_of(&tip) };
    let tip = with(&tip, Doc::RunState, later.to_bytes());
    assert_eq!(resume("x", &tip, &tip).map(|composed| state_of(&composed.docs)), Ok(later));
    let foreign = with(&tip, Doc::RunState, RunState::new(Some(id("y"))).to_bytes());
    let docs = resume("x", &foreign, &foreign).unwrap().docs;
    assert_eq!(state_of(&docs), fresh_state("x"));
    let broken = with(&tip, Doc::RunState, "[]");
    assert_eq!(resume("x", &broken, &broken).unwrap_err().to_string(), "run_state.json has 1 error");
    // The work tree's copy is ignored.
    assert_eq!(resume("x", &broken, &tip).map(|composed| composed.docs), Ok(tip));
}

#[test]
fn new_run_gets_a_new_tree_or_the_open_tasks_of_the_old_one() {
    let old = new_run("old", "Old goal.\n");
    let done = child("done", |node| node.passes = true);
    let tried = child("tried", |node| {
        node.attempts = 2;
        node.max_attempts = 5;
    });
    let half = child("half", |node| {
        node.children = vec![child("h1", |node| node.passes = true), child("h2", |_| {})];
    });
    let work = with(&old, Doc::Tree, tree_with_children(&old, vec![done, half, tried]));
    let work = with(&work, Doc::Goal, "New goal.\n");
    let work = with(&work, Doc::Config, "max_attempts_default = 9\n");

    let fresh = start_new("new", &work, false).unwrap().docs;
    assert_eq!(tree_of(&fresh).node_count(), 1);
    assert_eq!(
        (tree_of(&fresh).root().title.as_str(), tree_of(&fresh).root().max_attempts),
        ("New goal.", 9)
    );
    assert_eq!(state_of(&fresh).run_id, Some(id("new")));

    let kept = tree_of(&start_new("new", &work, true).unwrap().docs);
    assert_eq!(kept.root().title, "New goal.");
    let children: Vec<_> =
        kept.root().children.iter().map(|node| (node.id.as_str(), node.children.len())).collect();
    assert_eq!(children, [("half", 1), ("tried", 0)]);
    let tried = &kept.root().children[1];
    assert_eq!((tried.attempts, tried.max_attempts), (0, 5));
    let broken = with(&work, Doc::Tree, "{}");
    assert!(start_new("new", &broken, false).is_ok());
    assert!(matches!(start_new("new", &broken, true), Err(StartError::Tree(_))));
}

#[test]
fn plan_written_before_the_first_start_is_kept() {
    let init: DocSet = Doc::ALL.into_iter().map(|doc| (doc, doc.scaffold())).collect();
    let init = with(&init, Doc::Goal, "Do it.\n");
    let seeded = tree_of(&start_new("x", &init, false).unwrap().docs);
    assert_eq!(seeded.root().title, "Do it.", "the tree that `init` writes is not a plan");

    let own = with(&init, Doc::Tree, tree_with_children(&init, vec![child("a", |_| {})]));
    assert_eq!(start_new("x", &own, false).unwrap().docs[&Doc::Tree], own[&Doc::Tree]);
    let counted = tree_with_children(&init, vec![child("a", |node| node.attempts = 1)]);
    let error = start_new("x", &with(&init, Doc::Tree, counted), false);
    assert!(matches!(error, Err(StartError::TreeEdit(faults)) if faults.len() == 1));
}

#[test]
fn switch_checks_out_the_runs_files_and_keeps_user_changes() {
    let head = new_run("here", "Here.\n");
    let tip = with(&new_run("there", "There.\n"), Doc::Feedback, "learned there\n");
    // Only the id changed: switch to that run.
    let work = with(&head, Doc::Goal, "---\nid: there\n---\n\nHere.\n");
    assert_eq!(switch("there", &work, &head, &tip).map(|composed| composed.docs), Ok(tip.clone()));
    // Goal and configuration changed: keep both changes.
    let work = with(&work, Doc::Goal, "---\nid: there\n---\n\nMore.\n");
    let work = with(&work, Doc::Config, "max_iterations = 7\n");
    let docs = switch("there", &work, &head, &tip).unwrap().docs;
    assert_eq!(text_of(&docs, Doc::Goal), "---\nid: there\n---\n\nMore.\n");
    assert_eq!(text_of(&docs, Doc::Config), "max_iterations = 7\n");
    assert_eq!(docs[&Doc::Feedback], tip[&Doc::Feedback]);
    assert_eq!(
        tree_of(&docs).root().title,
        "More.",
        "no task was attempted yet, so the new goal makes a new root"
    );
    let worked = with(&tip, Doc::Tree, tree_with_children(&tip, vec![child("a", |_| {})]));
    let docs = switch("there", &work, &head, &worked).unwrap().docs;
    assert_eq!(docs[&Doc::Tree], worked[&Doc::Tree], "an existing plan stays");
    // The template does not count as a change.
    let work = with(&head, Doc::Goal, TEMPLATE);
    assert_eq!(switch("there", &work, &head, &tip).unwrap().docs[&Doc::Goal], tip[&Doc::Goal]);
}

#[test]
fn switch_uses_the_runs_configuration_if_the_user_changed_none() {
    let head = with(&new_run("here", "Here.\n"), Doc::Config, "max_iterations = 7\n");
    let tip = with(&new_run("there", "There.\n"), Doc::Config, "max_iterations = 9\n");
    let tip = with(&tip, Doc::Gitignore, [&b"theirs\n"[..], &tip[&Doc::Gitignore]].concat());
    let work = with(&head, Doc::Goal, "---\nid: there\n---\n\nHere.\n");
    let docs = switch("there", &work, &head, &tip).unwrap().docs;
    assert_eq!(text_of(&docs, Doc::Config), "max_iterations = 9\n");
    assert_eq!(docs[&Doc::Gitignore], tip[&Doc::Gitignore]);
}

#[test]
fn switch_that_would_lose_changes_is_refused() {
    let head = new_run("here", "Here.\n");
    let tip = new_run("there", "There.\n");
    let mut work = with(&head, Doc::Questions, "why?\n");
    work.insert(Doc::Tree, tree_with_children(&head, vec![child("a", |_| {})]));
    work.insert(Doc::OutputSchema, "{}".into());
    assert_eq!(
        switch("there", &work, &head, &tip),
        Err(StartError::WouldLose(vec![Doc::Tree, Doc::Questions]))
    );
    let same = with(&head, Doc::Questions, "why?\n");
    let tip = with(&tip, Doc::Questions, "why?\n");
    assert!(switch("there", &same, &head, &tip).is_ok(), "identical files lose nothing");
    let scaffold = with(&head, Doc::Questions, Doc::Questions.scaffold());
    let changed_head = with(&head, Doc::Questions, "old\n");
    assert!(switch("there", &scaffold, &changed_head, &tip).is_ok(), "the scaffold of `init` is not a loss");
}

#[test]
fn file_missing_on_the_branch_comes_from_the_work_tree() {
    let head = new_run("here", "Here.\n");
    let mut tip = new_run("there", "There.\n");
    tip.remove(&Doc::Config);
    tip.remove(&Doc::Assumptions);
    let head = with(&head, Doc::Config, "max_iterations = 7\n");
    let mut work = head.clone();
    work.remove(&Doc::Assumptions);
    let docs = switch("there", &work, &head, &tip).unwrap().docs;
    assert_eq!(text_of(&docs, Doc::Config), "max_iterations = 7\n");
    assert_eq!(docs[&Doc::Assumptions], Doc::Assumptions.scaffold());
}

#[test]
fn invalid_configuration_is_refused() {
    let tip = new_run("x", "Do it.\n");
    let error = resume("x", &with(&tip, Doc::Config, "a = 1\nb = 2\n"), &tip).unwrap_err();
    assert_eq!(error.to_string(), "config.toml has 2 errors");
    let error = resume("x", &with(&tip, Doc::Goal, "---\n"), &tip).unwrap_err();
    assert_eq!(error, StartError::Goal(GoalError::Unclosed));
}

#[test]
fn start_message_records_user_commits_and_the_imported_plan() {
    for (own_commits, imported, expected) in [
        (0, None, "chore(loop): start run x\n"),
        (1, None, "chore(loop): start run x\n\nRunner-User-Commits: 1\n"),
        (
            0,
            Some((PlanFormat::TaskMaster, 4)),
            "chore(loop): start run x\n\nRunner-Plan-Import: task-master 4\n",
        ),
        (
            2,
            Some((PlanFormat::Markdown, 12)),
            "chore(loop): start run x\n\nRunner-User-Commits: 2\nRunner-Plan-Import: markdown 12\n",
        ),
    ] {
        assert_eq!(message(&id("x"), own_commits, imported), expected);
    }
}

#[test]
fn a_new_goal_changes_a_root_that_is_an_open_leaf_and_shows_the_old_one() {
    let tip = new_run("r1", "# Old\n\nOne.\n\n## Acceptance\n\n- it is\n");
    let mut state = state_of(&tip);
    state.next_iter = state.next_iter.next();
    let mut root = tree_of(&tip).root().clone();
    root.attempts = 1;
    let tip = with(&tip, Doc::RunState, state.to_bytes());
    let tip = with(&tip, Doc::Tree, Tree::new(root.clone()).unwrap().bytes());
    let new_goal = |tip: &DocSet| with(tip, Doc::Goal, text_of(tip, Doc::Goal).replace("# Old", "# New"));
    let started = resume("r1", &new_goal(&tip), &tip).unwrap();
    let tree = tree_of(&started.docs);
    assert_eq!((tree.root().title.as_str(), tree.root().attempts, started.has_stale_root), ("New", 1, false));
    assert_eq!(tree.root().acceptance, ["it is"]);

    let edited = Node { title: "Mine".to_owned(), ..root.clone() };
    let split = Node { children: vec![child("a", |_| {})], ..root };
    for root in [edited, split] {
        let tip = with(&tip, Doc::Tree, Tree::new(root.clone()).unwrap().bytes());
        let started = resume("r1", &new_goal(&tip), &tip).unwrap();
        assert_eq!(tree_of(&started.docs).root(), &root, "the user's or the agents' plan stays");
        assert!(started.has_stale_root);
        assert!(!resume("r1", &tip, &tip).unwrap().has_stale_root, "without a new goal");
    }
}

#[test]
fn another_goal_for_a_complete_run_needs_a_new_run() {
    let docs = new_run("r1", "# Old\n\nOne.\n");
    let mut root = tree_of(&docs).root().clone();
    root.passes = true;
    let docs = with(&docs, Doc::Tree, Tree::new(root).unwrap().bytes());
    let refused = goal_file(&docs, &options_with_goal("New"));
    assert_eq!(refused, Err(StartError::RunComplete { goal: "New".to_owned() }));
}
