//! A run's tree for the page: in columns, and node by node.

use std::hash::{DefaultHasher, Hash, Hasher};

use runner_core::model::id::NodeId;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{Node, Selection, Tree, select};

use crate::api::{IterationRow, NodeDetail, NodeHistoryView, NodeName, TreeColumns};

pub(crate) const PASSES: u32 = 1;
pub(crate) const LEAF: u32 = 2;
pub(crate) const EXHAUSTED: u32 = 4;

/// The leaf that comes next.
pub(crate) fn selected(tree: &Tree) -> Option<&Node> {
    match select(tree) {
        Selection::Leaf(choice) | Selection::Stuck(choice) => Some(choice.leaf),
        Selection::Complete => None,
    }
}

/// The tree in columns.
pub(crate) fn slim(tree: &Tree, run: Option<String>) -> TreeColumns {
    let mut slim = TreeColumns { run, ..TreeColumns::default() };
    add(tree.root(), -1, 0, &mut slim);
    slim.selected = selected(tree).map(|leaf| leaf.id.to_string());
    let mut hasher = DefaultHasher::new();
    (&slim.id, &slim.title, &slim.parent, &slim.flags).hash(&mut hasher);
    (&slim.attempts, &slim.max_attempts).hash(&mut hasher);
    slim.revision = format!("{:016x}", hasher.finish());
    slim
}

/// Adds a node and what is below it; gives back its leaves and those that pass.
fn add(node: &Node, parent: i64, depth: u32, slim: &mut TreeColumns) -> (u32, u32) {
    let place = slim.id.len();
    let flag = |holds: bool, flag: u32| if holds { flag } else { 0 };
    slim.id.push(node.id.to_string());
    slim.title.push(node.title.clone());
    slim.parent.push(parent);
    slim.depth.push(depth);
    slim.flags.push(
        flag(node.passes, PASSES)
            | flag(node.is_leaf(), LEAF)
            | flag(node.is_leaf() && !node.passes && node.is_exhausted(), EXHAUSTED),
    );
    slim.attempts.push(node.attempts);
    slim.max_attempts.push(node.max_attempts);
    slim.leaves.push(1);
    slim.passed.push(u32::from(node.passes));
    if node.is_leaf() {
        return (1, u32::from(node.passes));
    }
    let mine = i64::try_from(place).unwrap_or(-1);
    let (mut leaves, mut passed) = (0, 0);
    for child in &node.children {
        let (more, more_passed) = add(child, mine, depth + 1, slim);
        leaves += more;
        passed += more_passed;
    }
    if let (Some(all), Some(done)) = (slim.leaves.get_mut(place), slim.passed.get_mut(place)) {
        (*all, *done) = (leaves, passed);
    }
    (leaves, passed)
}

fn name(node: &Node) -> NodeName {
    NodeName { id: node.id.to_string(), title: node.title.clone(), passes: node.passes }
}

/// One node, with its history.
pub(crate) fn node(
    tree: &Tree,
    id: &NodeId,
    run: Option<String>,
    (rows, state): (&[IterationRow], Option<&RunState>),
) -> Option<NodeDetail> {
    let path = tree.path_to(id)?;
    let node = path.last().copied()?;
    let leaves = node.leaves();
    let lesson = state.and_then(|state| state.history_of(id)).map(|lesson| NodeHistoryView {
        iter: lesson.iter.get(),
        outcome: lesson.outcome.as_str().to_owned(),
        summary: lesson.summary.clone(),
        notes: lesson.note_lines(),
        guard_output: lesson.guard_output.clone(),
    });
    Some(NodeDetail {
        run,
        id: id.to_string(),
        title: node.title.clone(),
        goal: node.goal.clone(),
        acceptance: node.acceptance.clone(),
        passes: node.passes,
        is_leaf: node.is_leaf(),
        is_next: selected(tree).is_some_and(|leaf| leaf.id == *id),
        attempts: node.attempts,
        max_attempts: node.max_attempts,
        leaves_total: leaves.total,
        leaves_passed: leaves.passed,
        path: path.iter().map(|node| name(node)).collect(),
        children: node.children.iter().map(name).collect(),
        iterations: rows
            .iter()
            .filter(|row| row.node.as_deref() == Some(id.as_str()))
            .map(|row| row.iter)
            .collect(),
        lesson,
    })
}

/// The nodes whose id, title or goal holds a text, and how many there are.
pub(crate) fn find(tree: &Tree, text: &str, most: usize) -> (usize, Vec<NodeName>) {
    let wanted = text.to_lowercase();
    let (mut total, mut found, mut left) = (0, Vec::new(), vec![tree.root()]);
    while let Some(node) = left.pop() {
        let holds = |text: &str| text.to_lowercase().contains(&wanted);
        if holds(node.id.as_str()) || holds(&node.title) || holds(&node.goal) {
            total += 1;
            if found.len() < most {
                found.push(name(node));
            }
        }
        left.extend(node.children.iter().rev());
    }
    (total, found)
}
