//! Replays recorded runs with this version: the same results of agent and guard must give the same prompts, trees, states and
//! messages, byte for byte.
//!
//! [Verification](crate::verify) only has what commits record. A replay has the full results of every session, so that it
//! repeats interpreting, merging and bounding as well. A recording is one JSON document and needs no repository.

mod recording_writer;

use std::collections::BTreeMap;

pub use recording_writer::RecordingWriter;
use serde::{Deserialize, Serialize};

use crate::commit_message::CommitKind;
use crate::config::Config;
use crate::layout::Doc;
use crate::model::id::{IterationNumber, RunId};
use crate::model::run_state::RunState;
use crate::model::tree::Tree;
use crate::step::{
    Attempt, CheckEvidence, Evidence, GuardRun, NextStep, ReviewEvidence, interpret, plan, settle,
};
use crate::strict::canonical_json;
use crate::verify::{Files, StepDocuments, snapshot};

/// The name and version of the format.
pub const SCHEMA: &str = "runner.recording/1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    pub schema: String,
    pub run_id: RunId,
    /// The files that steps read, before the first commit. Bytes that are not UTF-8 are replaced.
    pub base: BTreeMap<String, String>,
    /// The commits, oldest first.
    pub commits: Vec<RecordedCommit>,
}

/// One commit of a recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCommit {
    pub message: String,
    /// The files that steps read and that the commit changed; null for a deleted one.
    pub files: BTreeMap<String, Option<String>>,
    /// The session, if the commit is an iteration whose session was recorded.
    pub session: Option<RecordedSession>,
}

/// The prompt of a session, and the results of agent and guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedSession {
    /// None if the log was removed. The message contains the prompt's digest, so the prompt is compared all the same.
    #[serde(default)]
    pub prompt: Option<String>,
    pub attempt: Attempt,
    pub guard_run: GuardRun,
    /// What the checks of the task showed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks: CheckEvidence,
    /// What the review showed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub review: ReviewEvidence,
}

fn is_default<T: Default + PartialEq>(evidence: &T) -> bool {
    *evidence == T::default()
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayResult {
    /// How many iterations gave identical results.
    pub iterations: usize,
    /// Iterations whose sessions were not recorded.
    pub skipped: Vec<IterationNumber>,
    pub difference: Option<FirstDifference>,
}

/// The first difference between the recording and the replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstDifference {
    pub iter: Option<IterationNumber>,
    /// `plan`, `prompt`, `tree.json`, `run_state.json` or `message`.
    pub what: &'static str,
    /// The first line that differs, from 1.
    pub line: usize,
    pub recorded: String,
    pub now: String,
}

impl Recording {
    /// Decodes a recording; or explains why it cannot be read.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let recording: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if recording.schema == SCHEMA {
            return Ok(recording);
        }
        Err(format!("its format is `{}`, but this version only reads `{SCHEMA}`", recording.schema))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        canonical_json(self)
    }
}

/// Replays a recording up to the first difference.
pub fn replay(recording: &Recording) -> ReplayResult {
    let mut replayer = Replayer::new(recording.run_id.clone(), &recording.base);
    for commit in &recording.commits {
        if replayer.push(commit) == ReplayProgress::Differs {
            break;
        }
    }
    replayer.finish()
}

/// Whether a replay goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ReplayProgress {
    Same,
    /// A difference was found, so later commits say nothing.
    Differs,
}

/// Replays a run commit by commit. It holds the documents of one commit, however long the run is.
#[derive(Clone, Debug)]
pub struct Replayer {
    run_id: RunId,
    files: Files,
    user_commits: u32,
    result: ReplayResult,
}

impl Replayer {
    /// A replay that begins with the files before the first commit.
    pub fn new(run_id: RunId, base: &BTreeMap<String, String>) -> Self {
        let files = base.iter().map(|(path, text)| (path.clone().into(), text.clone().into())).collect();
        let result = ReplayResult { iterations: 0, skipped: Vec::new(), difference: None };
        Self { run_id, files, user_commits: 0, result }
    }

    /// Replays the next commit.
    pub fn push(&mut self, commit: &RecordedCommit) -> ReplayProgress {
        let kind = CommitKind::parse(commit.message.as_bytes());
        let iter = kind.iter();
        match (&commit.session, iter) {
            (Some(session), _) => {
                let iteration =
                    ReplayedIteration { run_id: &self.run_id, before: &self.files, commit, session };
                if let Some(differing) = iteration.differing_text(self.user_commits) {
                    self.result.difference = Some(differing.first_line(iter));
                    return ReplayProgress::Differs;
                }
                self.result.iterations += 1;
            }
            (None, Some(iter)) => self.result.skipped.push(iter),
            (None, None) => {}
        }
        for (path, text) in &commit.files {
            match text {
                Some(text) => drop(self.files.insert(path.clone().into(), text.clone().into())),
                None => drop(self.files.remove(path.as_bytes())),
            }
        }
        self.user_commits = if matches!(kind, CommitKind::User { .. }) { self.user_commits + 1 } else { 0 };
        ReplayProgress::Same
    }

    pub fn finish(self) -> ReplayResult {
        self.result
    }
}

