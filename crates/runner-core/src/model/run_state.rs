//! Where a run stands: `run_state.json`.
//!
//! It holds what the next iteration must know and the tree does not say, so that a restart, a fresh clone and a
//! replay go on from the same bytes. Every text in it is bounded; the whole texts are in the iteration's folder.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::agent_output::AgentStatus;
use crate::model::cost::{LeafSpending, RunSpending};
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::repo_path::RepoPath;
use crate::step::{Outcome, SessionMode, UsageLimit, Wait};
use crate::strict::{
    BoundedInt, DocumentProblem, FieldReader, canonical_json, decode_utf8, word, word_or_null,
};

/// What the guard said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum GuardResult {
    Pass,
    Fail,
    Skipped,
}

impl GuardResult {
    /// The result as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skipped => "skipped",
        }
    }
}

/// The version of the rules by which iterations are judged; every commit names it.
pub const SEMANTICS: u32 = 1;

/// The run's own book-keeping; progress itself is in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunState {
    /// The run this state belongs to; null before the first `runner start`.
    pub run_id: Option<RunId>,
    /// The number that the next iteration gets.
    pub next_iter: IterationNumber,
    /// What the last agent claimed.
    pub last_status: Option<AgentStatus>,
    /// What it said about it.
    pub last_summary: Option<String>,
    /// What the guard said of its work.
    pub last_guard: Option<GuardResult>,
    /// The node it worked on; null after a repair.
    pub last_node: Option<NodeId>,
    /// How the last iteration ended.
    pub last_outcome: Option<Outcome>,
    /// How many failures there were in a row that waiting does not mend.
    #[schemars(range(min = 0, max = u32::MAX))]
    pub failures_in_row: u32,
    /// How many transient failures there were in a row.
    #[schemars(range(min = 0, max = u32::MAX))]
    pub transients_in_row: u32,
    /// What the next session on a node is told of the last one, the newest last.
    pub node_history: Vec<NodeHistory>,
    /// A rejected tree that waits to be repaired.
    pub repair: Option<PendingRepair>,
    /// The nodes that had their one replanning.
    pub replanned: Vec<NodeId>,
    /// Guard files that agents made and that took part in a pass: protected like those of the start.
    pub pinned: Vec<RepoPath>,
    /// What the next session waits for.
    pub wait: Option<Wait>,
    /// The agents that have used up their allowance, where the ladder goes on with the next one.
    pub usage_limits: Vec<UsageLimit>,
    /// What the run has cost so far.
    pub spent: RunSpending,
    /// What each open leaf has cost so far, by its id.
    pub spent_by_leaf: Vec<LeafSpending>,
    /// What the guard said of the untouched repository, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The version of the rules that wrote this.
    #[schemars(extend("const" = SEMANTICS))]
    pub semantics: u32,
}

/// What the guard said before the first session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Its result; skipped if it said nothing.
    #[serde(deserialize_with = "word")]
    pub guard: GuardResult,
    /// How it ended: an exit code, `signal 9`, or `none`.
    pub exit: String,
    /// What it printed, or why it said nothing; null if it was green.
    #[serde(deserialize_with = "Option::deserialize")]
    pub output: Option<String>,
}

/// What a session left for the next one on the same node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeHistory {
    /// The node.
    pub node: NodeId,
    /// The iteration in which it was learned.
    pub iter: IterationNumber,
    /// How that iteration ended.
    #[serde(deserialize_with = "word")]
    pub outcome: Outcome,
    /// What the agent said.
    pub summary: String,
    /// What the runner says about it: rules that were broken, files that were put back.
    pub notes: Vec<String>,
    /// What the guard printed, if it failed.
    #[serde(deserialize_with = "Option::deserialize")]
    pub guard_output: Option<String>,
    /// How a later session on the node ended that gave no answer.
    #[serde(deserialize_with = "word_or_null")]
    pub later_outcome: Option<Outcome>,
}

/// A rejected tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingRepair {
    /// The iteration that left it.
    pub iter: IterationNumber,
    /// The node that was worked on.
    pub node: NodeId,
    /// What the session was for.
    #[serde(deserialize_with = "word")]
    pub mode: SessionMode,
    /// How many repairs were tried.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub tries: u32,
    /// The tree as it was left, from its beginning.
    pub rejected: String,
    /// What is wrong with it.
    pub errors: Vec<String>,
}

/// A count, read as any whole number of our documents is.
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

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    U32Count::deserialize(deserializer).map(U32Count::get)
}

