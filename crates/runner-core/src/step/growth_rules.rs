//! The limits on how far agents may grow the plan. They are about what a session adds: a tree that the user made larger stays
//! as it is.

use std::collections::BTreeMap;

use super::tree_rules::Violation;
use crate::config::LimitsConfig;
use crate::model::id::NodeId;
use crate::model::tree::{AgentTree, Node, Tree};

/// The limits that an agent's tree exceeds by what the session added or moved.
pub(super) fn growth_violations(before: &Tree, after: &AgentTree, limits: &LimitsConfig) -> Vec<Violation> {
    let mut places = BTreeMap::new();
    collect_places(before.root(), 1, &mut places);
    let mut growth = Growth { places: &places, limits, nodes: 0, violations: Vec::new() };
    growth.check(after.root(), 1, after.root().id.as_str());
    let Growth { nodes, mut violations, .. } = growth;
    let max = number(limits.max_nodes.get());
    if nodes > max && nodes > places.len() {
        violations.push(Violation::TooManyNodes { count: nodes, max });
    }
    violations.sort();
    violations
}

fn number(limit: i64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Where a node was before the session.
#[derive(Clone, Copy)]
struct Place {
    /// The root is on level 1.
    level: usize,
    children: usize,
}

fn collect_places<'t>(node: &'t Node, level: usize, places: &mut BTreeMap<&'t NodeId, Place>) {
    places.insert(&node.id, Place { level, children: node.children.len() });
    node.children.iter().for_each(|child| collect_places(child, level + 1, places));
}

struct Growth<'a> {
    places: &'a BTreeMap<&'a NodeId, Place>,
    limits: &'a LimitsConfig,
    nodes: usize,
    violations: Vec<Violation>,
}

impl Growth<'_> {
    fn check(&mut self, node: &Node, level: usize, path: &str) {
        self.nodes += 1;
        let was = self.places.get(&node.id);
        let max_depth = number(self.limits.max_depth.get());
        if level > max_depth && was.is_none_or(|was| was.level < level) {
            self.violations.push(Violation::TooDeep { node: path.to_owned(), level, max: max_depth });
        }
        let max_children = number(self.limits.max_children.get());
        let count = node.children.len();
        if count > max_children && was.is_none_or(|was| was.children < count) {
            let node = path.to_owned();
            self.violations.push(Violation::TooManyChildren { node, count, max: max_children });
        }
        for child in &node.children {
            self.check(child, level + 1, &format!("{path}/{}", child.id));
        }
    }
}
