//! `run_state.json`: what the next iteration must know besides the tree.
//!
//! It is committed, so that a restart, a fresh clone and a replay continue from the same bytes. Every text in it is bounded;
//! the full texts are in the iteration's folder. What [`verify`](crate::verify) derives again from it is stored in fields of
//! its own, never inside a sentence, so that sentences may change.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::guard_files::DerivedProtection;
use crate::layout::Doc;
use crate::model::agent_output::AgentStatus;
use crate::model::checks::TaskProof;
use crate::model::cost::{LeafSpending, RunSpending};
use crate::model::digest::Sha256;
use crate::model::environment::Environment;
use crate::model::heldout::HeldoutTask;
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::instructions::PinnedInstructions;
use crate::model::progress::Progress;
use crate::model::protection::Protection;
use crate::model::ratchet::Ratchet;
use crate::model::repo_path::RepoPath;
use crate::model::review::ReviewState;
use crate::step::{Outcome, OutcomeClass, RoomLevel, SessionMode, UsageLimit, Wait};
use crate::strict::{
    BoundedInt, DocumentProblem, FieldReader, canonical_json, decode_utf8, word, word_or_null,
};
use crate::text::one_line;

/// The guard's result in an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum GuardResult {
    Pass,
    Fail,
    Skipped,
}

impl GuardResult {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skipped => "skipped",
        }
    }
}

/// The version of the rules that decide iterations; every commit names it.
pub const SEMANTICS: u32 = 1;

/// The state of a run; progress itself is in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunState {
    /// The run this state belongs to; null before the first `runner start`.
    pub run_id: Option<RunId>,
    /// The number of the next iteration.
    pub next_iter: IterationNumber,
    /// The status that the last agent answered.
    pub last_status: Option<AgentStatus>,
    /// The last iteration in words: the agent's summary, or what was wrong with its answer, or why no answer came.
    pub last_summary: Option<String>,
    /// The guard's result in the last iteration.
    pub last_guard: Option<GuardResult>,
    /// The node that the last iteration worked on; null after a repair.
    pub last_node: Option<NodeId>,
    /// How the last iteration ended.
    pub last_outcome: Option<Outcome>,
    /// Failures in a row that a wait does not fix.
    #[schemars(range(min = 0, max = u32::MAX))]
    pub failures_in_row: u32,
    /// Transient failures in a row.
    #[schemars(range(min = 0, max = u32::MAX))]
    pub transients_in_row: u32,
    /// For each open node, its last session, for the prompt of the next one; the newest last.
    pub node_history: Vec<NodeHistory>,
    /// A rejected tree that the next session must repair.
    pub repair: Option<PendingRepair>,
    /// The nodes that had their one replan session.
    pub replanned: Vec<NodeId>,
    /// Guard files that agents created and that took part in a pass: protected from then on.
    pub pinned: Vec<RepoPath>,
    /// Whether the run makes progress.
    pub progress: Progress,
    /// The wait before the next session.
    pub wait: Option<Wait>,
    /// Agents that reached a usage limit, where `on_usage_limit` is "next".
    pub usage_limits: Vec<UsageLimit>,
    /// Tokens and money that the run has used.
    pub spent: RunSpending,
    /// Tokens and money that each open leaf has used, sorted by node id.
    pub spent_by_leaf: Vec<LeafSpending>,
    /// The guard's result on the untouched repository, if it was run there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<RecordedGuardRun>,
    /// The guard's result in a clean checkout after all tasks passed, if it was run there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_check: Option<RecordedGuardRun>,
    /// Where the guard last ran in an iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_room: Option<RoomLevel>,
    /// Why the guard could not be started in the last iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard_error: Option<String>,
    /// How the checks of tasks ended before the work on them began, sorted by node id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<TaskProof>,
    /// What is due and on record about checks of passed tasks that run again.
    #[serde(skip_serializing_if = "Ratchet::is_empty")]
    pub ratchet: Ratchet,
    /// The last review, and how often the reviewer refused open tasks.
    #[serde(skip_serializing_if = "ReviewState::is_empty")]
    pub review: ReviewState,
    /// What the run protects from its agents, since the last `runner start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// The digest of the plan that the user approved; null after a change of it that needs another approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_approval: Option<Sha256>,
    /// The repository's own instructions, as the last `runner start` found them; every prompt contains them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<PinnedInstructions>,
    /// The held-out checks that the last `runner start` found, sorted by node id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heldout: Vec<HeldoutTask>,
    /// The versions of tools and the lock files that the last `runner start` found.
    #[serde(skip_serializing_if = "Environment::is_empty")]
    pub environment: Environment,
    /// The version of the rules that wrote this.
    #[schemars(extend("const" = SEMANTICS))]
    pub semantics: u32,
}

