//! What meta.json says of an iteration, but for the times, which the host adds.

use serde::{Deserialize, Serialize};

use super::annotations::Annotation;
use super::attempt::{ChangeScope, GuardExit, SessionExit, Usage};
use super::interpret::Claim;
use super::merge::PlanEdit;
use super::next_state::{cost, findings};
use super::outcome::{NextAction, Outcome};
use super::plan::{Job, Ordinal, SessionMode};
use super::settle::{AttemptCharge, Decision};
use super::snapshot::Snapshot;
use crate::agents::SessionIdentity;
use crate::model::agent_output::AgentStatus;
use crate::model::cost::{RunSpending, SessionCost};
use crate::model::digest::Sha256;
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::run_state::{GuardResult, SEMANTICS};
use crate::model::tools::Tools;
use crate::prompt::SectionCut;

/// One iteration's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationMeta {
    /// The run.
    pub run_id: RunId,
    /// The iteration.
    pub iter: IterationNumber,
    /// What the session was for.
    pub session: SessionMode,
    /// The selected node; null in a repair.
    pub node: Option<NodeId>,
    /// The ids on the way to it.
    pub path: String,
    /// Which try it was.
    pub attempt: Ordinal,
    /// The agent that was asked, by its name.
    pub agent: String,
    /// Its rung on the ladder.
    pub rung: Ordinal,
    /// What it might use.
    pub tools: Tools,
    /// `execute` when anything outside `.runner/` changed, else `decompose`.
    pub mode: ChangeScope,
    /// How it ended.
    pub outcome: Outcome,
    /// The status in the commit's subject.
    pub status: AgentStatus,
    /// The guard's result in the commit's subject.
    pub guard: GuardResult,
    /// How the guard's process ended; null where it did not run to its end.
    pub guard_exit: Option<GuardExit>,
    /// Whether it cost an attempt.
    pub charge: AttemptCharge,
    /// How the session ended.
    pub exit: SessionExit,
    /// What was found against the session: broken rules, faults of the tree, the cause of a failure.
    pub findings: Vec<String>,
    /// Every accepted edit of the plan.
    pub plan_edits: Vec<PlanEdit>,
    /// What should be seen.
    pub annotations: Vec<Annotation>,
    /// The prompt's fingerprint.
    pub prompt_sha256: Sha256,
    /// The prompt's size.
    pub prompt_bytes: usize,
    /// What was cut from it.
    pub prompt_cuts: Vec<SectionCut>,
    /// The tree before, by fingerprint.
    pub tree_before_sha256: Sha256,
    /// The tree after, by fingerprint.
    pub tree_after_sha256: Sha256,
    /// What the session used, as the agent said it.
    pub usage: Usage,
    /// What that cost, and where that is known from.
    pub cost: SessionCost,
    /// What the run has cost so far.
    pub spent: RunSpending,
    /// How many processes it left behind.
    pub processes_left: u32,
    /// What follows.
    pub next: NextAction,
    /// The version of the rules.
    pub semantics: u32,
}

/// meta.json: what was decided, with the times, commits and programs that the host adds. Keys that only a newer runner
/// knows are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl RecordedIteration {
    /// Parses meta.json; `None` for one that cannot be read, such as one of a newer runner.
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

impl IterationMeta {
    pub(super) fn new(
        snapshot: &Snapshot,
        job: &Job,
        claim: &Claim,
        ruling: &Decision<'_>,
        (marks, tree_after_sha256, next, spent): (Vec<Annotation>, Sha256, NextAction, RunSpending),
    ) -> Self {
        Self {
            run_id: job.run_id.clone(),
            iter: job.iteration,
            session: job.target.mode(),
            node: job.target.node().cloned(),
            path: job.path.clone(),
            attempt: job.attempt,
            agent: job.agent.clone(),
            rung: job.rung,
            tools: job.tools.clone(),
            mode: claim.work,
            outcome: ruling.outcome,
            status: ruling.status,
            guard: ruling.guard,
            guard_exit: ruling.guard_exit,
            charge: ruling.charge(),
            exit: claim.exit.clone(),
            findings: findings(claim),
            plan_edits: ruling.edits.to_vec(),
            annotations: marks,
            prompt_sha256: job.prompt.sha256,
            prompt_bytes: job.prompt.text.len(),
            prompt_cuts: job.prompt.cuts.clone(),
            tree_before_sha256: snapshot.tree.sha256(),
            tree_after_sha256,
            usage: claim.usage,
            cost: cost(snapshot, job, claim),
            spent,
            processes_left: claim.processes_left,
            next,
            semantics: SEMANTICS,
        }
    }
}
