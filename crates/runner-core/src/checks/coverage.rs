//! How much of a plan's acceptance is proven: decided by a check that failed before the work and succeeded after it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::checks::{RedKind, TaskChecks, TaskProof};
use crate::model::id::NodeId;
use crate::model::tree::{Node, Tree};

/// The acceptance criteria of all leaves, by how they are decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    pub points: usize,
    /// Decided by a check that failed before the work and succeeded after it.
    pub proven: usize,
    /// Decided by a check of a task that has not passed yet.
    pub pending: usize,
    /// Decided by checks that did not fail for a reason that counts before the work.
    pub unproven: usize,
    /// Decided by no check: an agent says so.
    pub prose: usize,
}

/// How one acceptance criterion is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointState {
    Proven,
    Pending,
    Unproven,
    Prose,
}

/// Counts the acceptance criteria of all leaves.
pub fn coverage(tree: &Tree, checks: &BTreeMap<NodeId, TaskChecks>, proofs: &[TaskProof]) -> Coverage {
    let mut coverage = Coverage::default();
    add_leaves(tree.root(), checks, proofs, &mut coverage);
    coverage
}

fn add_leaves(
    node: &Node,
    checks: &BTreeMap<NodeId, TaskChecks>,
    proofs: &[TaskProof],
    coverage: &mut Coverage,
) {
    if node.is_leaf() {
        let proof = proofs.iter().find(|proof| proof.node == node.id);
        for state in point_states(node, checks.get(&node.id), proof) {
            coverage.points += 1;
            match state {
                PointState::Proven => coverage.proven += 1,
                PointState::Pending => coverage.pending += 1,
                PointState::Unproven => coverage.unproven += 1,
                PointState::Prose => coverage.prose += 1,
            }
        }
    }
    node.children.iter().for_each(|child| add_leaves(child, checks, proofs, coverage));
}

/// How each acceptance criterion of a leaf is decided.
pub fn point_states(leaf: &Node, checks: Option<&TaskChecks>, proof: Option<&TaskProof>) -> Vec<PointState> {
    let proof = proof.filter(|proof| checks.is_some_and(|checks| checks.digest == proof.digest));
    let state_of = |point: usize| {
        let all = checks.map(|checks| checks.checks.as_slice()).unwrap_or_default();
        let mut deciding = all.iter().filter(|check| check.decides(point)).peekable();
        if deciding.peek().is_none() {
            return PointState::Prose;
        }
        let was_red = |proof: &TaskProof| {
            deciding.any(|check| proof.red_of(&check.name).is_some_and(RedKind::is_proof))
        };
        match (leaf.passes, proof.map(was_red)) {
            (true, Some(true)) => PointState::Proven,
            (false, Some(true) | None) => PointState::Pending,
            (_, Some(false)) | (true, None) => PointState::Unproven,
        }
    };
    (1..=leaf.acceptance.len()).map(state_of).collect()
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} points proven", self.proven, self.points)?;
        for (count, what) in
            [(self.pending, "pending"), (self.unproven, "unproven"), (self.prose, "in prose")]
        {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::checks::{CheckName, CheckRed};
    use crate::model::digest::Sha256;
    use crate::model::tree::sample::{leaf, tree};

    fn checks(toml: &str) -> TaskChecks {
        TaskChecks::read(toml.as_bytes(), |_| Some(Sha256::of(b""))).unwrap()
    }

    fn node(passes: bool) -> Node {
        let acceptance = ["a", "b", "c"].map(str::to_owned).to_vec();
        Node { acceptance, passes, ..leaf("root") }
    }

    fn proof(checks: &TaskChecks, kinds: &[(&str, RedKind)]) -> TaskProof {
        let red = |(name, red): &(&str, RedKind)| CheckRed { name: CheckName::new(name).unwrap(), red: *red };
        TaskProof { node: NodeId::root(), digest: checks.digest, checks: kinds.iter().map(red).collect() }
    }

    const TWO: &str = "[[check]]\nname = \"x\"\ncommand = [\"x\"]\ncovers = [1]\n\
                       [[check]]\nname = \"y\"\ncommand = [\"y\"]\ncovers = [2]\n";

    #[test]
    fn a_point_is_proven_by_a_check_that_was_red_first() {
        use PointState::{Pending, Prose, Proven, Unproven};
        let two = checks(TWO);
        let red = proof(&two, &[("x", RedKind::Absent), ("y", RedKind::Green)]);
        assert_eq!(point_states(&node(true), None, None), [Prose, Prose, Prose]);
        assert_eq!(point_states(&node(false), Some(&two), None), [Pending, Pending, Prose]);
        assert_eq!(point_states(&node(false), Some(&two), Some(&red)), [Pending, Unproven, Prose]);
        assert_eq!(point_states(&node(true), Some(&two), Some(&red)), [Proven, Unproven, Prose]);
        let other = TaskProof { digest: Sha256::of(b"other"), ..red };
        assert_eq!(point_states(&node(true), Some(&two), Some(&other)), [Unproven, Unproven, Prose]);
    }

    #[test]
    fn the_sentence_names_what_is_not_proven() {
        let two = checks(TWO);
        let red = proof(&two, &[("x", RedKind::Failed), ("y", RedKind::Broken)]);
        let all = BTreeMap::from([(NodeId::root(), two)]);
        let counted = coverage(&tree(node(true)), &all, &[red]);
        assert_eq!(counted.to_string(), "1 of 3 points proven, 1 unproven, 1 in prose");
        assert_eq!(
            coverage(&tree(node(false)), &all, &[]).to_string(),
            "0 of 3 points proven, 2 pending, 1 in prose"
        );
    }
}