/// The result of a guard run outside of an iteration: before the first session, or after the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedGuardRun {
    /// `skipped` if the guard gave no result.
    #[serde(deserialize_with = "word")]
    pub guard: GuardResult,
    /// How the guard exited: an exit code, `signal 9`, or `none`.
    pub exit: String,
    /// Where the guard ran; null if it gave no result.
    #[serde(deserialize_with = "Option::deserialize")]
    pub room: Option<RoomLevel>,
    /// What the guard printed, or why it gave no result; null if it succeeded.
    #[serde(deserialize_with = "Option::deserialize")]
    pub output: Option<String>,
    /// The first iteration after it.
    pub next_iter: IterationNumber,
}

/// The last session on a node, for the prompt of the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeHistory {
    pub node: NodeId,
    pub iter: IterationNumber,
    /// How the iteration ended.
    #[serde(deserialize_with = "word")]
    pub outcome: Outcome,
    pub summary: String,
    /// What was wrong with the session: violated rules, errors in tree.json.
    pub notes: Vec<String>,
    /// How many further notes are not kept.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub notes_omitted: u32,
    /// Protected files that the session changed, and memory files whose earlier text it changed: the runner restored them.
    pub restored: Vec<RepoPath>,
    /// How many further restored files are not kept.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub restored_omitted: u32,
    /// What the guard or the checks printed, if they failed, or what the reviewer refused.
    #[serde(deserialize_with = "Option::deserialize")]
    pub guard_output: Option<String>,
    /// How a later session on the node ended, if that one gave no answer.
    #[serde(deserialize_with = "word_or_null")]
    pub later_outcome: Option<Outcome>,
}

/// A rejected tree that waits for a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingRepair {
    /// The iteration that left it.
    pub iter: IterationNumber,
    /// The node that the session worked on.
    pub node: NodeId,
    #[serde(deserialize_with = "word")]
    pub mode: SessionMode,
    /// How many repairs failed.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub tries: u32,
    /// The beginning of the rejected tree.json.
    pub rejected: String,
    pub errors: Vec<String>,
    /// How many further errors are not kept.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub errors_omitted: u32,
}

/// A count, read as strictly as every whole number of the documents.
struct U32Count(u32);

impl U32Count {
    fn get(self) -> u32 {
        self.0
    }
}

impl<'de> Deserialize<'de> for U32Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = BoundedInt::<0, { u32::MAX as i64 }>::deserialize(deserializer)?;
        Ok(Self(u32::try_from(number.get()).unwrap_or(u32::MAX)))
    }
}

pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    U32Count::deserialize(deserializer).map(U32Count::get)
}

impl RunState {
    /// Whether the guard is still the one of the last start, as far as that is known.
    pub(crate) fn has_guard_of(&self, protection: &Protection) -> bool {
        self.protection.as_ref().is_some_and(|known| known.guard_sha256 == protection.guard_sha256)
    }

    /// The final check after the user committed `user_commits` times: it did not see those files.
    pub fn final_check_after(&self, user_commits: u32) -> Option<RecordedGuardRun> {
        self.final_check.clone().filter(|_| user_commits == 0)
    }

