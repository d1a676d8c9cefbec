//! meta.json: the record of one iteration. The host adds times, commits and the agent's identity to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::annotations::Annotation;
use super::attempt::{ChangeScope, GuardExit, SessionExit, Usage};
use super::file_notice::FileNotice;
use super::guard_place::RoomLevel;
use super::merge::PlanEdit;
use super::outcome::{NextAction, Outcome};
use super::plan::{Ordinal, SessionMode};
use super::restore_report::RestoreReport;
use super::review::ReviewEvidence;
use super::settle::{AttemptCharge, Settling};
use crate::agents::SessionIdentity;
use crate::model::agent_output::AgentStatus;
use crate::model::checks::CheckRecord;
use crate::model::cost::{RunSpending, SessionCost};
use crate::model::digest::Sha256;
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::review::{RecordedReview, ReviewResult};
use crate::model::run_state::{GuardResult, RunState, SEMANTICS};
use crate::model::tools::Tools;
use crate::model::tree::Tree;
use crate::prompt::SectionCut;

/// What was decided in an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IterationMeta {
    pub run_id: RunId,
    pub iter: IterationNumber,
    pub session: SessionMode,
    /// The selected node; null in a repair.
    pub node: Option<NodeId>,
    /// The ids from the root to the node: `root/api/login`.
    pub path: String,
    pub attempt: Ordinal,
    pub agent: String,
    /// The agent's rung on the ladder.
    pub rung: Ordinal,
    /// The tools that the agent was allowed to use.
    pub tools: Tools,
    /// `execute` when anything outside `.runner/` changed, else `decompose`.
    pub mode: ChangeScope,
    pub outcome: Outcome,
    /// The status in the commit's subject.
    pub status: AgentStatus,
    /// The guard's result in the commit's subject.
    pub guard: GuardResult,
    /// How the guard exited; null if it did not run to its end.
    pub guard_exit: Option<GuardExit>,
    /// What is on record about the checks of the task, if any of them ran.
    #[serde(default)]
    pub checks: Vec<CheckRecord>,
    /// The review, if there was one.
    #[serde(default)]
    pub review: Option<RecordedReview>,
    /// Where the guard ran: `in-place`, or `bubblewrap` with its ignored files; null if it did not run to its end.
    #[serde(default)]
    pub room: Option<RoomLevel>,
    pub charge: AttemptCharge,
    /// How the session ended.
    pub exit: SessionExit,
    /// What was wrong with the session: violated rules, errors in tree.json, the cause of a failure, what a reviewer found.
    pub findings: Vec<String>,
    /// Every accepted edit of the plan.
    pub plan_edits: Vec<PlanEdit>,
    pub annotations: Vec<Annotation>,
    pub prompt_sha256: Sha256,
    pub prompt_bytes: usize,
    /// What was cut from the prompt to fit the budget.
    pub prompt_cuts: Vec<SectionCut>,
    pub tree_before_sha256: Sha256,
    pub tree_after_sha256: Sha256,
    /// What the session used, as the agent reported it.
    pub usage: Usage,
    /// What that cost, and who computed it.
    pub cost: SessionCost,
    /// What the run has used so far.
    pub spent: RunSpending,
    /// How many processes the session left behind.
    pub processes_left: u32,
    pub next: NextAction,
    pub semantics: u32,
}

/// meta.json: what was decided, with the times, commits and programs that the host adds. Keys that only a newer runner
/// knows are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedIteration {
    #[serde(flatten)]
    pub meta: IterationMeta,
    /// When the iteration began and ended, in milliseconds since 1970.
    pub started_ms: u64,
    pub ended_ms: u64,
    /// How long the agent ran.
    pub agent_ms: Option<u64>,
    /// How long the guard ran.
    pub guard_ms: Option<u64>,
    pub commit_before: String,
    pub commit_after: String,
    /// The kind of the executor.
    pub executor: String,
    /// Session id, model and version, as the agent reported them.
    pub identity: SessionIdentity,
    /// The requests of the session, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RecordedRequests>,
    /// What confined the agent: `bubblewrap`, its `own` sandbox, or `none`.
    #[serde(default)]
    pub sandbox: String,
    /// What the session had changed in `.git`.
    #[serde(default)]
    pub restored: RestoreReport,
    /// Files that are not committed as the session left them.
    #[serde(default)]
    pub file_notices: Vec<FileNotice>,
    /// Logs that could not be written, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs_dropped: Vec<String>,
}

