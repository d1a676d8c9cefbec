//! Recorded runs through today's rules: the same results of agent and guard must give the same prompts, trees, states and
//! messages, byte for byte.
//!
//! Unlike an [audit](crate::verify), which takes what commits record, a replay has what really came back from every session,
//! so that judging, merging and bounding are made again too. A recording is one JSON document and needs no repository.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::document::canonical_json;
use crate::id::{Iteration, RunId};
use crate::layout::Doc;
use crate::run_state::RunState;
use crate::step::{Attempt, Plan, Verdict, interpret, plan, settle};
use crate::tree::Tree;
use crate::verify::{Files, Kind, kind, snapshot};

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
    pub commits: Vec<Recorded>,
}

/// One commit of a recorded run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its message.
    pub message: String,
    /// The files that steps read and that it changed; null for one that is gone.
    pub files: BTreeMap<String, Option<String>>,
    /// What came back, if it is an iteration.
    pub session: Option<Session>,
}

/// What came back from agent and guard, and what the agent was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The prompt.
    pub prompt: String,
    /// What the agent left.
    pub attempt: Attempt,
    /// What the guard said.
    pub verdict: Verdict,
}

/// What a replay came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// How many iterations were the same.
    pub iterations: usize,
    /// Iterations whose sessions were not recorded.
    pub skipped: Vec<Iteration>,
    /// Where it went another way.
    pub difference: Option<Difference>,
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The iteration.
    pub iter: Option<Iteration>,
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
pub fn replay(recording: &Recording) -> Replayed {
    let mut files: Files =
        recording.base.iter().map(|(path, text)| (path.clone().into(), text.clone().into())).collect();
    let mut replayed = Replayed { iterations: 0, skipped: Vec::new(), difference: None };
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
                let again = Again { recording, before: &before, after: &files, commit, session };
                if let Some((what, recorded, now)) = again.difference(own_commits) {
                    replayed.difference = Some(first_line(iter, what, &recorded, &now));
                    return replayed;
                }
                replayed.iterations += 1;
            }
            (None, Some(iter)) => replayed.skipped.push(iter),
            (None, None) => {}
        }
        own_commits = if matches!(kind, Kind::Own { .. }) { own_commits + 1 } else { 0 };
    }
    replayed
}

/// One iteration, made again.
struct Again<'r> {
    recording: &'r Recording,
    before: &'r Files,
    after: &'r Files,
    commit: &'r Recorded,
    session: &'r Session,
}

impl Again<'_> {
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
        let run = &self.recording.run_id;
        let Some(snapshot) = snapshot(self.before, run, (&tree, &state, &config), own_commits) else {
            return said("plan", "the goal before it cannot be read".to_owned());
        };
        let job = match plan(&snapshot) {
            Ok(Plan::Work(job)) => job,
            Ok(Plan::Stop(stop)) => return said("plan", format!("no iteration: {}", stop.as_str())),
            Err(fault) => return said("plan", fault.to_string()),
        };
        let claim = interpret(&snapshot, &job, self.session.attempt.clone());
        let transition = settle(&snapshot, &job, &claim, &self.session.verdict);
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

fn first_line(iter: Option<Iteration>, what: &'static str, recorded: &str, now: &str) -> Difference {
    let same = recorded.lines().zip(now.lines()).take_while(|(one, other)| one == other).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(the end)").to_owned();
    Difference { iter, what, line: same + 1, recorded: line(recorded), now: line(now) }
}
