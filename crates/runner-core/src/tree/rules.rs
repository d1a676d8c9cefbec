//! The rules that hold in every tree the runner writes.

use super::problem::{Found, Position, TreeFault, path_at};
use super::{DEPTH_MAX, NODES_MAX, Node};

/// Notes every rule that is broken at or below `root`. Fields that could not be read are passed over.
pub(super) fn check(root: &Node, found: &mut Found) {
    if !found.can_be_ruled() {
        return;
    }
    let mut ids = Vec::new();
    walk(root, &mut |node, position| {
        ids.push(node.id.as_str());
        check_attempts(node, position, found);
        check_order(node, position, found);
        check_passes(node, position, found);
        if position.len() + 1 == DEPTH_MAX && !node.is_leaf() {
            let first_child: Position = position.iter().copied().chain([0]).collect();
            found.at(&first_child, None, TreeFault::TooDeep);
        }
    });
    if ids.len() > NODES_MAX {
        found.too_many_nodes();
    }
    check_unique(root, &ids, found);
}

/// Visits the nodes in order, down to the deepest level that a tree may have.
fn walk<'t>(root: &'t Node, visit: &mut impl FnMut(&'t Node, &Position)) {
    fn descend<'t>(node: &'t Node, position: &mut Position, visit: &mut impl FnMut(&'t Node, &Position)) {
        visit(node, position);
        if position.len() + 1 < DEPTH_MAX {
            for (index, child) in node.children.iter().enumerate() {
                position.push(index);
                descend(child, position, visit);
                position.pop();
            }
        }
    }
    descend(root, &mut Vec::new(), visit);
}

fn check_attempts(node: &Node, position: &Position, found: &mut Found) {
    let unread = |field| found.unread(position, field);
    if node.attempts > node.max_attempts && !unread("attempts") && !unread("max_attempts") {
        let fault = TreeFault::AttemptsOverMax { attempts: node.attempts, max: node.max_attempts };
        found.at(position, Some("attempts"), fault);
    }
}

fn check_order(node: &Node, position: &Position, found: &mut Found) {
    let unread = |index: usize| {
        let child: Position = position.iter().copied().chain([index]).collect();
        found.unread(&child, "order") || found.unread(&child, "id")
    };
    let mut pairs = node.children.iter().zip(node.children.iter().skip(1)).enumerate();
    let inversion = pairs.find(|(index, (one, next))| {
        one.sort_key() > next.sort_key() && !unread(*index) && !unread(*index + 1)
    });
    if let Some((_, (early, late))) = inversion {
        let fault = TreeFault::Unsorted { early: early.id.to_string(), late: late.id.to_string() };
        found.at(position, Some("children"), fault);
    }
}

fn check_passes(node: &Node, position: &Position, found: &mut Found) {
    let child_unread = |index: usize| {
        let child: Position = position.iter().copied().chain([index]).collect();
        found.unread(&child, "passes")
    };
    if node.is_leaf() || found.unread(position, "passes") {
        return;
    }
    let open = node.children.iter().enumerate().find(|(_, child)| !child.passes);
    let fault = match (node.passes, open) {
        (true, Some((index, open))) if !child_unread(index) => {
            TreeFault::PassesTooEarly { open: open.id.to_string() }
        }
        (false, None) => TreeFault::PassesTooLate,
        (true, None | Some(_)) | (false, Some(_)) => return,
    };
    found.at(position, Some("passes"), fault);
}

/// Sorting beats a set here: no hashing, no order but the bytes', and equal ids end up side by side.
fn check_unique(root: &Node, ids: &[&str], found: &mut Found) {
    let mut sorted: Vec<(&str, usize)> = ids.iter().copied().enumerate().map(|(nth, id)| (id, nth)).collect();
    sorted.sort_unstable();
    let twins = sorted
        .chunk_by(|(one, _), (next, _)| one == next)
        .filter(|group| group.len() > 1 && group.first().is_some_and(|(id, _)| !id.is_empty()));
    // Which node is the first with the id of the `nth` node, for each that is not the first itself.
    let mut first_of: Vec<(usize, usize)> = twins
        .flat_map(|group| {
            let first = group.first().map(|(_, nth)| *nth);
            group.iter().skip(1).filter_map(move |(_, nth)| first.map(|first| (*nth, first)))
        })
        .collect();
    if first_of.is_empty() {
        return;
    }
    first_of.sort_unstable();
    let mut positions = Vec::with_capacity(ids.len());
    walk(root, &mut |_, position| positions.push(position.clone()));
    for (nth, first) in first_of {
        let (Some(position), Some(first)) = (positions.get(nth), positions.get(first)) else { continue };
        found.at(position, Some("id"), TreeFault::DuplicateId { other: path_at(root, first) });
    }
}
