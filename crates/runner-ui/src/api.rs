//! The documents that the server sends, as types. `ui/src/lib/types.ts` is generated from them.
//!
//! Outcomes and results of the guard are texts, because a newer runner may add some: the page shows a word that it does
//! not know as it is.

pub mod addresses;
mod checks;
mod detail;
mod eval;
mod evidence;
mod export;
mod text_column;

use runner_core::checks::coverage::{Coverage, PointState};
use runner_core::labels::NodeState;
use runner_core::run_status::{LifecycleState, RunStatus};
use runner_core::step::{CostSource, StopReason};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use checks::{CheckResultView, CheckStateName, TaskCheckView};
pub use detail::{
    DiffFile, DiffKind, DiffLine, DiffPatch, DiffView, ErrorBody, ErrorResponse, FileHistory, FileTouch,
    LogGroup, LogGroups, LogHit, LogHits, LogPage, NetChange, RunFiles, SearchResults, TreeChange,
    VerifyFinding, VerifyResult, VerifyVerdict,
};
pub use eval::{
    EvalCheck, EvalComparison, EvalCounts, EvalDifference, EvalDirection, EvalGrid, EvalInterval,
    EvalMissing, EvalPair, EvalPairs, EvalRun, EvalScore, EvalTrial, EvalView,
};
pub use evidence::{AttemptEvidence, FailureExcerpt, LogLine, QuestionView, StopEvidence};
pub use export::{IterationExport, LogExport, RunExport, VerifyExport};
pub use text_column::TextColumn;

/// Everything that the first screen needs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PageSnapshot {
    pub server: ServerView,
    /// The run that is shown; null where there is none.
    pub run: Option<RunHead>,
    #[serde(flatten)]
    pub status: RunStatus,
    /// What shows why the run stopped; null while it has not.
    pub evidence: Option<StopEvidence>,
    /// The result of verifying the run at its newest commit; null while that is not known.
    pub trust: Option<VerifyResult>,
    /// What agents asked, oldest first.
    pub questions: Vec<QuestionView>,
    pub progress: RunProgress,
    /// How much of the tasks' acceptance is proven; null where no task has acceptance criteria.
    pub coverage: Option<Coverage>,
    /// The iteration in progress.
    pub current: Option<CurrentIteration>,
    /// Problems of the run's files.
    pub problems: Vec<String>,
}

/// A part of the first screen. `/api/overview` sends one on each line, each with one of these.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct OverviewPart {
    /// Always the first part.
    pub snapshot: Option<PageSnapshot>,
    pub iterations: Option<IterationList>,
    pub tree: Option<TreeColumns>,
    /// The task that the page shows first.
    pub task: Option<NodeDetail>,
    /// Only if they are known without asking git.
    pub files: Option<RunFiles>,
}

/// The server and what it shows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerView {
    pub version: String,
    /// The build of the page: a tab with another one offers to reload.
    pub build: String,
    /// The server's clock, in milliseconds since 1970.
    pub now_ms: u64,
    pub watching: WatchMethod,
    /// The newest event of `/events` before this was read: `/events?since=` continues from there. Empty in an export.
    pub event_id: String,
    /// The name of the repository's folder.
    pub project: String,
    pub shows: ServerSubject,
}

/// What a server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerSubject {
    /// The runs of a repository.
    Repository,
    /// The files that a run left, without its repository: there are no commits to compare.
    Record,
    /// The results of an evaluation.
    Evaluation,
}

/// How the server notices changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchMethod {
    /// The system reports them.
    Events,
    /// The server checks the files every two seconds.
    Polling,
}

/// A run and its branch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunHead {
    pub id: String,
    /// As git names it here: `runner/x`, or `origin/runner/x` in a clone.
    pub branch: String,
    /// The commit that the branch points to.
    pub commit: Option<String>,
    /// The heading of GOAL.md.
    pub goal: String,
    /// Whether it is checked out here, so that a runner may be working on it.
    pub is_here: bool,
}

/// How far a run is, and what it used. Tokens and cost are those of run_state.json, as `runner status` shows them. What is
/// not known is null.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RunProgress {
    pub leaves_total: usize,
    pub leaves_passed: usize,
    pub iterations: u32,
    pub iterations_max: Option<u32>,
    pub started_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    /// Time in iterations, without the time between them.
    pub busy_ms: Option<u64>,
    pub failed_attempts: u32,
    pub tokens: Option<u64>,
    pub tokens_max: Option<u64>,
    pub cost_microdollars: Option<u64>,
    pub cost_microdollars_max: Option<u64>,
    /// The least certain source of the cost.
    pub cost_source: CostSource,
    /// How many sessions have an unknown cost.
    pub sessions_without_cost: u64,
}

/// The iteration in progress.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CurrentIteration {
    pub iter: u32,
    pub node: Option<String>,
    pub path: String,
    pub title: String,
    pub attempt: Option<AttemptOrdinal>,
    pub started_ms: Option<u64>,
    pub timeout_ms: Option<u64>,
}

/// Attempt `nth` of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AttemptOrdinal {
    pub nth: u32,
    pub of: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct IterationList {
    pub run: Option<String>,
    pub iterations: Vec<IterationRow>,
}

