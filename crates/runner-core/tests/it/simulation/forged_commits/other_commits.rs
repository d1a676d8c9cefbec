//! Forges commits that no iteration makes: starts, edits, recorded guard runs, commits of the user.

use runner_core::layout::Doc;
use runner_core::model::digest::Sha256;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::TreeId;
use runner_core::model::run_state::{GuardResult, RecordedGuardRun, RunState, SEMANTICS};
use runner_core::model::tree::Tree;
use runner_core::runs::edit::{self, EditableDocs, NewNode, SiblingPosition, UserEdit};
use runner_core::runs::fork;
use runner_core::runs::import::PlanFormat;
use runner_core::runs::start;
use runner_core::step::RoomLevel;
use runner_core::verify::{AuditBase, AuditedCommit, Auditor, CommitChange, FileAfter};
use serde_json::{Value, json};

use super::{Files, ForgeryTable, RUNS, Target, apply, written};
use crate::simulation::{audit, run};

/// A run in which one node has passed and another is open.
struct PartialRun {
    auditor: Auditor,
    files: Files,
    last: AuditedCommit,
}

impl PartialRun {
    fn find() -> Self {
        let in_run = |seed| {
            let mut auditor = Auditor::new(RunId::new("sim").unwrap(), AuditBase::default());
            let mut files = Files::new();
            audit::commits(&run(seed).commits).into_iter().find_map(|commit| {
                let outcome = auditor.check(&commit).outcome;
                apply(&mut files, &commit);
                let ending = auditor.clone().finish();
                let tree = files.get(Doc::Tree.path().as_bytes()).and_then(|tree| Tree::decode(tree).ok());
                let is_open = tree.is_some_and(|tree| !tree.root().passes);
                let is_partial = outcome.is_some() && !ending.passed.is_empty() && is_open;
                is_partial.then(|| Self { auditor: auditor.clone(), files: files.clone(), last: commit })
            })
        };
        (0..RUNS).find_map(in_run).unwrap()
    }

    fn bytes(&self, doc: Doc) -> Vec<u8> {
        self.files.get(doc.path().as_bytes()).cloned().unwrap_or_default()
    }

    fn state(&self) -> RunState {
        RunState::decode(&self.bytes(Doc::RunState)).unwrap()
    }

    /// A commit after the last one.
    fn commit(&self, message: &str, docs: &[(Doc, Vec<u8>)]) -> AuditedCommit {
        let change = |(doc, bytes): &(Doc, Vec<u8>)| CommitChange {
            path: doc.path().as_bytes().to_vec(),
            now: FileAfter::File(Some(bytes.clone())),
            is_protected: false,
        };
        AuditedCommit {
            id: "a".repeat(40),
            parents: vec![self.last.id.clone()],
            message: message.as_bytes().to_vec(),
            changes: docs.iter().map(change).collect(),
            protected: None,
            candidate: None,
            check_files: Vec::new(),
            protection: None,
            instructions: None,
            damaged: Vec::new(),
        }
    }

    fn target(&self, message: &str, docs: &[(Doc, Vec<u8>)]) -> Target {
        let commit = self.commit(message, docs);
        let mut files = self.files.clone();
        apply(&mut files, &commit);
        Target { auditor: self.auditor.clone(), commit, next: None, files }
    }

    /// The run with one more commit.
    fn with(&self, commit: AuditedCommit) -> Self {
        let mut auditor = self.auditor.clone();
        auditor.check(&commit);
        let mut files = self.files.clone();
        apply(&mut files, &commit);
        Self { auditor, files, last: commit }
    }

    fn edit(&self, edit: &UserEdit) -> Target {
        let tree = Tree::decode(&self.bytes(Doc::Tree)).unwrap();
        let questions = self.bytes(Doc::Questions);
        let notes = self.bytes(Doc::Notes);
        let after = edit.apply(&EditableDocs { tree, questions, notes, plan: None, approval: None }).unwrap();
        let state = self.state();
        let message = edit::message(&RunId::new("sim").unwrap(), edit, &after, &state, 0);
        let mut docs: Vec<_> = edit.changed_docs(&after, &state).into_iter().collect();
        docs.retain(|(doc, bytes)| self.bytes(*doc) != *bytes);
        self.target(&message, &docs)
    }
}

