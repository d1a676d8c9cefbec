//! Builds histories commit by commit and audits each: the auditor accepts valid ones of any size and names the violated rule
//! of the others.

mod progress;

use std::collections::BTreeSet;

use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::digest::Sha256;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::TreeId;
use runner_core::model::progress::UnconfirmedClaim;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::run_state::{GuardResult, RecordedGuardRun, RunState, SEMANTICS};
use runner_core::model::tree::{Node, Tree};
use runner_core::runs::edit::{self, EditableDocs, UserEdit};
use runner_core::runs::import::PlanFormat;
use runner_core::runs::start;
use runner_core::step::{
    Attempt, ChangeScope, Evidence, FileChanges, GuardExit, GuardRun, Interruption, LeftFile, NextStep,
    Outcome, ProtectedPath, ProviderError, SessionExit, Transition, Usage, interpret, plan, settle,
};
use runner_core::step::{GuardPlace, PlanningChanges, RoomLevel, SessionRequest};
use runner_core::verify::{
    AuditBase, AuditStart, AuditedCommit, Auditor, CommitChange, FileAfter, Files, Rule, StepDocuments,
    snapshot,
};

const ACCEPT_UNCHANGED: &str = "[accept]\nunchanged = \"pass\"\n";
const GOAL: &str = "---\nid: sim\n---\n# Goal\n\nBuild it.\n";

/// A run's history so far.
#[derive(Clone)]
struct AuditedRun {
    auditor: Auditor,
    files: Files,
    protected: BTreeSet<Vec<u8>>,
    commits: usize,
}

fn run_id() -> RunId {
    RunId::new("sim").unwrap()
}

fn leaf(id: &str, order: i64) -> Node {
    Node {
        id: NodeId::new(id).unwrap(),
        order,
        title: id.to_owned(),
        goal: String::new(),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: 3,
        children: Vec::new(),
    }
}

fn file(path: &str, is_protected: bool) -> CommitChange {
    CommitChange { path: path.as_bytes().to_vec(), now: FileAfter::File(None), is_protected }
}

impl AuditedRun {
    /// A new run with this many leaves and these protected files.
    fn start(config: &str, leaves: usize, protected: &[String]) -> Self {
        let protected: BTreeSet<Vec<u8>> = protected.iter().map(|path| path.as_bytes().to_vec()).collect();
        let base = AuditBase { protected: protected.clone(), ..AuditBase::default() };
        let auditor = Auditor::new(run_id(), base);
        let mut run = Self { auditor, files: Files::new(), protected, commits: 0 };
        let children = (0..leaves).map(|nth| leaf(&format!("n{nth:03}"), i64::try_from(nth).unwrap()));
        let root = Node { children: children.collect(), ..leaf("root", 0) };
        let docs = [
            (Doc::Goal, GOAL.as_bytes().to_vec()),
            (Doc::Config, config.as_bytes().to_vec()),
            (Doc::Tree, Tree::new(root).unwrap().bytes().to_vec()),
            (Doc::RunState, RunState::new(Some(run_id())).to_bytes()),
        ];
        assert_eq!(run.commit(&start::message(&run_id(), 0, None), &docs, Vec::new()), []);
        run
    }

