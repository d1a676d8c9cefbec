//! Recorded runs through today's rules: the same results of agent and guard must give the same prompts, trees, states and
//! messages, byte for byte.
//!
//! Unlike an [audit](crate::verify), which takes what commits record, a replay has what really came back from every session,
//! so that judging, merging and bounding are made again too. A recording is one JSON document and needs no repository.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::layout::Doc;
use crate::model::id::{IterationNumber, RunId};
use crate::model::run_state::RunState;
use crate::model::tree::Tree;
use crate::step::{Attempt, GuardRun, NextStep, interpret, plan, settle};
use crate::strict::canonical_json;
use crate::verify::{CommitKind, Files, StepDocuments, kind, snapshot};

/// The name of the document's form.
pub const SCHEMA: &str = "runner.recording/1";

/// A run, recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// [`SCHEMA`].
    pub schema: String,
    /// The run.
    pub run_id: RunId,
    /// The files that steps read, before the first commit. Lossy where they are no text.
    pub base: BTreeMap<String, String>,
    /// The commits, oldest first.
    pub commits: Vec<RecordedCommit>,
}

/// One commit of a recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCommit {
    /// Its message.
    pub message: String,
    /// The files that steps read and that it changed; null for one that is gone.
    pub files: BTreeMap<String, Option<String>>,
    /// What came back, if it is an iteration.
    pub session: Option<RecordedSession>,
}

/// What came back from agent and guard, and what the agent was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedSession {
    /// The prompt.
    pub prompt: String,
    /// What the agent left.
    pub attempt: Attempt,
    /// What the guard said.
    pub guard_run: GuardRun,
}

/// What a replay came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayResult {
    /// How many iterations were the same.
    pub iterations: usize,
    /// Iterations whose sessions were not recorded.
    pub skipped: Vec<IterationNumber>,
    /// Where it went another way.
    pub difference: Option<FirstDifference>,
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstDifference {
    /// The iteration.
    pub iter: Option<IterationNumber>,
    /// `plan`, `prompt`, `tree.json`, `run_state.json` or `message`.
    pub what: &'static str,
    /// The first line that differs, from 1.
    pub line: usize,
    /// That line as it was recorded.
    pub recorded: String,
    /// That line as it is now.
    pub now: String,
}

impl Recording {
    /// Reads a recording, or says what is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let recording: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if recording.schema == SCHEMA {
            return Ok(recording);
        }
        Err(format!("its form is `{}`, and this version knows `{SCHEMA}`", recording.schema))
    }

    /// The one written form.
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical_json(self)
    }
}

/// Replays a recording up to the first difference.
pub fn replay(recording: &Recording) -> ReplayResult {
    let mut files: Files =
        recording.base.iter().map(|(path, text)| (path.clone().into(), text.clone().into())).collect();
    let mut replayed = ReplayResult { iterations: 0, skipped: Vec::new(), difference: None };
    let mut own_commits = 0;
    for commit in &recording.commits {
        let before = files.clone();
        for (path, text) in &commit.files {
            match text {
                Some(text) => drop(files.insert(path.clone().into(), text.clone().into())),
                None => drop(files.remove(path.as_bytes())),
            }
        }
        let kind = kind(commit.message.as_bytes());
        let iter = kind.iter();
        match (&commit.session, iter) {
            (Some(session), _) => {
                let again = ReplayedIteration { recording, before: &before, after: &files, commit, session };
                if let Some((what, recorded, now)) = again.difference(own_commits) {
                    replayed.difference = Some(first_line(iter, what, &recorded, &now));
                    return replayed;
                }
                replayed.iterations += 1;
            }
            (None, Some(iter)) => replayed.skipped.push(iter),
            (None, None) => {}
        }
        own_commits = if matches!(kind, CommitKind::User { .. }) { own_commits + 1 } else { 0 };
    }
    replayed
}

/// One iteration, made again.
struct ReplayedIteration<'r> {
    recording: &'r Recording,
    before: &'r Files,
    after: &'r Files,
    commit: &'r RecordedCommit,
    session: &'r RecordedSession,
}

