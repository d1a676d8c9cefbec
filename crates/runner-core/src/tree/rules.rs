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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use crate::tree::sample::{inner, leaf, passed};

    fn told(root: Node) -> Vec<String> {
        Tree::new(root).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    fn chain(levels: usize) -> Node {
        (1..levels).fold(leaf("n0"), |below, level| inner(&format!("n{level}"), vec![below]))
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
    fn what_is_at_a_limit_is_within_it() {
        assert_eq!(told(Node { attempts: 3, ..leaf("root") }), [""; 0]);
        assert_eq!(told(chain(DEPTH_MAX)), [""; 0]);
        let deepest = told(chain(DEPTH_MAX + 1)).join("\n");
        assert!(deepest.ends_with(
            "/n2/n1/n0: lies on level 33: at most 32 levels are allowed, so make the tree flatter"
        ));
    }

    #[test]
    fn a_hundred_thousand_nodes_are_allowed_and_no_more() {
        let wide = |nodes: usize| inner("root", (1..nodes).map(|nth| leaf(&format!("n{nth:06}"))).collect());
        assert_eq!(told(wide(NODES_MAX)), [""; 0]);
        assert_eq!(told(wide(NODES_MAX + 1)), ["the tree has more than 100000 nodes: remove some"]);
    }

    #[test]
    fn ids_that_end_alike_are_told_apart() {
        let ids = ["a-12345678", "b-12345678", "12345678"];
        assert_eq!(
            told(inner("root", ids.map(|id| Node { order: i64::from(id == "12345678"), ..leaf(id) }).into())),
            [""; 0]
        );
        let twins = vec![leaf("a-12345678"), inner("b", vec![leaf("a-12345678")])];
        assert_eq!(told(inner("root", twins)).len(), 1);
    }

    #[test]
    fn a_tree_is_measured_as_it_is_written() {
        let text = |bytes: usize| Node { title: "x".repeat(bytes), ..leaf("root") };
        let frame = Tree::new(text(0)).unwrap().to_bytes().len();
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
