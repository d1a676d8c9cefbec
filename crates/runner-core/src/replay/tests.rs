//! Replays of recorded runs, byte for byte.

use super::*;
use crate::commit_message::{MessageParts, Trailer};
use crate::model::object_id::TreeId;
use crate::runs::start::{self, DocSet, DocumentSources, StartOptions, compose};
use crate::step::{
    ChangeScope, FileChanges, GuardExit, GuardPlace, LeftFile, PlanningChanges, SessionExit, SessionRequest,
    Usage,
};

fn run_id() -> RunId {
    RunId::new("r1").unwrap()
}

/// A commit that changes these documents.
fn commit(message: &str, docs: &[(Doc, String)], session: Option<RecordedSession>) -> RecordedCommit {
    let files = docs.iter().map(|(doc, text)| (doc.path().to_owned(), Some(text.clone()))).collect();
    RecordedCommit { message: message.to_owned(), files, session }
}

/// A run that is recorded commit by commit.
struct RunRecorder {
    recording: Recording,
    files: Files,
}

impl RunRecorder {
    /// A run after its start.
    fn new() -> Self {
        let nothing = DocSet::new();
        let sources =
            DocumentSources { work: &nothing, head: &nothing, tip: None, on_branch: false, approved: None };
        let composed =
            compose(&run_id(), b"# Ship it\n", sources, &BTreeMap::new(), &StartOptions::default()).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let docs: Vec<_> = composed.docs.into_iter().map(|(doc, bytes)| (doc, text(bytes))).collect();
        let base = BTreeMap::from([(".runner/prompts/README".to_owned(), "deleted by the start".to_owned())]);
        let recording = Recording { schema: SCHEMA.to_owned(), run_id: run_id(), base, commits: Vec::new() };
        let mut recorder = Self { recording, files: Files::new() };
        let mut first = commit(&start::message(&run_id(), 0, None), &docs, None);
        first.files.insert(".runner/prompts/README".to_owned(), None);
        recorder.push(first);
        recorder
    }

    fn push(&mut self, commit: RecordedCommit) {
        for (path, text) in &commit.files {
            let path = path.clone().into_bytes();
            text.as_ref().map(|text| self.files.insert(path, text.clone().into_bytes()));
        }
        self.recording.commits.push(commit);
    }