/// A recorded iteration, with the files before it.
struct ReplayedIteration<'r> {
    run_id: &'r RunId,
    before: &'r Files,
    commit: &'r RecordedCommit,
    session: &'r RecordedSession,
}

/// A text that is not the same in the recording and in the replay.
struct DifferingText {
    what: &'static str,
    recorded: String,
    now: String,
}

impl DifferingText {
    fn first_line(&self, iter: Option<IterationNumber>) -> FirstDifference {
        let same =
            self.recorded.lines().zip(self.now.lines()).take_while(|(one, other)| one == other).count();
        let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").to_owned();
        FirstDifference {
            iter,
            what: self.what,
            line: same + 1,
            recorded: line(&self.recorded),
            now: line(&self.now),
        }
    }
}

impl ReplayedIteration<'_> {
    /// The first text that differs.
    fn differing_text(&self, user_commits: u32) -> Option<DifferingText> {
        let tree = Tree::decode(&document(self.before, Doc::Tree));
        let state = RunState::decode(&document(self.before, Doc::RunState));
        let config = Config::decode(&document(self.before, Doc::Config));
        let (Ok(tree), Ok(state), Ok(config)) = (tree, state, config) else {
            return Some(self.not_planned("the documents before it cannot be decoded".to_owned()));
        };
        // A fork's recording begins with iterations of the run that was forked.
        let run = state.run_id.as_ref().unwrap_or(self.run_id);
        let docs = StepDocuments { tree: &tree, state: &state, config: &config };
        let Some(snapshot) = snapshot(self.before, run, docs, user_commits) else {
            return Some(self.not_planned("the goal before it cannot be parsed".to_owned()));
        };
        let job = match plan(&snapshot) {
            Ok(NextStep::Work(job)) => job,
            Ok(NextStep::Stop(stop)) => {
                return Some(self.not_planned(format!("no iteration: {}", stop.as_str())));
            }
            Ok(NextStep::Milestone(_) | NextStep::FinalCheck(_)) => {
                return Some(self.not_planned("no iteration: checks of passed tasks run again".to_owned()));
            }
            Err(error) => return Some(self.not_planned(error.to_string())),
        };
        let claim = interpret(&snapshot, &job, self.session.attempt.clone());
        let guard = self.session.guard_run.clone();
        let review = self.session.review.clone();
        let evidence = Evidence { checks: self.session.checks.clone(), guard, review };
        let transition = settle(&snapshot, &job, &claim, &evidence);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let prompt = self.session.prompt.clone().unwrap_or_else(|| job.prompt.text.clone());
        let texts = [
            DifferingText { what: "prompt", recorded: prompt, now: job.prompt.text },
            DifferingText {
                what: "tree.json",
                recorded: self.text_after(Doc::Tree),
                now: text(transition.tree.bytes()),
            },
            DifferingText {
                what: "run_state.json",
                recorded: self.text_after(Doc::RunState),
                now: text(&transition.state.to_bytes()),
            },
            DifferingText { what: "message", recorded: self.commit.message.clone(), now: transition.message },
        ];
        texts.into_iter().find(|text| text.recorded != text.now)
    }

    /// A document after the iteration.
    fn text_after(&self, doc: Doc) -> String {
        match self.commit.files.get(doc.path()) {
            Some(text) => text.clone().unwrap_or_default(),
            None => String::from_utf8_lossy(&document(self.before, doc)).into_owned(),
        }
    }

    /// The difference of an iteration that this version would not run.
    fn not_planned(&self, why: String) -> DifferingText {
        let subject = self.commit.message.lines().next().unwrap_or_default();
        DifferingText { what: "plan", recorded: subject.to_owned(), now: why }
    }
}

fn document(files: &Files, doc: Doc) -> Vec<u8> {
    files.get(doc.path().as_bytes()).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit_message::{MessageParts, Trailer};
    use crate::model::object_id::TreeId;
    use crate::runs::start::{self, DocSet, DocumentSources, StartOptions, compose};
    use crate::step::{ChangeScope, FileChanges, GuardExit, GuardPlace, LeftFile, SessionExit, Usage};

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
            let sources = DocumentSources { work: &nothing, head: &nothing, tip: None, on_branch: false };
            let composed =
                compose(&run_id(), b"# Ship it\n", sources, &BTreeMap::new(), &StartOptions::default())
                    .unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            let docs: Vec<_> = composed.docs.into_iter().map(|(doc, bytes)| (doc, text(bytes))).collect();
            let base =
                BTreeMap::from([(".runner/prompts/README".to_owned(), "deleted by the start".to_owned())]);
            let recording =
                Recording { schema: SCHEMA.to_owned(), run_id: run_id(), base, commits: Vec::new() };
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
            let Ok(NextStep::Work(job)) = plan(&snapshot) else { panic!("nothing to do") };
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
            let docs = [
                (Doc::Tree, text(transition.tree.bytes())),
                (Doc::RunState, text(&transition.state.to_bytes())),
            ];
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
            Err("its format is `runner.recording/2`, but this version only reads `runner.recording/1`"
                .to_owned())
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
            let difference =
                FirstDifference { iter: Some(IterationNumber::FIRST), what, line, recorded, now };
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
}
