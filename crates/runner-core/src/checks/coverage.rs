//! How much of a plan's acceptance is proven: decided by a check that failed before the work and succeeded after it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::checks::{RedKind, TaskChecks};
use crate::model::id::NodeId;
use crate::model::run_state::RunState;
use crate::model::tree::{Node, Tree};

/// Acceptance criteria, by how they are decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    pub points: usize,
    /// Decided by a check that failed before the work and succeeded after it.
    pub proven: usize,
    /// Decided by a check of a task that has not passed yet.
    pub pending: usize,
    /// Decided by checks that did not fail for a reason that counts before the work.
    pub unproven: usize,
    /// Decided by no check, but by an agent.
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

/// Counts the acceptance criteria of all leaves, and of tasks with parts that have checks of their own.
pub fn coverage(tree: &Tree, checks: &BTreeMap<NodeId, TaskChecks>, state: &RunState) -> Coverage {
    let mut coverage = Coverage::default();
    add_points(tree.root(), checks, state, &mut coverage);
    coverage
}

fn add_points(node: &Node, checks: &BTreeMap<NodeId, TaskChecks>, state: &RunState, coverage: &mut Coverage) {
    let own = checks.get(&node.id);
    if node.is_leaf() || own.is_some() || state.heldout_of(&node.id).is_some() {
        for point in point_states(node, own, state) {
            coverage.points += 1;
            match point {
                PointState::Proven => coverage.proven += 1,
                PointState::Pending => coverage.pending += 1,
                PointState::Unproven => coverage.unproven += 1,
                PointState::Prose => coverage.prose += 1,
            }
        }
    }
    node.children.iter().for_each(|child| add_points(child, checks, state, coverage));
}

/// How each acceptance criterion of a task is decided: by the checks beside it, and by held-out ones.
pub fn point_states(node: &Node, checks: Option<&TaskChecks>, state: &RunState) -> Vec<PointState> {
    let proof =
        state.proof_of(&node.id).filter(|proof| checks.is_some_and(|checks| checks.digest == proof.digest));
    let own = checks.map(|checks| checks.checks.as_slice()).unwrap_or_default();
    let heldout = state.heldout_of(&node.id).map(|task| task.checks.as_slice()).unwrap_or_default();
    let has_passed = has_passed(node, state);
    let state_of = |point: usize| {
        let reds = own
            .iter()
            .filter(|check| check.decides(point))
            .map(|check| proof.and_then(|proof| proof.red_of(&check.name)));
        let heldout_reds = heldout.iter().filter(|check| check.decides(point)).map(|check| check.red);
        let reds: Vec<Option<RedKind>> = reds.chain(heldout_reds).collect();
        let was_red = reds.iter().flatten().any(|red| red.is_proof());
        let is_known = reds.iter().any(Option::is_some);
        match (reds.is_empty(), has_passed, is_known, was_red) {
            (true, ..) => PointState::Prose,
            (_, true, _, true) => PointState::Proven,
            (_, false, _, true) | (_, false, false, _) => PointState::Pending,
            (_, _, _, false) => PointState::Unproven,
        }
    };
    (1..=node.acceptance.len()).map(state_of).collect()
}