impl RunState {
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
            wait: None,
            usage_limits: Vec::new(),
            spent: RunSpending::default(),
            spent_by_leaf: Vec::new(),
            baseline: None,
            semantics: SEMANTICS,
        }
    }

    /// Reads the document strictly; every fault in it is told.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        let text = decode_utf8(bytes).map_err(|problem| vec![problem])?;
        let mut fields = FieldReader::of_json(text).map_err(|problem| vec![problem])?;
        // A field that could not be read is among the problems; the fresh state's stands in for it.
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
            wait: fields.required_object("wait").unwrap_or(fresh.wait),
            usage_limits: fields.required("usage_limits").unwrap_or(fresh.usage_limits),
            spent: fields.required_object("spent").unwrap_or(fresh.spent),
            spent_by_leaf: fields.required("spent_by_leaf").unwrap_or(fresh.spent_by_leaf),
            baseline: fields.optional_object("baseline").unwrap_or(fresh.baseline),
            semantics: fields.required("semantics").map_or(fresh.semantics, U32Count::get),
        };
        if state.semantics != SEMANTICS {
            fields.report_rule(
                "semantics",
                format!("is {}, and this runner knows {SEMANTICS} alone", state.semantics),
            );
        }
        let problems = fields.finish();
        if problems.is_empty() { Ok(state) } else { Err(problems) }
    }

    /// The one written form.
    pub fn to_bytes(&self) -> Vec<u8> {
        canonical_json(self)
    }

    /// What a leaf has cost so far.
    pub fn spent_on(&self, leaf: &NodeId) -> Option<&LeafSpending> {
        self.spent_by_leaf.iter().find(|spent| spent.node == *leaf)
    }

    /// What the next session on a node is told.
    pub fn history_of(&self, node: &NodeId) -> Option<&NodeHistory> {
        self.node_history.iter().find(|lesson| lesson.node == *node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cost::amount;

    #[test]
    fn what_is_written_is_read_back() {
        let fresh = RunState::new(None);
        let told = RunState {
            run_id: Some(RunId::new("x").unwrap()),
            next_iter: IterationNumber::new(7).unwrap(),
            last_status: Some(AgentStatus::Done),
            last_summary: Some("say \"é\"\n".to_owned()),
            last_guard: Some(GuardResult::Fail),
            last_node: Some(NodeId::root()),
            last_outcome: Some(Outcome::InvalidTree),
            failures_in_row: 2,
            transients_in_row: 1,
            node_history: vec![NodeHistory {
                node: NodeId::root(),
                iter: IterationNumber::FIRST,
                outcome: Outcome::GuardFailed,
                summary: "s".to_owned(),
                notes: vec!["n".to_owned()],
                guard_output: Some("red".to_owned()),
                later_outcome: Some(Outcome::Interrupted),
            }],
            repair: Some(PendingRepair {
                iter: IterationNumber::FIRST,
                node: NodeId::root(),
                mode: SessionMode::Leaf,
                tries: 1,
                rejected: "{".to_owned(),
                errors: vec!["e".to_owned()],
            }),
            replanned: vec![NodeId::root()],
            pinned: vec![RepoPath::of_bytes(b"justfile")],
            wait: Some(Wait::after(
                ("codex".to_owned(), Outcome::UsageLimit),
                1,
                None,
                (Some(amount(7)), BoundedInt::fixed::<60>()),
            )),
            usage_limits: vec![UsageLimit {
                agent: "codex".to_owned(),
                node: NodeId::root(),
                resets_unix_secs: None,
            }],
            spent: RunSpending { tokens: amount(9), ..RunSpending::default() },
            spent_by_leaf: vec![LeafSpending {
                node: NodeId::root(),
                tokens: amount(9),
                microdollars: amount(0),
            }],
            baseline: Some(Baseline {
                guard: GuardResult::Fail,
                exit: "1".to_owned(),
                output: Some("x".to_owned()),
            }),
            semantics: SEMANTICS,
        };
        for state in [fresh, told] {
            assert_eq!(RunState::decode(&state.to_bytes()), Ok(state));
        }
    }

    const REST: &str = "\"last_node\": null, \"last_outcome\": null, \"failures_in_row\": 0, \
        \"transients_in_row\": 0, \"lessons\": [], \"repair\": null, \"replanned\": [], \"pinned\": [], \
        \"wait\": null, \"usage_limits\": [], \"spent\": {\"tokens\": 0, \"microdollars\": 0, \
        \"estimated_microdollars\": 0, \"sessions_without_tokens\": 0, \"sessions_without_cost\": 0}, \
        \"spent_by_leaf\": [], \"semantics\": 1}";

    #[test]
    fn every_key_is_there_and_no_other() {
        let told = |text: &str| {
            RunState::decode(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(told("{}").len(), 18);
        let newer = String::from_utf8(RunState::new(None).to_bytes()).unwrap();
        let newer = newer.replace("\"semantics\": 1", "\"semantics\": 2");
        assert_eq!(told(&newer), ["line 25: `semantics` is 2, and this runner knows 1 alone"]);
        assert_eq!(
            told(&format!(
                "{{\"run_id\": \"a b\",\n\"next_iter\": 0,\n\"last_status\": null,\n\"last_summary\": null,\n\"last_gard\": null,{REST}"
            )),
            [
                "line 1: `run_id` is invalid: \"a b\" contains ' '; only letters, digits, `.`, `_` and `-` are allowed",
                "line 1: `last_guard` is missing",
                "line 2: `next_iter` is invalid: invalid value: integer `0`, expected an integer from 1 to 4294967295",
                "line 5: `last_gard` is not a known key; did you mean `last_guard`?",
            ]
        );
    }
}
