//! The part of the run state that decides whether a run makes progress: counters in a row, and what the next session on a
//! task must do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run_state::count;
use crate::model::digest::Sha256;
use crate::model::id::{IterationNumber, NodeId};
use crate::model::tree::Node;

/// What a run remembers about its progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Commits of sessions that the provider ended before the agent did anything. `max_iterations` does not count them.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub outages: u32,
    /// Time limits in a row on the last task.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub timeouts_in_row: u32,
    /// Iterations in a row in which no task passed and no check turned green.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub iterations_without_pass: u32,
    /// The most checks of the last task that were red before the work and green after a session.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub green_checks: u32,
    /// A `done` without changes that the next session on the task must confirm.
    #[serde(deserialize_with = "Option::deserialize")]
    pub unconfirmed: Option<UnconfirmedClaim>,
    /// The task that did not fit into one session and that the next session on it must split.
    #[serde(deserialize_with = "Option::deserialize")]
    pub must_split: Option<NodeId>,
    /// How open leaves failed, where there is a ladder, sorted by node id.
    pub leaf_failures: Vec<LeafFailure>,
}

/// The claim of one session that a task is done although it changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnconfirmedClaim {
    pub node: NodeId,
    /// The iteration that made the claim.
    pub iter: IterationNumber,
    /// The digest of the task's goal and acceptance: a claim about another task confirms nothing.
    pub task_sha256: Sha256,
}

/// How a leaf failed, and how far that moved it up the ladder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafFailure {
    pub node: NodeId,
    /// The digest of the last failure; null after it occurred twice and moved the leaf up.
    #[serde(deserialize_with = "Option::deserialize")]
    pub signature: Option<Sha256>,
    /// Rungs that the leaf moved up because the same failure occurred twice.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(deserialize_with = "count")]
    pub rungs: u32,
}

impl UnconfirmedClaim {
    pub fn new(task: &Node, iter: IterationNumber) -> Self {
        Self { node: task.id.clone(), iter, task_sha256: task_sha256(task) }
    }

    /// Whether the claim is about this task, as it is written.
    pub fn is_about(&self, task: &Node) -> bool {
        self.node == task.id && self.task_sha256 == task_sha256(task)
    }
}

fn task_sha256(task: &Node) -> Sha256 {
    let parts: Vec<&str> =
        std::iter::once(task.goal.as_str()).chain(task.acceptance.iter().map(String::as_str)).collect();
    Sha256::of(parts.join("\0").as_bytes())
}

impl Progress {
    /// How many rungs the failures of a leaf moved it up.
    pub fn rungs_of(&self, leaf: &NodeId) -> u32 {
        self.leaf_failures.iter().find(|failure| failure.node == *leaf).map_or(0, |failure| failure.rungs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::leaf;

    #[test]
    fn a_claim_is_about_the_task_as_it_was_written() {
        let task = leaf("a");
        let claim = UnconfirmedClaim::new(&task, IterationNumber::FIRST);
        assert!(claim.is_about(&task));
        assert!(
            claim.is_about(&Node { attempts: 2, order: 9, ..task.clone() }),
            "its position does not matter"
        );
        assert!(!claim.is_about(&Node { goal: "another".to_owned(), ..task.clone() }));
        assert!(!claim.is_about(&Node { acceptance: vec!["more".to_owned()], ..task }));
        assert!(!claim.is_about(&leaf("b")));
    }
}