    /// Audits a commit; returns the violated rules.
    fn commit(
        &mut self,
        message: &str,
        docs: &[(Doc, Vec<u8>)],
        mut changes: Vec<CommitChange>,
    ) -> Vec<Rule> {
        let parents = (self.commits > 0).then(|| format!("{:040}", self.commits)).into_iter().collect();
        self.commits += 1;
        for (doc, bytes) in docs {
            let path = doc.path().as_bytes().to_vec();
            if self.files.insert(path.clone(), bytes.clone()).as_ref() != Some(bytes) {
                let now = FileAfter::File(Some(bytes.clone()));
                changes.push(CommitChange { path, now, is_protected: false });
            }
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        for change in changes.iter().filter(|change| change.is_protected) {
            match change.now {
                FileAfter::Deleted => self.protected.remove(&change.path),
                FileAfter::File(_) | FileAfter::Other => self.protected.insert(change.path.clone()),
            };
        }
        let is_start = message.starts_with("chore(loop): start");
        let report = self.auditor.check(&AuditedCommit {
            id: format!("{:040}", self.commits),
            parents,
            message: message.as_bytes().to_vec(),
            changes,
            protected: is_start.then(|| self.protected.clone()),
            candidate: None,
            check_files: Vec::new(),
            protection: None,
            instructions: None,
            damaged: Vec::new(),
        });
        assert_eq!(report.unchecked, [""; 0]);
        report.findings.iter().map(|finding| finding.rule).collect()
    }

    fn bytes(&self, doc: Doc) -> &[u8] {
        self.files.get(doc.path().as_bytes()).map(Vec::as_slice).unwrap_or_default()
    }

    fn tree(&self) -> Tree {
        Tree::decode(self.bytes(Doc::Tree)).unwrap()
    }

    fn state(&self) -> RunState {
        RunState::decode(self.bytes(Doc::RunState)).unwrap()
    }

    fn settle(&self, attempt: Attempt, verdict: &GuardRun) -> Transition {
        let tree = self.tree();
        let state = self.state();
        let config = Config::decode(self.bytes(Doc::Config)).unwrap();
        let docs = StepDocuments { tree: &tree, state: &state, config: &config };
        let snapshot = snapshot(&self.files, &run_id(), docs, 0).unwrap();
        let NextStep::Work(job) = plan(&snapshot, SessionRequest::Next).unwrap() else {
            panic!("the run is over")
        };
        settle(&snapshot, &job, &interpret(&snapshot, &job, attempt), &Evidence::of_guard(verdict.clone()))
    }

    /// Commits an iteration with this attempt, guard result and the session's other changes; asserts that the auditor accepts
    /// it.
    fn iterate(&mut self, attempt: Attempt, verdict: &GuardRun, changes: Vec<CommitChange>) -> Outcome {
        let transition = self.settle(attempt, verdict);
        let docs =
            [(Doc::Tree, transition.tree.bytes().to_vec()), (Doc::RunState, transition.state.to_bytes())];
        let violations = self.commit(&transition.message, &docs, changes);
        assert_eq!(violations, [], "{}", transition.message);
        transition.outcome
    }

    /// A session that gives this answer and does not change the tree.
    fn answer(&self, status: &str) -> Attempt {
        Attempt {
            exit: SessionExit::Finished { code: 0 },
            answer: LeftFile::Bytes(
                format!(r#"{{"status": "{status}", "summary": "done so far"}}"#).into_bytes(),
            ),
            tree: LeftFile::Bytes(self.bytes(Doc::Tree).to_vec()),
            work: ChangeScope::Execute,
            changes: FileChanges { work_files: 1, runner_files: 0 },
            protected: Vec::new(),
            memory: Vec::new(),
            planning: PlanningChanges::default(),
            keys: Default::default(),
            usage: Usage::default(),
            new_checks: std::collections::BTreeMap::new(),
            processes_left: 0,
        }
    }

    /// A session without an answer.
    fn no_answer(&self, exit: SessionExit) -> Attempt {
        Attempt {
            exit,
            answer: LeftFile::Missing,
            work: ChangeScope::Decompose,
            changes: FileChanges::default(),
            ..self.answer("retry")
        }
    }
}

fn guard_files(count: usize) -> Vec<String> {
    (0..count).map(|nth| format!("f{nth:02}.just")).collect()
}

fn changed_path(name: &str, existed_at_start: bool) -> ProtectedPath {
    let path = RepoPath::of_bytes(name.as_bytes());
    ProtectedPath { path, existed_at_start, changed: true, exists: true }
}

fn guard_succeeded() -> GuardRun {
    GuardRun::Ended {
        exit: GuardExit::Code(0),
        output: Vec::new(),
        place: GuardPlace::in_place(TreeId::none()),
    }
}

#[test]
fn any_number_of_restored_and_created_guard_files_is_accepted() {
    for (restored, created) in [(1, 0), (20, 0), (25, 0), (3, 2), (19, 3), (22, 2), (0, 22)] {
        for (status, verdict) in [("retry", GuardRun::Skipped), ("done", guard_succeeded())] {
            // Restored files alone are no work.
            let mut run = AuditedRun::start(ACCEPT_UNCHANGED, 2, &guard_files(30));
            let old = guard_files(restored);
            let new: Vec<String> = (0..created).map(|nth| format!("new{nth:02}.just")).collect();
            let protected = old.iter().map(|name| changed_path(name, true));
            let protected = protected.chain(new.iter().map(|name| changed_path(name, false))).collect();
            let attempt = Attempt { protected, ..run.answer(status) };
            run.iterate(attempt, &verdict, new.iter().map(|name| file(name, true)).collect());
            let again = run.answer("retry");
            run.iterate(again, &GuardRun::Skipped, vec![file("src/a", false)]);
        }
    }
}

#[test]
fn deleted_new_guard_file_does_not_count_as_restored() {
    let mut run = AuditedRun::start(ACCEPT_UNCHANGED, 2, &guard_files(30));
    let new_file = changed_path("new.just", false);
    let attempt = Attempt { protected: vec![new_file.clone()], ..run.answer("retry") };
    run.iterate(attempt, &GuardRun::Skipped, vec![file("new.just", true)]);
    let restored = guard_files(22).into_iter().map(|name| changed_path(&name, true));
    let deleted = ProtectedPath { exists: false, ..new_file };
    let attempt = Attempt { protected: restored.chain([deleted]).collect(), ..run.answer("done") };
    let changes = vec![CommitChange { now: FileAfter::Deleted, ..file("new.just", true) }];
    assert_eq!(run.iterate(attempt, &guard_succeeded(), changes), Outcome::Passed);
}

#[test]
fn changed_guard_files_are_accepted_with_protect_flag() {
    for changed in [1, 23] {
        let mut run = AuditedRun::start("[guard]\nprotect = \"flag\"\n", 2, &guard_files(30));
        let protected = guard_files(changed).iter().map(|name| changed_path(name, true)).collect();
        let attempt = Attempt { protected, ..run.answer("done") };
        let changes = guard_files(changed).iter().map(|name| file(name, true)).collect();
        assert_eq!(run.iterate(attempt, &guard_succeeded(), changes), Outcome::Passed);
    }
}

#[test]
fn session_with_more_violations_than_the_state_keeps_is_accepted() {
    for removed in [97, 98, 99, 100, 101, 103, 130] {
        for restored in [0, 1, 3] {
            let mut run = AuditedRun::start("", removed + 1, &guard_files(5));
            let mut root = run.tree().root().clone();
            root.children.truncate(1);
            let tree_text = serde_json::json!({ "version": 1, "root": root }).to_string();
            let protected = guard_files(restored).iter().map(|name| changed_path(name, true)).collect();
            let tree = LeftFile::Bytes(tree_text.into_bytes());
            let attempt = Attempt { tree, protected, ..run.answer("retry") };
            let changes = vec![file("src/a", false)];
            assert_eq!(run.iterate(attempt, &GuardRun::Skipped, changes), Outcome::RuleViolation);
        }
    }
}

#[test]
fn guard_without_a_result_is_accepted() {
    let not_started = GuardRun::NotStarted { why: "no such program".to_owned() };
    for (verdict, outcome) in [
        (GuardRun::TimedOut, Outcome::GuardTimedOut),
        (not_started, Outcome::GuardNotStarted),
        (GuardRun::Interrupted { by: Interruption::Int }, Outcome::Interrupted),
    ] {
        let mut run = AuditedRun::start("", 2, &[]);
        let attempt = run.answer("done");
        assert_eq!(run.iterate(attempt, &verdict, vec![file("src/a", false)]), outcome);
    }
    let mut run = AuditedRun::start("", 2, &[]);
    let no_answer = run.no_answer(SessionExit::Interrupted { by: Interruption::Term });
    assert_eq!(run.iterate(no_answer, &GuardRun::Skipped, Vec::new()), Outcome::Interrupted);
}

#[test]
fn removed_cause_of_a_guard_that_could_not_start_is_a_violation() {
    let mut run = AuditedRun::start("", 2, &[]);
    let verdict = GuardRun::NotStarted { why: "no such program".to_owned() };
    let Transition { mut state, message, tree, .. } = run.settle(run.answer("done"), &verdict);
    let digest = Sha256::of(&state.to_bytes()).to_string();
    let cause = state.guard_error.take().unwrap();
    assert_eq!(cause, "no such program");
    let forged =
        message.replace(&cause, "done so far").replace(&digest, &Sha256::of(&state.to_bytes()).to_string());
    let docs = [(Doc::Tree, tree.bytes().to_vec()), (Doc::RunState, state.to_bytes())];
    assert_eq!(run.commit(&forged, &docs, vec![file("src/a", false)]), [Rule::RunState, Rule::Message]);
}

#[test]
fn usage_limits_in_a_row_are_accepted() {
    let ladder = "on_usage_limit = \"next\"\n[executor]\nkind = \"codex\"\n[[ladder]]\nkind = \"claude\"\n";
    let mut run = AuditedRun::start(ladder, 1, &[]);
    for resets in [900, 500, 700] {
        let fault = ProviderError::UsageLimit { resets_unix_secs: Some(resets) };
        let no_answer = run.no_answer(SessionExit::Provider { fault });
        assert_eq!(run.iterate(no_answer, &GuardRun::Skipped, Vec::new()), Outcome::UsageLimit);
    }
}

#[test]
fn pinned_file_is_accepted_if_the_audit_starts_after_the_run_did() {
    let mut run = AuditedRun::start("", 3, &guard_files(1));
    // `one.just` exists when the audit starts, and no leaf has passed with it yet.
    let protected = vec![changed_path("one.just", false)];
    let attempt = Attempt { protected, ..run.answer("retry") };
    run.iterate(attempt, &GuardRun::Skipped, vec![file("one.just", true)]);
    let base = AuditBase {
        commit: Some(format!("{:040}", run.commits)),
        files: run.files.clone(),
        protected: run.protected.clone(),
        start: AuditStart::Within(None),
    };
    run.auditor = Auditor::new(run_id(), base);
    let one = ProtectedPath { changed: false, ..changed_path("one.just", false) };
    let attempt = Attempt { protected: vec![one], ..run.answer("done") };
    assert_eq!(run.iterate(attempt, &guard_succeeded(), vec![file("src/a", false)]), Outcome::Passed);
    let attempt = Attempt { protected: vec![changed_path("two.just", false)], ..run.answer("done") };
    assert_eq!(run.iterate(attempt, &guard_succeeded(), vec![file("two.just", true)]), Outcome::Passed);
    assert_eq!(run.state().pinned.len(), 2);
}

/// Commits a baseline; returns the violated rules.
fn commit_baseline(run: &mut AuditedRun, baseline: &RecordedGuardRun) -> Vec<Rule> {
    let state = RunState { baseline: Some(baseline.clone()), ..run.state() }.to_bytes();
    let room = baseline.room.map(|room| format!("Runner-Room: {room}\n")).unwrap_or_default();
    let message = format!(
        "chore(loop): run sim baseline guard={}\n\nRunner-Guard-Exit: {}\n{room}Runner-State: {}\nRunner-Semantics: {SEMANTICS}\n",
        baseline.guard.as_str(),
        baseline.exit,
        Sha256::of(&state),
    );
    run.commit(&message, &[(Doc::RunState, state)], Vec::new())
}

#[test]
fn baseline_is_valid_once_before_the_next_iteration_and_only_if_configured() {
    let pass = || RecordedGuardRun {
        guard: GuardResult::Pass,
        exit: "0".to_owned(),
        room: Some(RoomLevel::InPlace),
        output: None,
        next_iter: IterationNumber::FIRST,
    };
    let fresh = AuditedRun::start("", 1, &[]);
    let mut once = fresh.clone();
    assert_eq!(commit_baseline(&mut once, &pass()), []);
    assert_eq!(commit_baseline(&mut once, &pass()), [Rule::Baseline], "twice");
    let mut late = fresh.clone();
    let attempt = late.answer("retry");
    late.iterate(attempt, &GuardRun::Skipped, vec![file("src/a", false)]);
    assert_eq!(commit_baseline(&mut late.clone(), &pass()), [Rule::Baseline], "of another time");
    let later = RecordedGuardRun { next_iter: IterationNumber::new(2).unwrap(), ..pass() };
    assert_eq!(commit_baseline(&mut late, &later), []);
    let mut not_configured = AuditedRun::start("[guard]\nbaseline = false\n", 1, &[]);
    assert_eq!(commit_baseline(&mut not_configured, &pass()), [Rule::Baseline], "not configured");
    let impossible = RecordedGuardRun { exit: "1".to_owned(), ..pass() };
    assert_eq!(commit_baseline(&mut fresh.clone(), &impossible), [Rule::Baseline], "impossible");
}

#[test]
fn import_trailer_must_have_a_known_format_and_the_right_count() {
    let imported = |trailer: &str| {
        let mut run = AuditedRun::start("", 1, &[]);
        let mut root = run.tree().root().clone();
        root.children.push(leaf("new", 1000));
        let tree = Tree::new(root).unwrap().bytes().to_vec();
        let message = start::message(&run_id(), 0, Some((PlanFormat::Markdown, 1)));
        run.commit(&message.replace("markdown 1", trailer), &[(Doc::Tree, tree)], Vec::new())
    };
    assert_eq!(imported("markdown 1"), []);
    assert_eq!(imported("markdown 2"), [Rule::EditScope]);
    assert_eq!(imported("unknown 1"), [Rule::EditScope]);
}

#[test]
fn impossible_user_edit_is_a_violation() {
    let mut run = AuditedRun::start("", 2, &[]);
    let attempt = run.answer("done");
    assert_eq!(run.iterate(attempt, &guard_succeeded(), vec![file("src/a", false)]), Outcome::Passed);
    let node = |id: &str| NodeId::new(id).unwrap();
    for (edit, rule) in [
        (UserEdit::Remove { node: node("n000") }, Rule::PassedChanged),
        (UserEdit::Remove { node: node("missing") }, Rule::PlanEdit),
    ] {
        let before = EditableDocs {
            tree: run.tree(),
            questions: Vec::new(),
            notes: Vec::new(),
            plan: None,
            approval: None,
        };
        let message = edit::message(&run_id(), &edit, &before, &run.state(), 0);
        assert!(run.clone().commit(&message, &[], Vec::new()).contains(&rule), "{edit:?}");
    }
}

#[test]
fn what_stands_below_the_first_start_is_not_the_runs() {
    let mut run = AuditedRun::start("", 2, &[]);
    let attempt = run.answer("done");
    run.iterate(attempt, &guard_succeeded(), vec![file("src/a", false)]);
    let commit = Some(format!("{:040}", run.commits));
    let base =
        AuditBase { commit, files: run.files.clone(), protected: BTreeSet::new(), start: AuditStart::Before };
    run.auditor = Auditor::new(run_id(), base);
    let found = run.commit(&start::message(&run_id(), 0, None), &[], Vec::new());
    assert_eq!(found, [Rule::RunState, Rule::Passes]);
}

#[test]
fn invented_attempts_are_reported_by_every_start_until_corrected() {
    let mut run = AuditedRun::start("", 2, &[]);
    let mut root = run.tree().root().clone();
    root.children.first_mut().unwrap().attempts = 1;
    let forged_tree = Tree::new(root).unwrap().bytes().to_vec();
    let start_message = start::message(&run_id(), 0, None);
    assert_eq!(run.commit(&start_message, &[(Doc::Tree, forged_tree)], Vec::new()), [Rule::Attempts]);
    assert_eq!(run.commit(&start_message, &[], vec![]), [Rule::Attempts]);
}

/// Commits a note that counts this many commits of the user's.
fn add_note(run: &mut AuditedRun, user_commits: u32) -> Vec<Rule> {
    let edit = UserEdit::Note { text: "Use tabs.".to_owned() };
    let notes = run.bytes(Doc::Notes).to_vec();
    let after = edit
        .apply(&EditableDocs { tree: run.tree(), questions: Vec::new(), notes, plan: None, approval: None })
        .unwrap();
    let message = edit::message(&run_id(), &edit, &after, &run.state(), user_commits);
    run.commit(&message, &[(Doc::Notes, after.notes)], Vec::new())
}

#[test]
fn what_a_user_commits_of_the_rules_takes_effect_with_a_start_alone() {
    let config = (Doc::Config, b"max_iterations = 7\n".to_vec());
    let schema = (Doc::TreeSchema, b"{}".to_vec());
    for (docs, changes) in [
        (vec![config], Vec::new()),
        (vec![schema], Vec::new()),
        (Vec::new(), vec![file("check", true)]),
        (Vec::new(), vec![file("package.json#scripts.test", true)]),
        (Vec::new(), vec![file(".runner/nodes/n000/tools.json", false)]),
    ] {
        let mut run = AuditedRun::start("", 2, &["check".to_owned()]);
        assert_eq!(run.commit("by hand\n", &docs, changes.clone()), []);
        let mut started = run.clone();
        assert_eq!(add_note(&mut run, 1), [Rule::UnstartedChange], "{docs:?} {changes:?}");
        assert_eq!(started.commit(&start::message(&run_id(), 1, None), &[], Vec::new()), []);
        assert_eq!(add_note(&mut started, 0), []);
    }
    let mut run = AuditedRun::start("", 2, &["check".to_owned()]);
    assert_eq!(run.commit("by hand\n", &[], vec![file("src/a", false)]), []);
    assert_eq!(add_note(&mut run, 1), [], "source alone needs no start");
}