/// Whether the checks of a task succeeded: those of a task with parts run at its milestone, those of the root in the final check.
fn has_passed(node: &Node, state: &RunState) -> bool {
    let is_waiting = state.ratchet.due.contains(&node.id)
        || state.ratchet.regressed.iter().any(|record| record.node == node.id)
        || node.id == NodeId::root() && state.final_check.is_none();
    node.passes && (node.is_leaf() || !is_waiting)
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
    use crate::model::checks::{CheckName, CheckRed, TaskProof};
    use crate::model::digest::Sha256;
    use crate::model::heldout::HeldoutTask;
    use crate::model::tree::sample::{leaf, tree};

    fn checks(toml: &str) -> TaskChecks {
        TaskChecks::read(toml.as_bytes(), |_| Some(Sha256::of(b""))).unwrap()
    }

    fn node(passes: bool) -> Node {
        let acceptance = ["a", "b", "c"].map(str::to_owned).to_vec();
        Node { acceptance, passes, ..leaf("root") }
    }

    fn proof(checks: &TaskChecks, kinds: &[(&str, RedKind)]) -> TaskProof {
        let red = |(name, red): &(&str, RedKind)| CheckRed {
            name: CheckName::new(name).unwrap(),
            red: *red,
            facts: None,
        };
        TaskProof { node: NodeId::root(), digest: checks.digest, checks: kinds.iter().map(red).collect() }
    }

    fn state(proofs: &[TaskProof]) -> RunState {
        RunState { proofs: proofs.to_vec(), ..RunState::new(None) }
    }

    const TWO: &str = "[[check]]\nname = \"x\"\ncommand = [\"x\"]\ncovers = [1]\n\
                       [[check]]\nname = \"y\"\ncommand = [\"y\"]\ncovers = [2]\n";

    #[test]
    fn a_point_is_proven_by_a_check_that_was_red_first() {
        use PointState::{Pending, Prose, Proven, Unproven};
        let two = checks(TWO);
        let red = proof(&two, &[("x", RedKind::Absent), ("y", RedKind::Green)]);
        assert_eq!(point_states(&node(true), None, &state(&[])), [Prose, Prose, Prose]);
        assert_eq!(point_states(&node(false), Some(&two), &state(&[])), [Pending, Pending, Prose]);
        assert_eq!(
            point_states(&node(false), Some(&two), &state(std::slice::from_ref(&red))),
            [Pending, Unproven, Prose]
        );
        assert_eq!(
            point_states(&node(true), Some(&two), &state(std::slice::from_ref(&red))),
            [Proven, Unproven, Prose]
        );
        let other = TaskProof { digest: Sha256::of(b"other"), ..red };
        assert_eq!(point_states(&node(true), Some(&two), &state(&[other])), [Unproven, Unproven, Prose]);
    }

    #[test]
    fn a_held_out_check_decides_points_too() {
        use PointState::{Pending, Prose, Proven, Unproven};
        let mut task = HeldoutTask::new(NodeId::root(), &checks(TWO));
        let heldout = |task: &HeldoutTask| RunState { heldout: vec![task.clone()], ..state(&[]) };
        assert_eq!(point_states(&node(false), None, &heldout(&task)), [Pending, Pending, Prose]);
        task.checks[0].red = Some(RedKind::Failed);
        task.checks[1].red = Some(RedKind::Green);
        assert_eq!(point_states(&node(true), None, &heldout(&task)), [Proven, Unproven, Prose]);
    }

    #[test]
    fn a_task_with_parts_counts_if_it_has_checks_and_they_ran_again() {
        let two = checks(TWO);
        let red = proof(&two, &[("x", RedKind::Absent), ("y", RedKind::Failed)]);
        let inner = Node { children: vec![Node { passes: true, ..leaf("a") }], ..node(true) };
        let tree = tree(inner);
        assert_eq!(
            coverage(&tree, &BTreeMap::new(), &state(&[])).points,
            tree.root().children[0].acceptance.len()
        );
        let all = BTreeMap::from([(NodeId::root(), two)]);
        assert_eq!(coverage(&tree, &all, &state(std::slice::from_ref(&red))).pending, 2);
        let guard = crate::model::run_state::RecordedGuardRun {
            guard: crate::model::run_state::GuardResult::Pass,
            exit: "0".to_owned(),
            room: None,
            output: None,
            next_iter: crate::model::id::IterationNumber::FIRST,
        };
        let done = RunState { final_check: Some(guard), ..state(&[red]) };
        assert_eq!(coverage(&tree, &all, &done).proven, 2);
    }

    #[test]
    fn the_sentence_names_what_is_not_proven() {
        let two = checks(TWO);
        let red = proof(&two, &[("x", RedKind::Failed), ("y", RedKind::Broken)]);
        let all = BTreeMap::from([(NodeId::root(), two)]);
        let counted = coverage(&tree(node(true)), &all, &state(&[red]));
        assert_eq!(counted.to_string(), "1 of 3 points proven, 1 unproven, 1 in prose");
        assert_eq!(
            coverage(&tree(node(false)), &all, &state(&[])).to_string(),
            "0 of 3 points proven, 2 pending, 1 in prose"
        );
    }
}
