//! The rules of every valid tree.

use std::ops::RangeInclusive;

use super::problem::{FaultCollector, NodeField, Position, TreeError, path_at};
use super::serialized_len::{SerializedLen, escapes_below};
use super::{ATTEMPTS_RANGE, BYTES_MAX, DEPTH_MAX, MAX_ATTEMPTS_RANGE, NODES_MAX, Node, ORDER_RANGE};
use crate::model::id::NodeId;

/// Reports every violated rule in the tree. Fields that could not be decoded are skipped.
pub(super) fn check(root: &Node, faults: &mut FaultCollector) {
    if !faults.is_complete() {
        return;
    }
    let mut rules = TreeRules::default();
    walk(root, &mut |node, position| rules.check_node(node, position, faults));
    rules.check_tree(root, || escapes_below(root), faults);
}

/// The rules, checked node by node in any order; collects what the rules about the whole tree need.
#[derive(Default)]
pub(super) struct TreeRules {
    id_hashes: Vec<u64>,
    serialized: SerializedLen,
}

impl TreeRules {
    /// Checks one node whose children are complete.
    pub(super) fn check_node(&mut self, node: &Node, position: &Position, faults: &mut FaultCollector) {
        self.id_hashes.push(hash_id(&node.id));
        self.serialized.add(node, position.len() + 1);
        check_bounds(node, position, faults);
        check_attempts(node, position, faults);
        check_order(node, position, faults);
        check_passes(node, position, faults);
        if position.len() + 1 == DEPTH_MAX && !node.is_leaf() {
            let first_child: Position = position.iter().copied().chain([0]).collect();
            faults.add_to_node(&first_child, TreeError::TooDeep);
        }
    }

    /// Checks the whole tree, after every node. Calls `escapes`, the extra bytes of escapes in all texts, only if they
    /// matter.
    pub(super) fn check_tree(
        self,
        root: &Node,
        escapes: impl FnOnce() -> usize,
        faults: &mut FaultCollector,
    ) {
        if self.id_hashes.len() > NODES_MAX {
            faults.add_too_many_nodes();
        }
        if let Some(bytes) = self.serialized.above(BYTES_MAX, escapes) {
            faults.add_to_document(TreeError::CanonicalTooLarge(bytes));
        }
        check_unique(root, self.id_hashes, faults);
    }
}

/// Visits the nodes in order, down to the deepest allowed level.
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

fn check_bounds(node: &Node, position: &Position, faults: &mut FaultCollector) {
    let mut check = |name, field, number: i64, bounds: RangeInclusive<i64>| {
        if !bounds.contains(&number) {
            let fault = TreeError::OutOfRange { field: name, bounds, found: number.to_string() };
            faults.add_to_field(position, field, fault);
        }
    };
    check("order", NodeField::Order, node.order, ORDER_RANGE);
    check("attempts", NodeField::Attempts, node.attempts.into(), ATTEMPTS_RANGE);
    check("max_attempts", NodeField::MaxAttempts, node.max_attempts.into(), MAX_ATTEMPTS_RANGE);
}

fn check_attempts(node: &Node, position: &Position, faults: &mut FaultCollector) {
    let is_undecoded = |field| faults.is_undecoded(position, field);
    if node.attempts > node.max_attempts
        && !is_undecoded(NodeField::Attempts)
        && !is_undecoded(NodeField::MaxAttempts)
    {
        let fault = TreeError::AttemptsOverMax { attempts: node.attempts, max: node.max_attempts };
        faults.add_to_field(position, NodeField::Attempts, fault);
    }
}

fn check_order(node: &Node, position: &Position, faults: &mut FaultCollector) {
    let is_undecoded = |index: usize| {
        let child: Position = position.iter().copied().chain([index]).collect();
        faults.is_undecoded(&child, NodeField::Order) || faults.is_undecoded(&child, NodeField::Id)
    };
    let mut pairs = node.children.iter().zip(node.children.iter().skip(1)).enumerate();
    let inversion = pairs.find(|(index, (one, next))| {
        one.sort_key() > next.sort_key() && !is_undecoded(*index) && !is_undecoded(*index + 1)
    });
    if let Some((_, (early, late))) = inversion {
        let fault = TreeError::Unsorted { early: early.id.to_string(), late: late.id.to_string() };
        faults.add_to_field(position, NodeField::Children, fault);
    }
}

fn check_passes(node: &Node, position: &Position, faults: &mut FaultCollector) {
    let is_child_undecoded = |index: usize| {
        let child: Position = position.iter().copied().chain([index]).collect();
        faults.is_undecoded(&child, NodeField::Passes)
    };
    if node.is_leaf() || faults.is_undecoded(position, NodeField::Passes) {
        return;
    }
    let mut open = node.children.iter().enumerate().filter(|(_, child)| !child.passes);
    let fault = if node.passes {
        let open = open.find(|(index, _)| !is_child_undecoded(*index));
        open.map(|(_, open)| TreeError::PassesTooEarly { open: open.id.to_string() })
    } else {
        open.next().is_none().then_some(TreeError::PassesTooLate)
    };
    if let Some(fault) = fault {
        faults.add_to_field(position, NodeField::Passes, fault);
    }
}