/// The requests that a session sent to its provider, as the recorder in between saw them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RecordedRequests {
    pub count: u64,
    /// The hash of all requests: of a line with method, path and the body's hash for each, in the order of their arrival.
    pub sha256: Sha256,
    /// How the requests compare with those of the recording whose answers the session got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayedRequests>,
}

/// How the requests of a session compare with those of a recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ReplayedRequests {
    /// Requests with the same hash.
    pub same: u64,
    /// Requests that differ, for example in an id or a time, and got the answer of the one in their place.
    pub similar: u64,
    /// Requests that the recording has no answer for.
    pub missing: u64,
}

impl RecordedIteration {
    /// The record of what was decided, without anything that the host adds.
    pub fn new(meta: IterationMeta) -> Self {
        Self {
            meta,
            started_ms: 0,
            ended_ms: 0,
            agent_ms: None,
            guard_ms: None,
            commit_before: String::new(),
            commit_after: String::new(),
            executor: String::new(),
            identity: SessionIdentity::default(),
            requests: None,
            sandbox: String::new(),
            restored: RestoreReport::default(),
            file_notices: Vec::new(),
            logs_dropped: Vec::new(),
        }
    }

    /// Parses meta.json; `None` for one that cannot be read, such as one of a newer runner.
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

impl Settling<'_> {
    /// What was wrong with the session, and what its reviewer found.
    fn findings(&self) -> Vec<String> {
        let what = match &self.evidence.review {
            ReviewEvidence::Ended { result: ReviewResult::Refused, .. } => "review refused",
            ReviewEvidence::Ended { result: ReviewResult::Failed, .. } => "review failed",
            ReviewEvidence::Ended { result: ReviewResult::Accepted, .. } | ReviewEvidence::Skipped => {
                return self.claim.notes.lines();
            }
        };
        let review = self.recorded_review().into_iter().flat_map(|review| review.reasons);
        let review = review.map(|reason| format!("{what}: {reason}"));
        self.claim.notes.lines().into_iter().chain(review).collect()
    }

    pub(super) fn meta(
        &self,
        tree: &Tree,
        state: &RunState,
        annotations: Vec<Annotation>,
        next: NextAction,
    ) -> IterationMeta {
        let Self { job, claim, decision, .. } = self;
        IterationMeta {
            run_id: job.run_id.clone(),
            iter: job.iteration,
            session: job.target.mode(),
            node: job.target.node().cloned(),
            path: job.task.path.clone(),
            attempt: job.task.attempt,
            agent: job.agent.label(),
            rung: job.agent.rung,
            tools: job.permissions.tools.clone(),
            mode: claim.work,
            outcome: decision.outcome,
            status: decision.status,
            guard: decision.guard,
            guard_exit: decision.guard_exit,
            room: self.evidence.place().map(|place| place.room),
            checks: self.evidence.checks.records(job.task.checks.as_ref()),
            review: state.review.last.clone(),
            charge: decision.charge(),
            exit: claim.exit.clone(),
            findings: self.findings(),
            plan_edits: decision.edits.to_vec(),
            annotations,
            prompt_sha256: job.prompt.sha256,
            prompt_bytes: job.prompt.text.len(),
            prompt_cuts: job.prompt.cuts.clone(),
            tree_before_sha256: self.snapshot.tree.sha256(),
            tree_after_sha256: tree.sha256(),
            usage: claim.usage,
            cost: self.cost(),
            spent: state.spent,
            processes_left: claim.processes_left,
            next,
            semantics: SEMANTICS,
        }
    }
}
