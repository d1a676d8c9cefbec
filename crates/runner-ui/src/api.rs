//! What the server says, as types. The page's own types are made from these, and a test holds the two together.
//!
//! Words that a newer runner may add to (outcomes, states of a guard) are texts here: the page shows a word it does
//! not know as it stands.

mod detail;
mod eval;
mod export;

use runner_core::step::Outcome;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use detail::{
    DiffFile, DiffKind, DiffLine, DiffPatch, DiffView, ErrorBody, ErrorResponse, LogHit, LogHits, LogPage,
    SearchResults, TreeChange, VerifyResult,
};
pub use eval::{
    EvalCheck, EvalComparison, EvalCounts, EvalDifference, EvalGrid, EvalInterval, EvalMissing, EvalPair,
    EvalPairs, EvalRun, EvalScore, EvalTrial, EvalView,
};
pub use export::{IterationExport, LogExport, RunExport};

/// Everything that the first screen needs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageSnapshot {
    /// This server.
    pub server: ServerView,
    /// The run that is looked at; none where there is none.
    pub run: Option<RunHead>,
    /// How it stands, in a word.
    pub state: StateWord,
    /// The same in a sentence.
    pub headline: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Why it does not go on, and what to type; none while it does.
    pub stop: Option<StopView>,
    /// How far it is.
    pub progress: RunProgress,
    /// The iteration under way.
    pub current: Option<CurrentIteration>,
    /// What was found wrong with the files themselves.
    pub problems: Vec<String>,
}

/// The server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerView {
    /// Its version.
    pub version: String,
    /// Which page it was built with: a tab of another one offers to reload.
    pub build: String,
    /// Its clock.
    pub now_ms: u64,
    /// How it learns of changes.
    pub watching: WatchMethod,
    /// The repository's folder, by its last name.
    pub project: String,
    /// What it is about.
    pub shows: ServerSubject,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerSubject {
    /// The runs of a repository.
    Repository,
    /// What a run left, without its repository: there are no commits to compare.
    Record,
    /// The results of an evaluation.
    Evaluation,
}

/// How changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchMethod {
    /// The system tells.
    Events,
    /// The system cannot tell, so files are looked at every two seconds.
    Polling,
}

/// A run, by name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunHead {
    pub id: String,
    /// Its branch, as git calls it here.
    pub branch: String,
    /// The commit the branch is at.
    pub commit: Option<String>,
    /// The goal's heading.
    pub goal: String,
    /// Whether it is the one in the work tree, and so may be live.
    pub is_here: bool,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateWord {
    /// There is no run.
    Empty,
    /// The files cannot be read.
    Invalid,
    /// An agent is at work.
    Running,
    /// The guard is.
    Guarding,
    /// The result is being written.
    Committing,
    /// The next iteration comes after a wait.
    Waiting,
    /// The user has paused it, between two iterations.
    Paused,
    /// Everything passes.
    Complete,
    /// A leaf has no attempts left.
    Stuck,
    /// A limit stopped it.
    Limit,
    /// Failures stopped it.
    Failed,
    /// Someone stopped it.
    Interrupted,
    /// The runner is gone, and what it did is unfinished.
    Died,
    /// Nothing keeps it from going on.
    Idle,
}

/// Why a run does not go on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StopView {
    /// What keeps it, in sentences.
    pub why: Vec<String>,
    /// The iterations that show it, newest first.
    pub iterations: Vec<u32>,
    /// The most telling line of a log.
    pub evidence: Option<LogLine>,
    /// What to type.
    pub next: Vec<NextCommand>,
}

/// A line of a log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LogLine {
    pub iter: u32,
    /// `guard` or `agent`.
    pub log: String,
    /// From 0.
    pub line: u64,
    pub text: String,
}

/// Something to do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NextCommand {
    /// In words.
    pub what: String,
    /// What to type; none where it takes an editor.
    pub command: Option<String>,
}

/// How far a run is.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RunProgress {
    pub leaves_total: usize,
    pub leaves_passed: usize,
    pub iterations: u32,
    pub iterations_max: Option<u32>,
    pub started_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    /// Time in sessions and guards, without what lies between iterations.
    pub busy_ms: u64,
    pub agent_ms: u64,
    pub guard_ms: u64,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cost_microdollars: Option<u64>,
    pub tokens_max: Option<u64>,
    pub cost_microdollars_max: Option<u64>,
}

/// The iteration under way.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrentIteration {
    pub iter: u32,
    pub node: Option<String>,
    pub path: String,
    pub title: String,
    pub attempt: Option<AttemptOrdinal>,
    /// The name of the newest event.
    pub phase: String,
    pub phase_since_ms: Option<u64>,
    pub started_ms: Option<u64>,
    pub timeout_ms: Option<u64>,
}

/// Which try, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttemptOrdinal {
    pub nth: u32,
    pub of: u32,
}

/// The iterations of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IterationList {
    pub run: Option<String>,
    pub iterations: Vec<IterationRow>,
}