/// One iteration, as lists show it. What is not known is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IterationRow {
    pub iter: u32,
    pub node: Option<String>,
    pub path: String,
    /// What the session was for: `leaf`, `repair`, `replan`.
    pub session: Option<String>,
    pub attempt: Option<AttemptOrdinal>,
    /// Null while the iteration is in progress.
    pub outcome: Option<String>,
    pub status: Option<String>,
    pub guard: Option<String>,
    /// `exit 1`, `signal 9`; null if the guard gave no result.
    pub guard_exit: Option<String>,
    /// The review in one line: `refused 1/2 by claude: no test`.
    pub review: Option<String>,
    /// Where the guard ran: `in-place`, or `bubblewrap` with its ignored files; null if it did not run to its end.
    pub room: Option<String>,
    /// The checks that ran.
    pub checks: Vec<CheckResultView>,
    /// Whether it used an attempt.
    pub is_charged: bool,
    pub summary: String,
    pub findings: Vec<String>,
    /// As sentences.
    pub annotations: Vec<String>,
    pub started_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub agent_ms: Option<u64>,
    pub guard_ms: Option<u64>,
    pub input_tokens: Option<u64>,
    /// The part of the input tokens that a cache answered.
    pub cached_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cost_microdollars: Option<u64>,
    pub cost_source: CostSource,
    pub executor: Option<String>,
    pub model: Option<String>,
    pub commit: Option<String>,
    pub commit_before: Option<String>,
    /// Whether its log folder exists here; a clone only has the commits.
    pub has_logs: bool,
}

/// One iteration with its files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct IterationDetail {
    pub run: String,
    pub row: IterationRow,
    /// meta.json, unchanged.
    pub meta: Option<Value>,
    /// output.json, unchanged.
    pub output: Option<Value>,
    pub files: Vec<FileSize>,
    /// Whether the policy of `[logs]` removed logs of it.
    pub logs_removed: bool,
    /// The iteration before it.
    pub previous: Option<u32>,
    /// The iteration after it.
    pub next: Option<u32>,
}

/// A file of an iteration's log folder.
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
    #[schemars(with = "Vec<String>")]
    pub id: TextColumn,
    #[schemars(with = "Vec<String>")]
    pub title: TextColumn,
    /// The index of the parent; -1 for the root.
    pub parent: Vec<i64>,
    pub depth: Vec<u32>,
    /// 1: passes, 2: is a leaf, 4: has no attempts left.
    pub flags: Vec<u32>,
    /// The state to show; a node that a session works on is `running` instead, unless it passed.
    pub state: Vec<NodeState>,
    pub attempts: Vec<u32>,
    pub max_attempts: Vec<u32>,
    /// The leaves at or below the node.
    pub leaves: Vec<u32>,
    /// Those of them that pass.
    pub passed: Vec<u32>,
    pub selected: Option<String>,
}

/// One node with its history.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeDetail {
    pub run: Option<String>,
    pub id: String,
    pub title: String,
    pub goal: String,
    pub acceptance: Vec<String>,
    /// How each acceptance criterion of a leaf is decided.
    pub points: Vec<PointState>,
    pub checks: Vec<TaskCheckView>,
    pub passes: bool,
    pub is_leaf: bool,
    pub state: NodeState,
    pub attempts: u32,
    pub max_attempts: u32,
    pub leaves_total: usize,
    pub leaves_passed: usize,
    /// From the root to the node itself.
    pub path: Vec<NodeName>,
    pub children: Vec<NodeName>,
    /// The iterations on it, oldest first.
    pub iterations: Vec<u32>,
    /// The newest iteration on it that did not pass.
    pub last_failure: Option<u32>,
    /// What the next session on it reads about the last one that answered.
    pub history: Option<NodeHistoryView>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeName {
    pub id: String,
    pub title: String,
    pub passes: bool,
}

/// What a session left for the next one on the same node.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeHistoryView {
    pub iter: u32,
    pub outcome: String,
    pub summary: String,
    pub notes: Vec<String>,
    pub guard_output: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RunList {
    pub runs: Vec<RunRow>,
}

/// One run of a repository.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunRow {
    pub head: RunHead,
    pub state: LifecycleState,
    pub stop: Option<StopReason>,
    pub headline: String,
    /// What verifying the run at its newest commit gave; null while that is not known.
    pub trust: Option<VerifyVerdict>,
    pub progress: RunProgress,
    /// The time of the branch's last commit.
    pub moved_ms: Option<u64>,
}

/// A change, as `/events` sends it; the variant is the name of the event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ChangeEvent {
    /// The first event of a stream.
    Hello {
        build: String,
    },
    TreeChanged {
        revision: String,
    },
    RunStateChanged {},
    IterationAdded {
        run: String,
        iter: u32,
    },
    /// Files of an iteration appeared or grew.
    IterationChanged {
        run: String,
        iter: u32,
        files: Vec<FileSize>,
    },
    /// A runner started or ended, or branches, GOAL.md or config.toml changed.
    RunChanged {},
    /// One of the above, in a trial of the evaluation.
    TrialChanged {
        case: String,
        id: String,
        is_latest: bool,
        change: Box<Self>,
    },
    /// Results appeared or were removed, or a trial began.
    ResultsChanged {},
    /// Events were lost: reload everything.
    Resync {},
}

/// Every document, for the generator of the page's types.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub struct ApiTypes {
    snapshot: PageSnapshot,
    overview: OverviewPart,
    iterations: IterationList,
    iteration: IterationDetail,
    tree: TreeColumns,
    node: NodeDetail,
    runs: RunList,
    log_page: LogPage,
    log_groups: LogGroups,
    log_hits: LogHits,
    diff: DiffView,
    diff_patch: DiffPatch,
    search: SearchResults,
    files: RunFiles,
    verify: VerifyResult,
    error: ErrorResponse,
    change: ChangeEvent,
    export: RunExport,
    eval: EvalView,
    comparison: EvalComparison,
}