impl ReplayedIteration<'_> {
    /// What differs, as it was recorded and as it is now.
    fn difference(&self, own_commits: u32) -> Option<(&'static str, String, String)> {
        let said = |what: &'static str, now: String| Some((what, self.subject(), now));
        let doc = |files: &Files, doc: Doc| files.get(doc.path().as_bytes()).cloned().unwrap_or_default();
        let tree = Tree::decode(&doc(self.before, Doc::Tree));
        let state = RunState::decode(&doc(self.before, Doc::RunState));
        let config = Config::decode(&doc(self.before, Doc::Config));
        let (Ok(tree), Ok(state), Ok(config)) = (tree, state, config) else {
            return said("plan", "the documents before it cannot be read".to_owned());
        };
        // A fork's recording begins with iterations of the run that it goes on from.
        let run = state.run_id.as_ref().unwrap_or(&self.recording.run_id);
        let docs = StepDocuments { tree: &tree, state: &state, config: &config };
        let Some(snapshot) = snapshot(self.before, run, docs, own_commits) else {
            return said("plan", "the goal before it cannot be read".to_owned());
        };
        let job = match plan(&snapshot) {
            Ok(NextStep::Work(job)) => job,
            Ok(NextStep::Stop(stop)) => return said("plan", format!("no iteration: {}", stop.as_str())),
            Err(fault) => return said("plan", fault.to_string()),
        };
        let claim = interpret(&snapshot, &job, self.session.attempt.clone());
        let transition = settle(&snapshot, &job, &claim, &self.session.guard_run);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let pairs = [
            ("prompt", self.session.prompt.clone(), job.prompt.text.clone()),
            ("tree.json", text(doc(self.after, Doc::Tree)), text(transition.tree.bytes().to_vec())),
            ("run_state.json", text(doc(self.after, Doc::RunState)), text(transition.state.to_bytes())),
            ("message", self.commit.message.clone(), transition.message),
        ];
        pairs.into_iter().find(|(_, recorded, now)| recorded != now)
    }

    fn subject(&self) -> String {
        self.commit.message.lines().next().unwrap_or_default().to_owned()
    }
}

