//! The tree of a run for the page: in columns, and node by node.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use runner_core::checks::coverage::point_states;
use runner_core::config::{Config, OnStuck};
use runner_core::detect::command_line;
use runner_core::labels::NodeStates;
use runner_core::model::checks::{Check, TaskChecks, TaskProof};
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{Node, Selection, Tree, next_selection};

use runner_host::view::checks::{CheckState, HeldoutView};

use crate::api::{
    IterationRow, NodeDetail, NodeHistoryView, NodeName, TaskCheckView, TextColumn, TreeColumns,
};

pub(crate) const PASSES: u32 = 1;
pub(crate) const LEAF: u32 = 2;
pub(crate) const EXHAUSTED: u32 = 4;

/// The next leaf, stuck or not.
pub(crate) fn selected(tree: &Tree, on_stuck: OnStuck) -> Option<&Node> {
    match next_selection(tree, on_stuck) {
        Selection::Leaf(choice) | Selection::Stuck(choice) => Some(choice.leaf),
        Selection::Complete => None,
    }
}

/// The policy for stuck tasks, which decides the next one; the default without a valid configuration.
pub(crate) fn on_stuck(config: Option<&Config>) -> OnStuck {
    config.map_or(OnStuck::Stop, |config| config.on_stuck)
}

pub(crate) fn tree_columns(tree: &Tree, on_stuck: OnStuck, run: Option<String>) -> TreeColumns {
    let mut columns = empty_columns(tree.root(), run);
    push_node(tree.root(), -1, 0, &NodeStates::new(tree, on_stuck), &mut columns);
    columns.selected = selected(tree, on_stuck).map(|leaf| leaf.id.to_string());
    let mut hasher = DefaultHasher::new();
    (&columns.id, &columns.title, &columns.parent, &columns.flags).hash(&mut hasher);
    (&columns.attempts, &columns.max_attempts).hash(&mut hasher);
    columns.revision = format!("{:016x}", hasher.finish());
    columns
}

/// How large the columns of a subtree are.
#[derive(Clone, Copy, Default)]
struct ColumnSizes {
    nodes: usize,
    id_bytes: usize,
    title_bytes: usize,
}

impl ColumnSizes {
    fn add(&mut self, node: &Node) {
        self.nodes += 1;
        self.id_bytes += node.id.as_str().len();
        self.title_bytes += node.title.len();
        node.children.iter().for_each(|child| self.add(child));
    }
}

/// Columns with room for every node: growing ones would need twice the memory.
fn empty_columns(root: &Node, run: Option<String>) -> TreeColumns {
    let mut sizes = ColumnSizes::default();
    sizes.add(root);
    let nodes = sizes.nodes;
    TreeColumns {
        run,
        id: TextColumn::with_capacity(nodes, sizes.id_bytes),
        title: TextColumn::with_capacity(nodes, sizes.title_bytes),
        parent: Vec::with_capacity(nodes),
        depth: Vec::with_capacity(nodes),
        flags: Vec::with_capacity(nodes),
        state: Vec::with_capacity(nodes),
        attempts: Vec::with_capacity(nodes),
        max_attempts: Vec::with_capacity(nodes),
        leaves: Vec::with_capacity(nodes),
        passed: Vec::with_capacity(nodes),
        ..TreeColumns::default()
    }
}

/// Adds a node and its descendants. Returns how many leaves it has, and how many of them pass.
fn push_node(
    node: &Node,
    parent: i64,
    depth: u32,
    states: &NodeStates<'_>,
    columns: &mut TreeColumns,
) -> (u32, u32) {
    let index = columns.id.len();
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    columns.id.push(node.id.as_str());
    columns.title.push(&node.title);
    columns.parent.push(parent);
    columns.depth.push(depth);
    columns.flags.push(
        flag(node.passes, PASSES)
            | flag(node.is_leaf(), LEAF)
            | flag(node.is_leaf() && !node.passes && node.is_exhausted(), EXHAUSTED),
    );
    columns.state.push(states.of(node));
    columns.attempts.push(node.attempts);
    columns.max_attempts.push(node.max_attempts);
    columns.leaves.push(1);
    columns.passed.push(u32::from(node.passes));
    if node.is_leaf() {
        return (1, u32::from(node.passes));
    }
    let own_index = i64::try_from(index).unwrap_or(-1);
    let mut leaves = 0;
    let mut passed = 0;
    for child in &node.children {
        let (child_leaves, child_passed) = push_node(child, own_index, depth + 1, states, columns);
        leaves += child_leaves;
        passed += child_passed;
    }
    if let Some(total) = columns.leaves.get_mut(index) {
        *total = leaves;
    }
    if let Some(total) = columns.passed.get_mut(index) {
        *total = passed;
    }
    (leaves, passed)
}

