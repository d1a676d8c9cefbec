//! The rules that hold in every tree the runner writes.

use std::ops::RangeInclusive;

use super::problem::{FaultCollector, NodeField, Position, TreeError, path_at};
use super::serialized_len::{SerializedLen, escapes_below};
use super::{ATTEMPTS_RANGE, BYTES_MAX, DEPTH_MAX, MAX_ATTEMPTS_RANGE, NODES_MAX, Node, ORDER_RANGE};
use crate::model::id::NodeId;

/// Notes every rule that is broken at or below `root`. Fields that could not be read are passed over.
pub(super) fn check(root: &Node, found: &mut FaultCollector) {
    if !found.can_be_ruled() {
        return;
    }
    let mut rules = TreeRules::default();
    walk(root, &mut |node, position| rules.see(node, position, found));
    rules.of_the_whole(root, || escapes_below(root), found);
}

/// The rules, looked at node by node in any order; what those about the whole need is gathered on the way.
#[derive(Default)]
pub(super) struct TreeRules {
    fingerprints: Vec<u64>,
    written: SerializedLen,
}

impl TreeRules {
    /// Notes the rules that are broken at one node, once its children are known.
    pub(super) fn see(&mut self, node: &Node, position: &Position, found: &mut FaultCollector) {
        self.fingerprints.push(fingerprint(&node.id));
        self.written.add(node, position.len() + 1);
        check_bounds(node, position, found);
        check_attempts(node, position, found);
        check_order(node, position, found);
        check_passes(node, position, found);
        if position.len() + 1 == DEPTH_MAX && !node.is_leaf() {
            let first_child: Position = position.iter().copied().chain([0]).collect();
            found.at(&first_child, None, TreeError::TooDeep);
        }
    }

    /// Notes the rules about the whole that are broken, once every node was seen. What the escapes in all texts cost
    /// is asked for only where it decides.
    pub(super) fn of_the_whole(
        self,
        root: &Node,
        escapes: impl FnOnce() -> usize,
        found: &mut FaultCollector,
    ) {
        if self.fingerprints.len() > NODES_MAX {
            found.too_many_nodes();
        }
        if let Some(written) = self.written.above(BYTES_MAX, escapes) {
            found.in_document(TreeError::WrittenTooLarge(written));
        }
        check_unique(root, self.fingerprints, found);
    }
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

fn check_bounds(node: &Node, position: &Position, found: &mut FaultCollector) {
    let mut check = |name, field, number: i64, bounds: RangeInclusive<i64>| {
        if !bounds.contains(&number) {
            let fault = TreeError::OutOfRange { field: name, bounds, found: number.to_string() };
            found.at(position, Some(field), fault);
        }
    };
    check("order", NodeField::Order, node.order, ORDER_RANGE);
    check("attempts", NodeField::Attempts, node.attempts.into(), ATTEMPTS_RANGE);
    check("max_attempts", NodeField::MaxAttempts, node.max_attempts.into(), MAX_ATTEMPTS_RANGE);
}

fn check_attempts(node: &Node, position: &Position, found: &mut FaultCollector) {
    let unread = |field| found.unread(position, field);
    if node.attempts > node.max_attempts && !unread(NodeField::Attempts) && !unread(NodeField::MaxAttempts) {
        let fault = TreeError::AttemptsOverMax { attempts: node.attempts, max: node.max_attempts };
        found.at(position, Some(NodeField::Attempts), fault);
    }
}

fn check_order(node: &Node, position: &Position, found: &mut FaultCollector) {
    let unread = |index: usize| {
        let child: Position = position.iter().copied().chain([index]).collect();
        found.unread(&child, NodeField::Order) || found.unread(&child, NodeField::Id)
    };
    let mut pairs = node.children.iter().zip(node.children.iter().skip(1)).enumerate();
    let inversion = pairs.find(|(index, (one, next))| {
        one.sort_key() > next.sort_key() && !unread(*index) && !unread(*index + 1)
    });
    if let Some((_, (early, late))) = inversion {
        let fault = TreeError::Unsorted { early: early.id.to_string(), late: late.id.to_string() };
        found.at(position, Some(NodeField::Children), fault);
    }
}

fn check_passes(node: &Node, position: &Position, found: &mut FaultCollector) {
    let child_unread = |index: usize| {
        let child: Position = position.iter().copied().chain([index]).collect();
        found.unread(&child, NodeField::Passes)
    };
    if node.is_leaf() || found.unread(position, NodeField::Passes) {
        return;
    }
    let mut open = node.children.iter().enumerate().filter(|(_, child)| !child.passes);
    let fault = if node.passes {
        let open = open.find(|(index, _)| !child_unread(*index));
        open.map(|(_, open)| TreeError::PassesTooEarly { open: open.id.to_string() })
    } else {
        open.next().is_none().then_some(TreeError::PassesTooLate)
    };
    if let Some(fault) = fault {
        found.at(position, Some(NodeField::Passes), fault);
    }
}

/// Notes the ids that stand twice. Where all fingerprints differ, as they do in every good tree, so do all ids.
fn check_unique(root: &Node, mut fingerprints: Vec<u64>, found: &mut FaultCollector) {
    fingerprints.sort_unstable();
    if fingerprints.is_sorted_by(|one, next| one < next) {
        return;
    }
    let mut ids = Vec::with_capacity(fingerprints.len());
    walk(root, &mut |node, position| ids.push((&node.id, position.clone())));
    ids.retain(|(id, _)| !id.is_unreadable());
    ids.sort_unstable();
    for group in ids.chunk_by(|(one, _), (next, _)| one == next) {
        let Some(((_, first), others)) = group.split_first() else { continue };
        for (_, position) in others {
            found.at(position, Some(NodeField::Id), TreeError::DuplicateId { other: path_at(root, first) });
        }
    }
}

/// A number that is the same for the same id (FNV-1a).
fn fingerprint(id: &NodeId) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::Tree;
    use crate::model::tree::sample::{inner, leaf, passed};

