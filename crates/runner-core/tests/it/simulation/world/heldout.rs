//! Held-out checks of simulated runs.

use runner_core::model::heldout::HeldoutTask;

use super::*;

pub(super) fn heldout_run(kind: RedKind) -> HeldoutRun {
    HeldoutRun::Ended { kind, place: GuardPlace::in_place(TreeId::none()) }
}

/// The held-out checks of some plans: for the root, and for every second task.
pub(super) fn heldout(tree: &Tree) -> Vec<HeldoutTask> {
    let toml = "[[check]]\nname = \"hidden\"\ncommand = [\"x\"]\n";
    let task = TaskChecks::read(toml.as_bytes(), |_| None).unwrap();
    let nodes = agent::all_nodes(tree.root());
    let chosen = nodes.iter().step_by(2).filter(|_| nodes.len().is_multiple_of(2));
    let mut tasks: Vec<HeldoutTask> = chosen.map(|node| HeldoutTask::new(node.id.clone(), &task)).collect();
    tasks.sort_by(|one, other| one.node.cmp(&other.node));
    tasks
}