fn node_name(node: &Node) -> NodeName {
    NodeName { id: node.id.to_string(), title: node.title.clone(), passes: node.passes }
}

fn is_failure(row: &IterationRow) -> bool {
    row.outcome
        .as_deref()
        .is_some_and(|outcome| !matches!(outcome, "passed" | "unconfirmed" | "decomposed" | "replanned"))
}

/// What is known about the nodes of a run besides the tree.
#[derive(Clone, Copy)]
pub(crate) struct NodeFacts<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) rows: &'a [Arc<IterationRow>],
    pub(crate) state: Option<&'a RunState>,
    pub(crate) checks: &'a BTreeMap<NodeId, TaskChecks>,
    pub(crate) on_stuck: OnStuck,
}

/// One node with its history; `None` if the tree has no such node.
pub(crate) fn node_detail(tree: &Tree, id: &NodeId, facts: &NodeFacts<'_>) -> Option<NodeDetail> {
    let NodeFacts { run, rows, state, checks, on_stuck } = *facts;
    let path = tree.path_to(id)?;
    let node = path.last().copied()?;
    let leaves = node.leaves();
    let history = state.and_then(|state| state.history_of(id)).map(|history| NodeHistoryView {
        iter: history.iter.get(),
        outcome: history.outcome.as_str().to_owned(),
        summary: history.summary.clone(),
        notes: history.note_lines(),
        guard_output: history.guard_output.clone(),
    });
    let proof = state.and_then(|state| state.proof_of(id));
    let task_checks = checks.get(id);
    let on_node: Vec<_> = rows.iter().filter(|row| row.node.as_deref() == Some(id.as_str())).collect();
    Some(NodeDetail {
        run: Some(run.to_string()),
        id: id.to_string(),
        title: node.title.clone(),
        goal: node.goal.clone(),
        acceptance: node.acceptance.clone(),
        points: if node.is_leaf() {
            state.map(|state| point_states(node, task_checks, state)).unwrap_or_default()
        } else {
            Vec::new()
        },
        checks: task_checks
            .map(|checks| check_views(node, checks, proof))
            .into_iter()
            .flatten()
            .chain(state.map(|state| heldout_views(tree, node, state)).into_iter().flatten())
            .collect(),
        passes: node.passes,
        is_leaf: node.is_leaf(),
        state: NodeStates::new(tree, on_stuck).of(node),
        attempts: node.attempts,
        max_attempts: node.max_attempts,
        leaves_total: leaves.total,
        leaves_passed: leaves.passed,
        path: path.iter().map(|node| node_name(node)).collect(),
        children: node.children.iter().map(node_name).collect(),
        iterations: on_node.iter().map(|row| row.iter).collect(),
        last_failure: on_node.iter().rev().find(|row| is_failure(row)).map(|row| row.iter),
        history,
    })
}

fn check_views(node: &Node, checks: &TaskChecks, proof: Option<&TaskProof>) -> Vec<TaskCheckView> {
    let proof = proof.filter(|proof| proof.digest == checks.digest);
    let view = |check: &Check| {
        let red = proof.and_then(|proof| proof.red_of(&check.name));
        TaskCheckView {
            name: check.name.to_string(),
            command: command_line(check.command.words()),
            covers: check.covers.iter().filter_map(|point| usize::try_from(point.get()).ok()).collect(),
            red,
            state: CheckState::of(node.passes, check.red, red).into(),
        }
    };
    checks.checks.iter().map(view).collect()
}

/// The held-out checks of a node: their commands are in no document.
fn heldout_views(tree: &Tree, node: &Node, state: &RunState) -> Vec<TaskCheckView> {
    let views = HeldoutView::all(tree, state).into_iter().filter(|view| view.task == node.id);
    let view = |view: HeldoutView| TaskCheckView {
        name: view.check.name.to_string(),
        command: "held out".to_owned(),
        covers: view.check.covers.iter().filter_map(|point| usize::try_from(point.get()).ok()).collect(),
        red: view.check.red,
        state: view.state.into(),
    };
    views.map(view).collect()
}

/// The nodes whose id, title or goal contains a text: how many there are, and the first `nodes_max` of them.
pub(crate) fn search(tree: &Tree, text: &str, nodes_max: usize) -> (usize, Vec<NodeName>) {
    let wanted = text.to_lowercase();
    let mut total = 0;
    let mut nodes = Vec::new();
    let mut unvisited = vec![tree.root()];
    while let Some(node) = unvisited.pop() {
        let contains = |text: &str| text.to_lowercase().contains(&wanted);
        if contains(node.id.as_str()) || contains(&node.title) || contains(&node.goal) {
            total += 1;
            if nodes.len() < nodes_max {
                nodes.push(node_name(node));
            }
        }
        unvisited.extend(node.children.iter().rev());
    }
    (total, nodes)
}