    /// An iteration after `user_commits` commits of the user's.
    fn iterate(&mut self, status: &str, user_commits: u32) {
        let bytes = |doc: Doc| self.files[doc.path().as_bytes()].clone();
        let tree = Tree::decode(&bytes(Doc::Tree)).unwrap();
        let state = RunState::decode(&bytes(Doc::RunState)).unwrap();
        let config = Config::decode(&bytes(Doc::Config)).unwrap();
        let docs = StepDocuments { tree: &tree, state: &state, config: &config };
        let snapshot = snapshot(&self.files, &run_id(), docs, user_commits).unwrap();
        let Ok(NextStep::Work(job)) = plan(&snapshot, SessionRequest::Next) else { panic!("nothing to do") };
        let answer = format!(r#"{{"status": "{status}", "summary": "a summary"}}"#);
        let attempt = Attempt {
            exit: SessionExit::Finished { code: 0 },
            answer: LeftFile::Bytes(answer.into_bytes()),
            tree: LeftFile::Bytes(tree.bytes().to_vec()),
            work: ChangeScope::Execute,
            changes: FileChanges { work_files: 1, runner_files: 0 },
            protected: Vec::new(),
            memory: Vec::new(),
            keys: Default::default(),
            planning: PlanningChanges::default(),
            usage: Usage::default(),
            new_checks: BTreeMap::new(),
            processes_left: 0,
        };
        let guard_run = GuardRun::Ended {
            exit: GuardExit::Code(0),
            output: Vec::new(),
            place: GuardPlace::in_place(TreeId::none()),
        };
        let transition = settle(
            &snapshot,
            &job,
            &interpret(&snapshot, &job, attempt.clone()),
            &Evidence::of_guard(guard_run.clone()),
        );
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let docs =
            [(Doc::Tree, text(transition.tree.bytes())), (Doc::RunState, text(&transition.state.to_bytes()))];
        let prompt = Some(job.prompt.text.clone());
        self.push(commit(
            &transition.message,
            &docs,
            Some(RecordedSession {
                prompt,
                attempt,
                guard_run,
                checks: CheckEvidence::default(),
                review: ReviewEvidence::Skipped,
            }),
        ));
    }
}

/// A start, two commits of the user's, an attempt, another commit of the user's, and a pass.
fn recorded() -> Recording {
    let mut recorder = RunRecorder::new();
    recorder.push(commit("fix: it\n", &[], None));
    recorder.push(commit("fix: it again\n", &[(Doc::Feedback, "look\n".to_owned())], None));
    recorder.iterate("retry", 2);
    recorder.push(commit("docs: it\n", &[], None));
    recorder.iterate("done", 1);
    recorder.recording
}

#[test]
fn a_recording_is_decoded_as_it_was_written_and_no_other_format_is_read() {
    let recording = recorded();
    assert_eq!(Recording::decode(&recording.to_bytes()), Ok(recording.clone()));
    let newer = Recording { schema: "runner.recording/2".to_owned(), ..recording };
    assert_eq!(
        Recording::decode(&newer.to_bytes()),
        Err("its format is `runner.recording/2`, but this version only reads `runner.recording/1`".to_owned())
    );
}

#[test]
fn a_recorded_run_is_replayed_without_a_difference() {
    let mut recording = recorded();
    let user_commits = |at: usize| {
        let message = &recording.commits[at].message;
        MessageParts::parse(message).value(Trailer::UserCommits).map(str::to_owned)
    };
    assert_eq!(user_commits(3).as_deref(), Some("2"));
    assert_eq!(user_commits(5).as_deref(), Some("1"));
    let same = ReplayResult { iterations: 2, skipped: Vec::new(), difference: None };
    assert_eq!(replay(&recording), same);
    recording.commits[3].session.as_mut().unwrap().prompt = None;
    assert_eq!(replay(&recording), same, "a removed prompt is compared by its digest");
    recording.commits[3].session = None;
    let skipped = ReplayResult { iterations: 1, skipped: vec![IterationNumber::FIRST], difference: None };
    assert_eq!(replay(&recording), skipped);
}

#[test]
fn the_first_difference_is_reported_with_its_line() {
    fn file(commit: &mut RecordedCommit, doc: Doc, from: &str, to: &str) {
        let text = commit.files.get_mut(doc.path()).unwrap().as_mut().unwrap();
        assert!(text.contains(from), "{text}");
        *text = text.replacen(from, to, 1);
    }
    type Change = fn(&mut RecordedCommit);
    let cases: [(Change, _, _, _, _); 5] = [
        (
            |it| it.session.as_mut().unwrap().prompt.as_mut().unwrap().insert_str(0, "Hello\n"),
            "prompt",
            1,
            "Hello",
            "# Rules",
        ),
        (
            |it| file(it, Doc::Tree, "\"attempts\": 1", "\"attempts\": 0"),
            "tree.json",
            10,
            "    \"attempts\": 0,",
            "    \"attempts\": 1,",
        ),
        (
            |it| file(it, Doc::RunState, "\"next_iter\": 2", "\"next_iter\": 3"),
            "run_state.json",
            3,
            "  \"next_iter\": 3,",
            "  \"next_iter\": 2,",
        ),
        (
            |it| it.message = it.message.replace("Runner-Attempt: charged", "Runner-Attempt: free"),
            "message",
            6,
            "Runner-Attempt: free",
            "Runner-Attempt: charged",
        ),
        (
            |it| it.message.push_str("Runner-Outcome: passed\n"),
            "message",
            16,
            "Runner-Outcome: passed",
            "(the end)",
        ),
    ];
    for (change, what, line, then, now) in cases {
        let mut recording = recorded();
        change(&mut recording.commits[3]);
        let (recorded, now) = (then.to_owned(), now.to_owned());
        let difference = FirstDifference { iter: Some(IterationNumber::FIRST), what, line, recorded, now };
        let expected = ReplayResult { iterations: 0, skipped: Vec::new(), difference: Some(difference) };
        assert_eq!(replay(&recording), expected);
    }
}

#[test]
fn an_iteration_that_this_version_would_not_run_differs_in_its_plan() {
    for (doc, text, now) in [
        (Doc::Config, "max_iterations = 1\n", "no iteration: max_iterations"),
        (Doc::Config, "max_iterations = 0\n", "the documents before it cannot be decoded"),
        (Doc::Goal, "---\n", "the goal before it cannot be parsed"),
    ] {
        let mut recording = recorded();
        recording.commits[4] = commit("docs: it\n", &[(doc, text.to_owned())], None);
        let difference = FirstDifference {
            iter: Some(IterationNumber::new(2).unwrap()),
            what: "plan",
            line: 1,
            recorded: "chore(loop): run r1 iter 0002 node root status=done guard=pass".to_owned(),
            now: now.to_owned(),
        };
        let expected = ReplayResult { iterations: 1, skipped: Vec::new(), difference: Some(difference) };
        assert_eq!(replay(&recording), expected);
    }
}