fn first_line(
    iter: Option<IterationNumber>,
    what: &'static str,
    recorded: &str,
    now: &str,
) -> FirstDifference {
    let same = recorded.lines().zip(now.lines()).take_while(|(one, other)| one == other).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").to_owned();
    FirstDifference { iter, what, line: same + 1, recorded: line(recorded), now: line(now) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::start::{self, DocSet, DocumentSources, StartOptions, compose};
    use crate::step::{ChangeScope, GuardExit, LeftFile, SessionExit, Usage};

    fn run_id() -> RunId {
        RunId::new("r1").unwrap()
    }

    /// A commit that changes these documents.
    fn commit(message: &str, docs: &[(Doc, String)], session: Option<RecordedSession>) -> RecordedCommit {
        let files = docs.iter().map(|(doc, text)| (doc.path().to_owned(), Some(text.clone()))).collect();
        RecordedCommit { message: message.to_owned(), files, session }
    }

    /// A run while it is made.
    struct Making {
        recording: Recording,
        files: Files,
    }

    impl Making {
        /// A run that has just been started.
        fn new() -> Self {
            let nothing = DocSet::new();
            let sources = DocumentSources { work: &nothing, head: &nothing, tip: None, on_branch: false };
            let composed = compose(&run_id(), b"# Ship it\n", sources, &StartOptions::default()).unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            let docs: Vec<_> = composed.docs.into_iter().map(|(doc, bytes)| (doc, text(bytes))).collect();
            let base = BTreeMap::from([(".runner/prompts/README".to_owned(), "gone soon".to_owned())]);
            let recording =
                Recording { schema: SCHEMA.to_owned(), run_id: run_id(), base, commits: Vec::new() };
            let mut making = Self { recording, files: Files::new() };
            let mut first = commit(&start::message(&run_id(), 0, None), &docs, None);
            first.files.insert(".runner/prompts/README".to_owned(), None);
            making.push(first);
            making
        }

        fn push(&mut self, commit: RecordedCommit) {
            for (path, text) in &commit.files {
                let path = path.clone().into_bytes();
                text.as_ref().map(|text| self.files.insert(path, text.clone().into_bytes()));
            }
            self.recording.commits.push(commit);
        }

        /// An iteration on top of so many commits of the user's.
        fn iterate(&mut self, status: &str, own_commits: u32) {
            let bytes = |doc: Doc| self.files[doc.path().as_bytes()].clone();
            let (tree, state) =
                (Tree::decode(&bytes(Doc::Tree)).unwrap(), RunState::decode(&bytes(Doc::RunState)).unwrap());
            let config = Config::decode(&bytes(Doc::Config)).unwrap();
            let docs = StepDocuments { tree: &tree, state: &state, config: &config };
            let snapshot = snapshot(&self.files, &run_id(), docs, own_commits).unwrap();
            let Ok(NextStep::Work(job)) = plan(&snapshot) else { panic!("nothing to do") };
            let answer = format!(r#"{{"status": "{status}", "summary": "said"}}"#);
            let attempt = Attempt {
                exit: SessionExit::Finished { code: 0 },
                answer: LeftFile::Bytes(answer.into_bytes()),
                tree: LeftFile::Bytes(tree.bytes().to_vec()),
                work: ChangeScope::Execute,
                protected: Vec::new(),
                usage: Usage::default(),
                processes_left: 0,
            };
            let verdict = GuardRun::Ended { exit: GuardExit::Code(0), output: Vec::new() };
            let made = settle(&snapshot, &job, &interpret(&snapshot, &job, attempt.clone()), &verdict);
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let docs = [(Doc::Tree, text(made.tree.bytes())), (Doc::RunState, text(&made.state.to_bytes()))];
            let prompt = job.prompt.text.clone();
            self.push(commit(
                &made.message,
                &docs,
                Some(RecordedSession { prompt, attempt, guard_run: verdict }),
            ));
        }
    }

    /// A start, two commits of the user's, an attempt, another commit of the user's, and a pass.
    fn recorded() -> Recording {
        let mut making = Making::new();
        making.push(commit("fix: it\n", &[], None));
        making.push(commit("fix: it again\n", &[(Doc::Feedback, "look\n".to_owned())], None));
        making.iterate("retry", 2);
        making.push(commit("docs: it\n", &[], None));
        making.iterate("done", 1);
        making.recording
    }

    #[test]
    fn a_recording_is_read_back_as_it_was_written_and_no_other_form_is_read() {
        let recording = recorded();
        assert_eq!(Recording::decode(&recording.to_bytes()), Ok(recording.clone()));
        let newer = Recording { schema: "runner.recording/2".to_owned(), ..recording };
        assert_eq!(
            Recording::decode(&newer.to_bytes()),
            Err("its form is `runner.recording/2`, and this version knows `runner.recording/1`".to_owned())
        );
    }

    #[test]
    fn a_run_that_was_recorded_is_the_same_again() {
        let mut recording = recorded();
        let taken_in = |at: usize| {
            recording.commits[at].message.lines().find(|line| line.starts_with("Runner-Taken-In"))
        };
        assert_eq!((taken_in(3), taken_in(5)), (Some("Runner-Taken-In: 2"), Some("Runner-Taken-In: 1")));
        let same = ReplayResult { iterations: 2, skipped: Vec::new(), difference: None };
        assert_eq!(replay(&recording), same);
        recording.commits[3].session = None;
        let skipped = ReplayResult { iterations: 1, skipped: vec![IterationNumber::FIRST], difference: None };
        assert_eq!(replay(&recording), skipped);
    }

    #[test]
    fn the_first_difference_is_told_with_its_line() {
        fn file(commit: &mut RecordedCommit, doc: Doc, from: &str, to: &str) {
            let text = commit.files.get_mut(doc.path()).unwrap().as_mut().unwrap();
            assert!(text.contains(from), "{text}");
            *text = text.replacen(from, to, 1);
        }
        type Change = fn(&mut RecordedCommit);
        let cases: [(Change, _, _, _, _); 5] = [
            (
                |it| it.session.as_mut().unwrap().prompt.insert_str(0, "Hello\n"),
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
                14,
                "Runner-Outcome: passed",
                "(the end)",
            ),
        ];
        for (change, what, line, then, now) in cases {
            let mut recording = recorded();
            change(&mut recording.commits[3]);
            let (recorded, now) = (then.to_owned(), now.to_owned());
            let difference =
                FirstDifference { iter: Some(IterationNumber::FIRST), what, line, recorded, now };
            let expected = ReplayResult { iterations: 0, skipped: Vec::new(), difference: Some(difference) };
            assert_eq!(replay(&recording), expected);
        }
    }

    #[test]
    fn an_iteration_that_would_not_be_made_today_differs_in_its_plan() {
        for (doc, text, now) in [
            (Doc::Config, "max_iterations = 1\n", "no iteration: max_iterations"),
            (Doc::Config, "max_iterations = 0\n", "the documents before it cannot be read"),
            (Doc::Goal, "---\n", "the goal before it cannot be read"),
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
}