    /// The state with the checks followed that are newer than it.
    pub fn with_protection(mut self, derived: DerivedProtection) -> Self {
        self.protection = Some(derived.protection);
        self.pinned.extend(derived.pinned);
        self.pinned.sort();
        self.pinned.dedup();
        self
    }

    /// The state before a run's first iteration.
    pub fn new(run_id: Option<RunId>) -> Self {
        Self {
            run_id,
            next_iter: IterationNumber::FIRST,
            last_status: None,
            last_summary: None,
            last_guard: None,
            last_node: None,
            last_outcome: None,
            failures_in_row: 0,
            transients_in_row: 0,
            node_history: Vec::new(),
            repair: None,
            replanned: Vec::new(),
            pinned: Vec::new(),
            progress: Progress::default(),
            wait: None,
            usage_limits: Vec::new(),
            spent: RunSpending::default(),
            spent_by_leaf: Vec::new(),
            baseline: None,
            final_check: None,
            last_room: None,
            guard_error: None,
            proofs: Vec::new(),
            ratchet: Ratchet::default(),
            review: ReviewState::default(),
            protection: None,
            plan_approval: None,
            instructions: None,
            heldout: Vec::new(),
            environment: Environment::default(),
            semantics: SEMANTICS,
        }
    }

    /// Decodes the document strictly and reports every problem in it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        let text = decode_utf8(bytes).map_err(|problem| vec![problem])?;
        let mut fields = FieldReader::of_json(text).map_err(|problem| vec![problem])?;
        // A field that could not be read is among the problems; the value of the fresh state replaces it.
        let fresh = Self::new(None);
        let state = Self {
            run_id: fields.required("run_id").unwrap_or(fresh.run_id),
            next_iter: fields.required("next_iter").unwrap_or(fresh.next_iter),
            last_status: fields.required("last_status").unwrap_or(fresh.last_status),
            last_summary: fields.required("last_summary").unwrap_or(fresh.last_summary),
            last_guard: fields.required("last_guard").unwrap_or(fresh.last_guard),
            last_node: fields.required("last_node").unwrap_or(fresh.last_node),
            last_outcome: fields.required("last_outcome").unwrap_or(fresh.last_outcome),
            failures_in_row: fields.required("failures_in_row").map_or(fresh.failures_in_row, U32Count::get),
            transients_in_row: fields
                .required("transients_in_row")
                .map_or(fresh.transients_in_row, U32Count::get),
            node_history: fields.required("node_history").unwrap_or(fresh.node_history),
            repair: fields.required_object("repair").unwrap_or(fresh.repair),
            replanned: fields.required("replanned").unwrap_or(fresh.replanned),
            pinned: fields.required("pinned").unwrap_or(fresh.pinned),
            progress: fields.required_object("progress").unwrap_or(fresh.progress),
            wait: fields.required_object("wait").unwrap_or(fresh.wait),
            usage_limits: fields.required("usage_limits").unwrap_or(fresh.usage_limits),
            spent: fields.required_object("spent").unwrap_or(fresh.spent),
            spent_by_leaf: fields.required("spent_by_leaf").unwrap_or(fresh.spent_by_leaf),
            baseline: fields.optional_object("baseline").unwrap_or(fresh.baseline),
            final_check: fields.optional_object("final_check").unwrap_or(fresh.final_check),
            last_room: fields.optional("last_room").or(fresh.last_room),
            guard_error: fields.optional("guard_error").or(fresh.guard_error),
            proofs: fields.optional("proofs").unwrap_or(fresh.proofs),
            ratchet: fields.optional_object("ratchet").unwrap_or(fresh.ratchet),
            review: fields.optional_object("review").unwrap_or(fresh.review),
            protection: fields.optional_object("protection").unwrap_or(fresh.protection),
            plan_approval: fields.optional("plan_approval").or(fresh.plan_approval),
            instructions: fields.optional_object("instructions").unwrap_or(fresh.instructions),
            heldout: fields.optional("heldout").unwrap_or(fresh.heldout),
            environment: fields.optional_object("environment").unwrap_or(fresh.environment),
            semantics: fields.required("semantics").map_or(fresh.semantics, U32Count::get),
        };
        if state.semantics != SEMANTICS {
            fields.report_rule(
                "semantics",
                format!("is {}, but this runner only knows {SEMANTICS}", state.semantics),
            );
        }
        let problems = fields.finish();
        if problems.is_empty() { Ok(state) } else { Err(problems) }
    }

    /// The version of the rules that a document names, even if this version cannot decode it.
    pub fn semantics_of(bytes: &[u8]) -> Option<u32> {
        #[derive(Deserialize)]
        struct Version {
            semantics: u32,
        }
        serde_json::from_slice::<Version>(bytes).ok().map(|version| version.semantics)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        canonical_json(self)
    }

    /// The iterations so far that count for `max_iterations`.
    pub fn counted_iterations(&self) -> u32 {
        self.next_iter.get().saturating_sub(1).saturating_sub(self.progress.outages)
    }

    /// How the checks of a task ended before the work, if they ran.
    pub fn proof_of(&self, node: &NodeId) -> Option<&TaskProof> {
        self.proofs.iter().find(|proof| proof.node == *node)
    }

    /// The held-out checks of a task.
    pub fn heldout_of(&self, node: &NodeId) -> Option<&HeldoutTask> {
        self.heldout.iter().find(|task| task.node == *node)
    }

    pub fn spent_on(&self, leaf: &NodeId) -> Option<&LeafSpending> {
        self.spent_by_leaf.iter().find(|spent| spent.node == *leaf)
    }

    /// What to show about the last iteration: why the guard could not be started, or else the summary.
    pub fn last_note(&self) -> Option<&str> {
        self.guard_error.as_deref().or(self.last_summary.as_deref())
    }

    /// The same on one line. Several findings of the runner's, one on each line, are separated by semicolons.
    pub fn last_note_line(&self) -> String {
        let note = self.last_note().unwrap_or_default();
        let are_findings = self.last_outcome.is_some_and(|outcome| {
            outcome.class() != OutcomeClass::Answered
                || matches!(outcome, Outcome::RuleViolation | Outcome::InvalidTree)
        });
        if !are_findings {
            return one_line(note);
        }
        let findings: Vec<String> = note.lines().map(one_line).filter(|line| !line.is_empty()).collect();
        findings.join("; ")
    }

    /// The last session on a node.
    pub fn history_of(&self, node: &NodeId) -> Option<&NodeHistory> {
        self.node_history.iter().find(|history| history.node == *node)
    }
}

impl NodeHistory {
    /// Notes and restored files as lines for people and agents.
    pub fn note_lines(&self) -> Vec<String> {
        let mut lines = self.notes.clone();
        lines.extend(omitted_line(self.notes_omitted));
        lines.extend(self.restored.iter().map(|path| match Doc::at(path.as_str().as_bytes()) {
            Some(_) => format!("`{path}` is append-only: the runner restored its earlier text"),
            None => format!("`{path}` is protected: the runner restored it"),
        }));
        lines.extend((self.restored_omitted > 0).then(|| {
            let count = self.restored_omitted;
            format!("… and {count} more protected files, which the runner restored")
        }));
        lines
    }
}

impl PendingRepair {
    /// The errors as lines for people and agents.
    pub fn error_lines(&self) -> Vec<String> {
        let mut lines = self.errors.clone();
        lines.extend(omitted_line(self.errors_omitted));
        lines
    }
}

/// The line after a list that does not hold everything.
pub(crate) fn omitted_line(omitted: u32) -> Option<String> {
    (omitted > 0).then(|| format!("… and {omitted} more"))
}

#[cfg(test)]
mod tests;