    fn told(root: Node) -> Vec<String> {
        Tree::new(root).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    fn chain(levels: usize) -> Node {
        chain_to(leaf("n0"), levels)
    }

    fn chain_to(deepest: Node, levels: usize) -> Node {
        (1..levels).fold(deepest, |below, level| inner(&format!("n{level}"), vec![below]))
    }

    #[test]
    fn nodes_that_the_runner_made_keep_the_rules_too() {
        let open = Node { order: 2, ..leaf("b") };
        let early = Node { passes: true, ..inner("a", vec![passed("x"), leaf("y")]) };
        let late = Node { passes: false, order: 1, attempts: 4, ..inner("x", vec![passed("z")]) };
        assert_eq!(
            told(inner("root", vec![open, early, late])),
            [
                "root: `children` are out of order: `a` belongs before `b` (sorted by order, then by id)",
                "root/a: `passes` is true although its child `y` is open: set it to false",
                "root/x: `id` is also the id of root/a/x: give one of the two another id",
                "root/x: `passes` is false although all its children pass: set it to true",
                "root/x: `attempts` is 4, above `max_attempts` 3: lower it to 3 or less",
            ]
        );
    }

    #[test]
    fn a_number_out_of_its_bounds_could_not_be_read_back() {
        let most = Node { order: 1 << 53, max_attempts: 1_000_001, attempts: 1_000_001, ..leaf("root") };
        assert_eq!(
            told(most),
            [
                "root: `order` must be from -9007199254740991 to 9007199254740991, found 9007199254740992: change the value",
                "root: `attempts` must be from 0 to 1000000, found 1000001: change the value",
                "root: `max_attempts` must be from 1 to 1000000, found 1000001: change the value",
            ]
        );
        assert_eq!(told(Node { max_attempts: 0, ..leaf("root") }).len(), 1);
        assert_eq!(told(Node { max_attempts: 1_000_000, ..leaf("root") }), [""; 0]);
    }

    #[test]
    fn what_is_at_a_limit_is_within_it() {
        assert_eq!(told(Node { attempts: 3, ..leaf("root") }), [""; 0]);
        assert_eq!(told(chain(DEPTH_MAX)), [""; 0]);
        let deepest = told(chain(DEPTH_MAX + 1)).join("\n");
        assert!(deepest.ends_with(
            "/n2/n1/n0: lies on level 33: at most 32 levels are allowed, so make the tree flatter"
        ));
    }

    #[test]
    fn what_lies_too_deep_is_told_once_and_not_looked_into() {
        let faulty = Node { attempts: 9, ..leaf("n0") };
        assert_eq!(told(chain_to(faulty.clone(), DEPTH_MAX)).len(), 1);
        assert_eq!(told(chain_to(faulty, DEPTH_MAX + 1)), told(chain(DEPTH_MAX + 1)));
    }

    #[test]
    fn a_node_that_stands_twice_is_not_out_of_order_as_well() {
        let found = told(inner("root", vec![leaf("a"), leaf("a")]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("is also the id of"), "{found:?}");
    }

    #[test]
    fn a_hundred_thousand_nodes_are_allowed_and_no_more() {
        let wide = |nodes: usize| inner("root", (1..nodes).map(|nth| leaf(&format!("n{nth:06}"))).collect());
        assert_eq!(told(wide(NODES_MAX)), [""; 0]);
        assert_eq!(told(wide(NODES_MAX + 1)), ["the tree has more than 100000 nodes: remove some"]);
    }

    #[test]
    fn a_tree_is_measured_as_it_is_written() {
        let text = |bytes: usize| Node { title: "x".repeat(bytes), ..leaf("root") };
        let frame = Tree::new(text(0)).unwrap().bytes().len();
        assert_eq!(told(text(BYTES_MAX - frame)), [""; 0]);
        let above = told(text(BYTES_MAX - frame + 1));
        assert_eq!(
            above,
            [
                "the tree has 67108865 bytes once it is written out: at most 67108864 are allowed, so shorten it"
            ]
        );
    }
}
