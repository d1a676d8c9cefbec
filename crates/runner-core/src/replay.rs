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
    Attempt, CheckEvidence, Evidence, GuardRun, NextStep, ReviewEvidence, interpret, plan, session_request,
    settle,
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
        let kind = CommitKind::parse(self.commit.message.as_bytes());
        let job = match plan(&snapshot, session_request(&kind)) {
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
mod tests;
