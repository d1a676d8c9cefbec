//! The rules that hold in every tree the runner writes.

use super::problem::{Field, Found, Position, TreeFault, path_at};
use super::written::WrittenLen;
use super::{BYTES_MAX, DEPTH_MAX, NODES_MAX, Node};
use crate::id::NodeId;

/// Notes every rule that is broken at or below `root`. Fields that could not be read are passed over.
pub(super) fn check(root: &Node, found: &mut Found) {
    if !found.can_be_ruled() {
        return;
    }
    let mut ids = Vec::new();
    let mut written = WrittenLen::new();
    walk(root, &mut |node, position| {
        ids.push((ending(&node.id), node.id.as_str(), ids.len()));
        written.add(node, position.len() + 1);
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
    if let Some(written) = written.above(BYTES_MAX, root) {
        found.in_document(TreeFault::WrittenTooLarge(written));
    }
    check_unique(root, ids, found);
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
    if node.attempts > node.max_attempts && !unread(Field::Attempts) && !unread(Field::MaxAttempts) {
        let fault = TreeFault::AttemptsOverMax { attempts: node.attempts, max: node.max_attempts };
        found.at(position, Some(Field::Attempts), fault);
    }
}

fn check_order(node: &Node, position: &Position, found: &mut Found) {
    let unread = |index: usize| {
        let child: Position = position.iter().copied().chain([index]).collect();
        found.unread(&child, Field::Order) || found.unread(&child, Field::Id)
    };
    let mut pairs = node.children.iter().zip(node.children.iter().skip(1)).enumerate();
    let inversion = pairs.find(|(index, (one, next))| {
        one.sort_key() > next.sort_key() && !unread(*index) && !unread(*index + 1)
    });
    if let Some((_, (early, late))) = inversion {
        let fault = TreeFault::Unsorted { early: early.id.to_string(), late: late.id.to_string() };
        found.at(position, Some(Field::Children), fault);
    }
}

fn check_passes(node: &Node, position: &Position, found: &mut Found) {
    let child_unread = |index: usize| {
        let child: Position = position.iter().copied().chain([index]).collect();
        found.unread(&child, Field::Passes)
    };
    if node.is_leaf() || found.unread(position, Field::Passes) {
        return;
    }
    let mut open = node.children.iter().enumerate().filter(|(_, child)| !child.passes);
    let fault = if node.passes {
        let open = open.find(|(index, _)| !child_unread(*index));
        open.map(|(_, open)| TreeFault::PassesTooEarly { open: open.id.to_string() })
    } else {
        open.next().is_none().then_some(TreeFault::PassesTooLate)
    };
    if let Some(fault) = fault {
        found.at(position, Some(Field::Passes), fault);
    }
}

/// An id with its node's number in the walk, and before them its ending as a number: most comparisons are decided
/// there, without a look at the text.
type IdKey<'t> = (u64, &'t str, usize);

/// Sorts the ids, so that equal ones stand side by side.
fn check_unique(root: &Node, mut ids: Vec<IdKey<'_>>, found: &mut Found) {
    ids.sort_unstable();
    let twins = ids
        .chunk_by(|(_, one, _), (_, next, _)| one == next)
        .filter(|group| group.len() > 1 && group.first().is_some_and(|(_, id, _)| !id.is_empty()));
    // Which node is the first with the id of the `nth` node, for each that is not the first itself.
    let mut first_of: Vec<(usize, usize)> = twins
        .flat_map(|group| {
            let first = group.first().map(|(_, _, nth)| *nth);
            group.iter().skip(1).filter_map(move |(_, _, nth)| first.map(|first| (*nth, first)))
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
        found.at(position, Some(Field::Id), TreeFault::DuplicateId { other: path_at(root, first) });
    }
}

/// The last bytes of an id: people number their nodes, so this is where they differ.
fn ending(id: &NodeId) -> u64 {
    id.as_str().bytes().rev().take(8).fold(0, |ending, byte| ending << 8 | u64::from(byte))
}