/// Reports duplicate ids. If all hashes differ, as in almost every valid tree, so do all ids.
fn check_unique(root: &Node, mut id_hashes: Vec<u64>, faults: &mut FaultCollector) {
    id_hashes.sort_unstable();
    if id_hashes.is_sorted_by(|one, next| one < next) {
        return;
    }
    let mut ids = Vec::with_capacity(id_hashes.len());
    walk(root, &mut |node, position| ids.push((&node.id, position.clone())));
    ids.retain(|(id, _)| !id.is_invalid());
    ids.sort_unstable();
    for group in ids.chunk_by(|(one, _), (next, _)| one == next) {
        let Some(((_, first), others)) = group.split_first() else { continue };
        for (_, position) in others {
            let fault = TreeError::DuplicateId { other: path_at(root, first) };
            faults.add_to_field(position, NodeField::Id, fault);
        }
    }
}

/// FNV-1a.
fn hash_id(id: &NodeId) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::Tree;
    use crate::model::tree::sample::{inner, leaf, passed};

    fn problems(root: Node) -> Vec<String> {
        Tree::new(root).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    fn chain(levels: usize) -> Node {
        chain_to(leaf("n0"), levels)
    }

    fn chain_to(deepest: Node, levels: usize) -> Node {
        (1..levels).fold(deepest, |below, level| inner(&format!("n{level}"), vec![below]))
    }

    #[test]
    fn nodes_that_the_runner_made_are_checked() {
        let open = Node { order: 2, ..leaf("b") };
        let early = Node { passes: true, ..inner("a", vec![passed("x"), leaf("y")]) };
        let late = Node { passes: false, order: 1, attempts: 4, ..inner("x", vec![passed("z")]) };
        assert_eq!(
            problems(inner("root", vec![open, early, late])),
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
    fn numbers_are_within_bounds() {
        let most = Node { order: 1 << 53, max_attempts: 1_000_001, attempts: 1_000_001, ..leaf("root") };
        assert_eq!(
            problems(most),
            [
                "root: `order` must be from -9007199254740991 to 9007199254740991, found 9007199254740992: change the value",
                "root: `attempts` must be from 0 to 1000000, found 1000001: change the value",
                "root: `max_attempts` must be from 1 to 1000000, found 1000001: change the value",
            ]
        );
        assert_eq!(problems(Node { max_attempts: 0, ..leaf("root") }).len(), 1);
        assert_eq!(problems(Node { max_attempts: 1_000_000, ..leaf("root") }), [""; 0]);
    }

    #[test]
    fn limits_are_inclusive() {
        assert_eq!(problems(Node { attempts: 3, ..leaf("root") }), [""; 0]);
        assert_eq!(problems(chain(DEPTH_MAX)), [""; 0]);
        let deepest = problems(chain(DEPTH_MAX + 1)).join("\n");
        assert!(
            deepest.ends_with(
                "/n2/n1/n0: is on level 33: at most 32 levels are allowed, so make the tree flatter"
            )
        );
    }

    #[test]
    fn nodes_below_the_deepest_level_are_reported_once_and_not_checked() {
        let faulty = Node { attempts: 9, ..leaf("n0") };
        assert_eq!(problems(chain_to(faulty.clone(), DEPTH_MAX)).len(), 1);
        assert_eq!(problems(chain_to(faulty, DEPTH_MAX + 1)), problems(chain(DEPTH_MAX + 1)));
    }

    #[test]
    fn a_duplicate_node_is_not_also_out_of_order() {
        let problems = problems(inner("root", vec![leaf("a"), leaf("a")]));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("is also the id of"), "{problems:?}");
    }

    #[test]
    fn a_hundred_thousand_nodes_are_allowed_and_no_more() {
        let wide = |nodes: usize| inner("root", (1..nodes).map(|nth| leaf(&format!("n{nth:06}"))).collect());
        assert_eq!(problems(wide(NODES_MAX)), [""; 0]);
        assert_eq!(problems(wide(NODES_MAX + 1)), ["the tree has more than 100000 nodes: remove some"]);
    }

    #[test]
    fn a_tree_is_measured_in_canonical_form() {
        let text = |bytes: usize| Node { title: "x".repeat(bytes), ..leaf("root") };
        let frame = Tree::new(text(0)).unwrap().bytes().len();
        assert_eq!(problems(text(BYTES_MAX - frame)), [""; 0]);
        let above = problems(text(BYTES_MAX - frame + 1));
        assert_eq!(
            above,
            ["the tree has 67108865 bytes in canonical form: at most 67108864 are allowed, so shorten it"]
        );
    }
}