/// Commits that are made by a user or a command other than `step`.
fn other_commits() -> Vec<(&'static str, Target)> {
    let run_id = RunId::new("sim").unwrap();
    let other = RunId::new("other").unwrap();
    let run = PartialRun::find();
    let again = start::message(&run_id, 0, None);
    let iter = run.auditor.clone().check(&run.last).kind.iter();
    let iter = iter.unwrap_or_else(|| panic!("{:?}", run.last));
    let forked = fork::documents(&other, &run.bytes(Doc::Goal), &run.state()).unwrap();
    let user_commit = AuditedCommit { id: "b".repeat(40), ..run.commit("fix: by hand\n", &[]) };
    let mut grown: Value = serde_json::from_slice(&run.bytes(Doc::Tree)).unwrap();
    let mut part = grown["root"].clone();
    part["id"] = json!("new");
    part["children"] = json!([]);
    part["attempts"] = json!(0);
    part["order"] = json!(1_000_000);
    grown["root"]["children"].as_array_mut().unwrap().push(part);
    let imported = start::message(&run_id, 0, Some((PlanFormat::Markdown, 1)));
    let mut commits = vec![
        ("start again", run.target(&again, &[])),
        ("import", run.target(&imported, &[(Doc::Tree, written(&grown))])),
        ("fork", run.target(&fork::message(&other, &run_id, iter), &forked.into_iter().collect::<Vec<_>>())),
        ("user commit", run.target("fix: by hand\n", &[])),
        ("start after a user commit", run.with(user_commit).target(&start::message(&run_id, 1, None), &[])),
        ("note", run.edit(&UserEdit::Note { text: "Use tabs.".to_owned() })),
    ];
    let leaf = NewNode::new(NodeId::new("new").unwrap(), "New", None, &[], 2);
    commits.push((
        "add",
        run.edit(&UserEdit::Add { under: NodeId::root(), place: SiblingPosition::Last, node: leaf }),
    ));
    let (start, started) = started_run();
    commits.push(("first start", start));
    let baseline = RecordedGuardRun {
        guard: GuardResult::Fail,
        exit: "1".to_owned(),
        room: Some(RoomLevel::InPlace),
        output: Some("failed\n".to_owned()),
        next_iter: IterationNumber::FIRST,
    };
    let bytes = RunState { baseline: Some(baseline), ..started.state() }.to_bytes();
    let message = format!(
        "chore(loop): run sim baseline guard=fail\n\nRunner-Guard-Exit: 1\nRunner-Room: in-place\nRunner-State: {}\nRunner-Semantics: {SEMANTICS}\n",
        Sha256::of(&bytes)
    );
    commits.push(("baseline", started.target(&message, &[(Doc::RunState, bytes)])));
    commits.push(("final check", final_commit(&started)));
    commits
}

/// The commit of a final check: the last task passed just before.
fn final_commit(started: &PartialRun) -> Target {
    let mut root = Tree::decode(&started.bytes(Doc::Tree)).unwrap().root().clone();
    root.passes = true;
    root.children.clear();
    let tree = Tree::new(root).unwrap().bytes().to_vec();
    let unchecked = started.commit("unchecked: the last pass\n", &[(Doc::Tree, tree)]);
    let unstarted = started.with(AuditedCommit { id: "b".repeat(40), ..unchecked });
    // Only a start puts a tree of the user's into effect.
    let again = unstarted.commit(&start::message(&RunId::new("sim").unwrap(), 1, None), &[]);
    let passed = unstarted.with(AuditedCommit { id: "c".repeat(40), ..again });
    let record = RecordedGuardRun {
        guard: GuardResult::Pass,
        exit: "0".to_owned(),
        room: Some(RoomLevel::InPlace),
        output: None,
        next_iter: passed.state().next_iter,
    };
    let bytes = RunState { final_check: Some(record), ..passed.state() }.to_bytes();
    let message = format!(
        "chore(loop): run sim final guard=pass\n\nRunner-Guard-Exit: 0\nRunner-Room: in-place\nRunner-Candidate: {}\nRunner-State: {}\nRunner-Semantics: {SEMANTICS}\n",
        TreeId::none(),
        Sha256::of(&bytes)
    );
    passed.target(&message, &[(Doc::RunState, bytes)])
}

/// The first commit of a run, and the run after it.
fn started_run() -> (Target, PartialRun) {
    let auditor = Auditor::new(RunId::new("sim").unwrap(), AuditBase::default());
    let commit = audit::commits(&run(0).commits).remove(0);
    let run = PartialRun { auditor: auditor.clone(), files: Files::new(), last: commit.clone() }
        .with(commit.clone());
    (Target { auditor, commit, next: None, files: run.files.clone() }, run)
}

#[test]
fn forgeries_of_other_commits_are_reported_with_their_rules() {
    let mut table = ForgeryTable::default();
    for (name, target) in other_commits() {
        table.record_all(&format!("{name}: "), &target);
    }
    insta::assert_snapshot!(table.text());
}