/// One iteration, as lists show it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct IterationRow {
    pub iter: u32,
    pub node: Option<String>,
    pub path: String,
    /// What the session was for: `leaf`, `repair`, `replan`.
    pub session: Option<String>,
    pub attempt: Option<AttemptOrdinal>,
    /// How it ended; none while it is under way.
    pub outcome: Option<String>,
    pub status: Option<String>,
    pub guard: Option<String>,
    /// `code 1`, `signal 9`.
    pub guard_exit: Option<String>,
    /// Whether it cost an attempt.
    pub is_charged: bool,
    pub summary: String,
    pub findings: Vec<String>,
    /// What should be seen, in words.
    pub marks: Vec<String>,
    pub started_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub agent_ms: Option<u64>,
    pub guard_ms: Option<u64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cost_microdollars: Option<u64>,
    pub executor: Option<String>,
    pub model: Option<String>,
    pub commit: Option<String>,
    pub commit_before: Option<String>,
    /// Whether its folder is here; a clone has the commits alone.
    pub has_logs: bool,
}

/// One iteration whole.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IterationDetail {
    pub run: String,
    pub row: IterationRow,
    /// meta.json as it stands.
    pub meta: Option<Value>,
    /// output.json as it stands.
    pub output: Option<Value>,
    /// The files of its folder, with their sizes.
    pub files: Vec<FileSize>,
    /// The iterations around it.
    pub previous: Option<u32>,
    pub next: Option<u32>,
}

/// A file of an iteration's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileSize {
    pub name: String,
    pub bytes: u64,
}

/// A tree in columns: one entry per node in each, in the order in which it is drawn.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TreeColumns {
    pub run: Option<String>,
    /// Changes whenever the tree does.
    pub revision: String,
    pub id: Vec<String>,
    pub title: Vec<String>,
    /// The place of the parent in the columns; -1 for the root.
    pub parent: Vec<i64>,
    pub depth: Vec<u32>,
    /// 1 passes, 2 is a leaf, 4 has no attempts left.
    pub flags: Vec<u32>,
    pub attempts: Vec<u32>,
    pub max_attempts: Vec<u32>,
    /// Leaves at or below the node, and those that pass.
    pub leaves: Vec<u32>,
    pub passed: Vec<u32>,
    /// The leaf that comes next.
    pub selected: Option<String>,
}

/// One node.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeDetail {
    pub run: Option<String>,
    pub id: String,
    pub title: String,
    pub goal: String,
    pub acceptance: Vec<String>,
    pub passes: bool,
    pub is_leaf: bool,
    pub is_next: bool,
    pub attempts: u32,
    pub max_attempts: u32,
    pub leaves_total: usize,
    pub leaves_passed: usize,
    /// From the root to the node itself.
    pub path: Vec<NodeName>,
    pub children: Vec<NodeName>,
    /// The iterations on it, oldest first.
    pub iterations: Vec<u32>,
    /// What the next session on it is told.
    pub lesson: Option<NodeHistoryView>,
}

/// A node, by name.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeName {
    pub id: String,
    pub title: String,
    pub passes: bool,
}

/// What a session left for the next one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeHistoryView {
    pub iter: u32,
    pub outcome: String,
    pub summary: String,
    pub notes: Vec<String>,
    pub guard_output: Option<String>,
}

/// The runs of a repository.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunList {
    pub runs: Vec<RunRow>,
}

/// One run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunRow {
    pub head: RunHead,
    pub state: StateWord,
    pub headline: String,
    pub progress: RunProgress,
    /// When its branch moved last.
    pub moved_ms: Option<u64>,
}

/// Something that changed, as `/events` tells it. The name of the event is the variant's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ChangeEvent {
    /// The stream begins.
    Hello { build: String },
    /// The tree is another.
    TreeChanged { revision: String },
    /// run_state.json is another.
    RunStateChanged {},
    /// An iteration began.
    IterationAdded { run: String, iter: u32 },
    /// Files of an iteration grew or appeared.
    IterationChanged { run: String, iter: u32, files: Vec<FileSize> },
    /// A runner took up or left its work, or its branches, its goal or its configuration moved.
    RunChanged {},
    /// Something of the above happened in a trial of an evaluation that is looked at.
    TrialChanged { case: String, id: String, is_latest: bool, change: Box<Self> },
    /// Results appeared or went, or trials were begun.
    ResultsChanged {},
    /// Events were missed: read everything again.
    Resync {},
}

/// Every type above, for the generator.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct ApiTypes {
    snapshot: PageSnapshot,
    iterations: IterationList,
    iteration: IterationDetail,
    slim_tree: TreeColumns,
    node: NodeDetail,
    runs: RunList,
    log_page: LogPage,
    log_hits: LogHits,
    diff: DiffView,
    diff_patch: DiffPatch,
    found: SearchResults,
    verdict: VerifyResult,
    fault: ErrorResponse,
    change: ChangeEvent,
    whole: RunExport,
    eval: EvalView,
    comparison: EvalComparison,
}

/// The words for how an iteration can end.
pub fn outcome_words() -> Vec<&'static str> {
    Outcome::ALL.into_iter().map(Outcome::as_str).collect()
}
