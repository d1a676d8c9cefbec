//! Histories made step by step and given to the audit: what is lawful is accepted, whatever its size, and what is not is
//! named.

use std::collections::BTreeSet;

use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::digest::Sha256;
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::repo_path::RepoPath;
use runner_core::model::run_state::{Baseline, GuardResult, RunState, SEMANTICS};
use runner_core::model::tree::{Node, Tree};
use runner_core::runs::edit::{self, EditableDocs, UserEdit};
use runner_core::runs::import::PlanFormat;
use runner_core::runs::start;
use runner_core::step::{
    Attempt, ChangeScope, GuardExit, GuardRun, Interruption, LeftFile, NextStep, Outcome, ProtectedPath,
    ProviderError, SessionExit, Transition, Usage, interpret, plan, settle,
};
use runner_core::verify::{
    AuditBase, AuditStart, AuditedCommit, Auditor, CommitChange, FileAfter, Files, Rule, StepDocuments,
    snapshot,
};

const GOAL: &str = "---\nid: sim\n---\n# Goal\n\nBuild it.\n";

/// A run as far as it is.
#[derive(Clone)]
struct Run {
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

impl Run {
    /// A run that was just started, with so many leaves and protected files.
    fn begun(config: &str, leaves: usize, protected: &[String]) -> Self {
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

    /// The rules that a commit breaks.
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
        let checked = self.auditor.check(&AuditedCommit {
            id: format!("{:040}", self.commits),
            parents,
            message: message.as_bytes().to_vec(),
            changes,
            protected: is_start.then(|| self.protected.clone()),
        });
        assert_eq!(checked.unchecked, [""; 0]);
        checked.findings.iter().map(|finding| finding.rule).collect()
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

    fn settled(&self, attempt: Attempt, verdict: &GuardRun) -> Transition {
        let (tree, state) = (self.tree(), self.state());
        let config = Config::decode(self.bytes(Doc::Config)).unwrap();
        let docs = StepDocuments { tree: &tree, state: &state, config: &config };
        let seen = snapshot(&self.files, &run_id(), docs, 0).unwrap();
        let NextStep::Work(job) = plan(&seen).unwrap() else { panic!("the run is over") };
        settle(&seen, &job, &interpret(&seen, &job, attempt), verdict)
    }

    /// Makes an iteration of what a session left and a guard said, and has it accepted. The rest of the changes are the
    /// session's.
    fn iterate(&mut self, attempt: Attempt, verdict: &GuardRun, changes: Vec<CommitChange>) -> Outcome {
        let transition = self.settled(attempt, verdict);
        let docs =
            [(Doc::Tree, transition.tree.bytes().to_vec()), (Doc::RunState, transition.state.to_bytes())];
        let found = self.commit(&transition.message, &docs, changes);
        assert_eq!(found, [], "{}", transition.message);
        transition.outcome
    }

    /// A session that answers so and leaves the tree as it was.
    fn answer(&self, status: &str) -> Attempt {
        Attempt {
            exit: SessionExit::Finished { code: 0 },
            answer: LeftFile::Bytes(format!(r#"{{"status": "{status}", "summary": "said"}}"#).into_bytes()),
            tree: LeftFile::Bytes(self.bytes(Doc::Tree).to_vec()),
            work: ChangeScope::Execute,
            protected: Vec::new(),
            usage: Usage::default(),
            processes_left: 0,
        }
    }

    fn silent(&self, exit: SessionExit) -> Attempt {
        Attempt { exit, answer: LeftFile::Missing, work: ChangeScope::Decompose, ..self.answer("retry") }
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|nth| format!("f{nth:02}.just")).collect()
}

fn touched(name: &str, existed_at_start: bool) -> ProtectedPath {
    let path = RepoPath::of_bytes(name.as_bytes());
    ProtectedPath { path, existed_at_start, changed: true, exists: true }
}

fn green() -> GuardRun {
    GuardRun::Ended { exit: GuardExit::Code(0), output: Vec::new() }
}

#[test]
fn guard_files_that_were_put_back_or_made_are_accepted_however_many() {
    for (restored, made) in [(1, 0), (20, 0), (25, 0), (3, 2), (19, 3), (22, 2), (0, 22)] {
        for (status, verdict) in [("retry", GuardRun::Skipped), ("done", green())] {
            let mut run = Run::begun("", 2, &names(30));
            let old = names(restored);
            let new: Vec<String> = (0..made).map(|nth| format!("new{nth:02}.just")).collect();
            let protected = old.iter().map(|name| touched(name, true));
            let protected = protected.chain(new.iter().map(|name| touched(name, false))).collect();
            let attempt = Attempt { protected, ..run.answer(status) };
            run.iterate(attempt, &verdict, new.iter().map(|name| file(name, true)).collect());
            let again = run.answer("retry");
            run.iterate(again, &GuardRun::Skipped, vec![file("src/a", false)]);
        }
    }
}

#[test]
fn a_young_guard_file_that_goes_again_is_none_of_those_that_were_put_back() {
    let mut run = Run::begun("", 2, &names(30));
    let young = touched("young.just", false);
    let attempt = Attempt { protected: vec![young.clone()], ..run.answer("retry") };
    run.iterate(attempt, &GuardRun::Skipped, vec![file("young.just", true)]);
    let restored = names(22).into_iter().map(|name| touched(&name, true));
    let gone = ProtectedPath { exists: false, ..young };
    let attempt = Attempt { protected: restored.chain([gone]).collect(), ..run.answer("done") };
    let changes = vec![CommitChange { now: FileAfter::Deleted, ..file("young.just", true) }];
    assert_eq!(run.iterate(attempt, &green(), changes), Outcome::Passed);
}

#[test]
fn guard_files_that_were_changed_where_that_is_only_flagged_are_accepted() {
    for changed in [1, 23] {
        let mut run = Run::begun("[guard]\nprotect = \"flag\"\n", 2, &names(30));
        let protected = names(changed).iter().map(|name| touched(name, true)).collect();
        let attempt = Attempt { protected, ..run.answer("done") };
        let changes = names(changed).iter().map(|name| file(name, true)).collect();
        assert_eq!(run.iterate(attempt, &green(), changes), Outcome::Passed);
    }
}

#[test]
fn a_session_that_broke_more_rules_than_are_kept_is_accepted() {
    for removed in [97, 98, 99, 100, 101, 103, 130] {
        for restored in [0, 1, 3] {
            let mut run = Run::begun("", removed + 1, &names(5));
            let mut root = run.tree().root().clone();
            root.children.truncate(1);
            let left = serde_json::json!({ "version": 1, "root": root }).to_string();
            let protected = names(restored).iter().map(|name| touched(name, true)).collect();
            let tree = LeftFile::Bytes(left.into_bytes());
            let attempt = Attempt { tree, protected, ..run.answer("retry") };
            let changes = vec![file("src/a", false)];
            assert_eq!(run.iterate(attempt, &GuardRun::Skipped, changes), Outcome::RuleViolation);
        }
    }
}

#[test]
fn a_guard_that_gave_no_answer_is_accepted() {
    let not_started = GuardRun::NotStarted { why: "no such program".to_owned() };
    for (verdict, outcome) in [
        (GuardRun::TimedOut, Outcome::GuardTimedOut),
        (not_started, Outcome::GuardNotStarted),
        (GuardRun::Interrupted { by: Interruption::Int }, Outcome::Interrupted),
    ] {
        let mut run = Run::begun("", 2, &[]);
        let attempt = run.answer("done");
        assert_eq!(run.iterate(attempt, &verdict, vec![file("src/a", false)]), outcome);
    }
    let mut run = Run::begun("", 2, &[]);
    let silent = run.silent(SessionExit::Interrupted { by: Interruption::Term });
    assert_eq!(run.iterate(silent, &GuardRun::Skipped, Vec::new()), Outcome::Interrupted);
}

#[test]
fn a_guard_that_was_not_started_is_told_in_the_runners_words() {
    let mut run = Run::begun("", 2, &[]);
    let verdict = GuardRun::NotStarted { why: "no such program".to_owned() };
    let Transition { mut state, message, tree, .. } = run.settled(run.answer("done"), &verdict);
    let digest = Sha256::of(&state.to_bytes()).to_string();
    let told = state.last_summary.replace("All is well.".to_owned()).unwrap();
    assert_eq!(told, "the guard could not be started: no such program");
    let forged = message.replace(&told, "All is well.");
    let forged = forged.replace(&digest, &Sha256::of(&state.to_bytes()).to_string());
    let docs = [(Doc::Tree, tree.bytes().to_vec()), (Doc::RunState, state.to_bytes())];
    assert_eq!(run.commit(&forged, &docs, vec![file("src/a", false)]), [Rule::RunState, Rule::Message]);
}

#[test]
fn allowances_that_are_used_up_one_after_another_are_accepted() {
    let ladder = "on_usage_limit = \"next\"\n[executor]\nkind = \"codex\"\n[[ladder]]\nkind = \"claude\"\n";
    let mut run = Run::begun(ladder, 1, &[]);
    for resets in [900, 500, 700] {
        let fault = ProviderError::UsageLimit { resets_unix_secs: Some(resets) };
        let silent = run.silent(SessionExit::Provider { fault });
        assert_eq!(run.iterate(silent, &GuardRun::Skipped, Vec::new()), Outcome::UsageLimit);
    }
}

#[test]
fn a_file_that_a_pass_pinned_is_accepted_where_the_start_is_out_of_reach() {
    let mut run = Run::begun("", 3, &names(1));
    // One is there when the audit begins, and took part in no pass yet.
    let protected = vec![touched("one.just", false)];
    let attempt = Attempt { protected, ..run.answer("retry") };
    run.iterate(attempt, &GuardRun::Skipped, vec![file("one.just", true)]);
    let base = AuditBase {
        commit: Some(format!("{:040}", run.commits)),
        files: run.files.clone(),
        protected: run.protected.clone(),
        start: AuditStart::Within(None),
    };
    run.auditor = Auditor::new(run_id(), base);
    let one = ProtectedPath { changed: false, ..touched("one.just", false) };
    let attempt = Attempt { protected: vec![one], ..run.answer("done") };
    assert_eq!(run.iterate(attempt, &green(), vec![file("src/a", false)]), Outcome::Passed);
    let attempt = Attempt { protected: vec![touched("two.just", false)], ..run.answer("done") };
    assert_eq!(run.iterate(attempt, &green(), vec![file("two.just", true)]), Outcome::Passed);
    assert_eq!(run.state().pinned.len(), 2);
}

/// A baseline, and the rules that it breaks.
fn baseline(run: &mut Run, found: &Baseline) -> Vec<Rule> {
    let state = RunState { baseline: Some(found.clone()), ..run.state() }.to_bytes();
    let message = format!(
        "chore(loop): run sim baseline guard={}\n\nRunner-Guard-Exit: {}\nRunner-State: {}\nRunner-Semantics: {SEMANTICS}\n",
        found.guard.as_str(),
        found.exit,
        Sha256::of(&state),
    );
    run.commit(&message, &[(Doc::RunState, state)], Vec::new())
}

#[test]
fn a_baseline_comes_once_before_the_first_iteration_if_it_is_asked_for() {
    let pass = || Baseline { guard: GuardResult::Pass, exit: "0".to_owned(), output: None };
    let asked = Run::begun("", 1, &[]);
    let mut once = asked.clone();
    assert_eq!(baseline(&mut once, &pass()), []);
    assert_eq!(baseline(&mut once, &pass()), [Rule::Baseline], "twice");
    let mut late = asked.clone();
    let attempt = late.answer("retry");
    late.iterate(attempt, &GuardRun::Skipped, vec![file("src/a", false)]);
    assert_eq!(baseline(&mut late, &pass()), [Rule::Baseline], "late");
    let mut unasked = Run::begun("[guard]\nbaseline = false\n", 1, &[]);
    assert_eq!(baseline(&mut unasked, &pass()), [Rule::Baseline], "unasked");
    let impossible = Baseline { exit: "1".to_owned(), ..pass() };
    assert_eq!(baseline(&mut asked.clone(), &impossible), [Rule::Baseline], "impossible");
}

#[test]
fn a_plan_of_no_known_format_was_not_imported() {
    let imported = |trailer: &str| {
        let mut run = Run::begun("", 1, &[]);
        let mut root = run.tree().root().clone();
        root.children.push(leaf("new", 1000));
        let tree = Tree::new(root).unwrap().bytes().to_vec();
        let message = start::message(&run_id(), 0, Some((PlanFormat::Markdown, 1)));
        run.commit(&message.replace("markdown 1", trailer), &[(Doc::Tree, tree)], Vec::new())
    };
    assert_eq!(imported("markdown 1"), []);
    assert_eq!(imported("markdown 2"), [Rule::EditScope]);
    assert_eq!(imported("rumour 1"), [Rule::EditScope]);
}

#[test]
fn an_edit_that_could_not_be_made_is_named_by_its_rule() {
    let mut run = Run::begun("", 2, &[]);
    let attempt = run.answer("done");
    assert_eq!(run.iterate(attempt, &green(), vec![file("src/a", false)]), Outcome::Passed);
    let node = |id: &str| NodeId::new(id).unwrap();
    for (edit, rule) in [
        (UserEdit::Remove { node: node("n000") }, Rule::PassedChanged),
        (UserEdit::Remove { node: node("nobody") }, Rule::PlanEdit),
    ] {
        let before = EditableDocs { tree: run.tree(), questions: Vec::new(), feedback: Vec::new() };
        let message = edit::message(&run_id(), &edit, &before, &run.state(), 0);
        assert!(run.clone().commit(&message, &[], Vec::new()).contains(&rule), "{edit:?}");
    }
}

#[test]
fn a_start_goes_on_from_what_the_run_left_elsewhere() {
    let mut run = Run::begun("", 2, &[]);
    let attempt = run.answer("done");
    run.iterate(attempt, &green(), vec![file("src/a", false)]);
    let commit = Some(format!("{:040}", run.commits));
    let base =
        AuditBase { commit, files: run.files.clone(), protected: BTreeSet::new(), start: AuditStart::Before };
    run.auditor = Auditor::new(run_id(), base);
    assert_eq!(run.commit(&start::message(&run_id(), 0, None), &[], Vec::new()), []);
}

#[test]
fn what_a_first_start_invented_is_named_until_it_is_gone() {
    let mut run = Run::begun("", 2, &[]);
    let mut root = run.tree().root().clone();
    root.children.first_mut().unwrap().attempts = 1;
    let invented = Tree::new(root).unwrap().bytes().to_vec();
    let again = start::message(&run_id(), 0, None);
    assert_eq!(run.commit(&again, &[(Doc::Tree, invented)], Vec::new()), [Rule::Attempts]);
    assert_eq!(run.commit(&again, &[], vec![]), [Rule::Attempts]);
}
