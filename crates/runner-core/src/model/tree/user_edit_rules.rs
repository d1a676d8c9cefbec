//! The rules for edits that users make to tree.json themselves: passed nodes and the runner's fields must not change.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{Node, Tree, path_text};
use crate::model::id::NodeId;

/// One violation in a user's edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserEditError {
    /// The node's path in the tree before the edit, or after it for a new node.
    pub node: String,
    /// What the edit did.
    pub violation: ForbiddenEdit,
}

/// What an edit must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForbiddenEdit {
    PassedRemoved,
    /// A passed node has another parent.
    PassedMoved,
    /// A field of a passed node differs.
    PassedChanged,
    PassesSet,
    AttemptsSet,
}

impl fmt::Display for UserEditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self.violation {
            ForbiddenEdit::PassedRemoved => "has passed and cannot be removed: restore it",
            ForbiddenEdit::PassedMoved => "has passed and cannot be moved: move it back to its parent",
            ForbiddenEdit::PassedChanged => {
                "has passed and cannot be changed: restore it, and add a new node instead"
            }
            ForbiddenEdit::PassesSet => "only the runner can set `passes`: restore its value",
            ForbiddenEdit::AttemptsSet => "only the runner can set `attempts`: restore its value",
        };
        write!(f, "{}: {message}", self.node)
    }
}

struct LocatedNode<'t> {
    node: &'t Node,
    parent: Option<&'t NodeId>,
    path: String,
}

fn locate(tree: &Tree) -> BTreeMap<&NodeId, LocatedNode<'_>> {
    fn descend<'t>(path: &mut Vec<&'t Node>, all: &mut BTreeMap<&'t NodeId, LocatedNode<'t>>) {
        let Some(node) = path.last().copied() else { return };
        let parent = path.iter().rev().nth(1).map(|parent| &parent.id);
        all.insert(&node.id, LocatedNode { node, parent, path: path_text(path) });
        for child in &node.children {
            path.push(child);
            descend(path, all);
            path.pop();
        }
    }
    let mut all = BTreeMap::new();
    descend(&mut vec![tree.root()], &mut all);
    all
}

/// Whether the plan got further tasks, which open its root again. Whether a root with parts passes is derived from them.
fn is_extended_root(was: &LocatedNode<'_>, is: &LocatedNode<'_>) -> bool {
    let (old, new) = (was.node, is.node);
    let is_root_with_parts = was.parent.is_none() && old.passes && !old.is_leaf() && !new.is_leaf();
    let same = Node { passes: new.passes, children: new.children.clone(), ..old.clone() };
    is_root_with_parts && *new == same
}

/// The violations of a user's edit, by node. Users may change open nodes freely.
pub fn user_edit_violations(before: &Tree, after: &Tree) -> Vec<UserEditError> {
    let old = locate(before);
    let new = locate(after);
    let mut violations = Vec::new();
    let mut report =
        |path: &str, violation| violations.push(UserEditError { node: path.to_owned(), violation });
    for (id, was) in &old {
        match new.get(id) {
            None if was.node.passes => report(&was.path, ForbiddenEdit::PassedRemoved),
            Some(is) if was.node.passes && is.parent != was.parent => {
                report(&was.path, ForbiddenEdit::PassedMoved);
            }
            Some(is) if is_extended_root(was, is) => {}
            Some(is) if was.node.passes && is.node != was.node => {
                report(&was.path, ForbiddenEdit::PassedChanged);
            }
            Some(is) if !was.node.passes => {
                if is.node.is_leaf() && is.node.passes {
                    report(&was.path, ForbiddenEdit::PassesSet);
                }
                if is.node.attempts != was.node.attempts {
                    report(&was.path, ForbiddenEdit::AttemptsSet);
                }
            }
            None | Some(_) => {}
        }
    }
    for (_, is) in new.iter().filter(|(id, _)| !old.contains_key(*id)) {
        if is.node.passes && is.node.is_leaf() {
            report(&is.path, ForbiddenEdit::PassesSet);
        }
        if is.node.attempts > 0 {
            report(&is.path, ForbiddenEdit::AttemptsSet);
        }
    }
    violations.sort_by(|one, other| one.node.cmp(&other.node));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{inner, leaf, passed, tree};

    fn violations(before: Node, after: Node) -> Vec<String> {
        user_edit_violations(&tree(before), &tree(after)).iter().map(ToString::to_string).collect()
    }

    fn start() -> Node {
        inner("root", vec![inner("a", vec![passed("b"), leaf("c")]), passed("d"), leaf("e")])
    }

    #[test]
    fn users_may_change_open_nodes() {
        let open = Node { title: "new".to_owned(), max_attempts: 9, ..leaf("c") };
        let after =
            inner("root", vec![inner("a", vec![passed("b"), open]), passed("d"), leaf("f"), leaf("g")]);
        assert_eq!(violations(start(), after), [""; 0]);
        let split =
            inner("root", vec![inner("a", vec![passed("b"), inner("c", vec![leaf("h")])]), passed("d")]);
        assert_eq!(violations(start(), split), [""; 0]);
    }

    #[test]
    fn a_parent_may_pass_when_its_open_children_are_removed() {
        let after = inner("root", vec![inner("a", vec![passed("b")]), passed("d"), leaf("e")]);
        assert_eq!(violations(start(), after), [""; 0]);
    }

    #[test]
    fn passed_nodes_cannot_be_removed_moved_or_changed() {
        let gone = inner("root", vec![inner("a", vec![leaf("c")]), passed("d"), leaf("e")]);
        assert_eq!(violations(start(), gone), ["root/a/b: has passed and cannot be removed: restore it"]);
        let moved = inner("root", vec![inner("a", vec![leaf("c")]), passed("b"), passed("d"), leaf("e")]);
        assert_eq!(
            violations(start(), moved),
            ["root/a/b: has passed and cannot be moved: move it back to its parent"]
        );
        let changed = Node { order: -1, ..passed("d") };
        let changed = inner("root", vec![changed, inner("a", vec![passed("b"), leaf("c")]), leaf("e")]);
        assert_eq!(
            violations(start(), changed),
            ["root/d: has passed and cannot be changed: restore it, and add a new node instead"]
        );
    }

    #[test]
    fn a_complete_plan_can_get_further_tasks_and_nothing_else_of_it_can_change() {
        let complete = || inner("root", vec![inner("a", vec![passed("b")]), passed("d")]);
        let more = inner("root", vec![inner("a", vec![passed("b")]), passed("d"), leaf("e")]);
        assert_eq!(violations(complete(), more), [""; 0]);
        let changed = "root: has passed and cannot be changed: restore it, and add a new node instead";
        let renamed = Node { title: "other".to_owned(), ..complete() };
        assert_eq!(violations(complete(), renamed), [changed]);
        let below = inner("root", vec![inner("a", vec![passed("b"), leaf("c")]), passed("d")]);
        assert_eq!(violations(complete(), below), [changed.replace("root", "root/a")]);
        let cut = inner("root", vec![inner("a", vec![passed("b")])]);
        assert_eq!(violations(complete(), cut), ["root/d: has passed and cannot be removed: restore it"]);
        let one = inner("root", vec![leaf("b")]);
        assert_eq!(violations(passed("root"), one), [changed]);
    }

    #[test]
    fn passes_and_attempts_cannot_be_set() {
        let counted = Node { attempts: 1, ..passed("e") };
        let fresh = Node { attempts: 2, ..passed("new") };
        let below = inner("a", vec![passed("b"), Node { attempts: 1, ..leaf("c") }]);
        let after = inner("root", vec![below, passed("d"), counted, fresh]);
        assert_eq!(
            violations(start(), after),
            [
                "root/a/c: only the runner can set `attempts`: restore its value",
                "root/e: only the runner can set `passes`: restore its value",
                "root/e: only the runner can set `attempts`: restore its value",
                "root/new: only the runner can set `passes`: restore its value",
                "root/new: only the runner can set `attempts`: restore its value",
            ]
        );
    }

    #[test]
    fn a_new_passed_leaf_is_a_violation_but_not_its_parent() {
        let after = inner(
            "root",
            vec![inner("a", vec![passed("b"), leaf("c")]), passed("d"), inner("e", vec![passed("n")])],
        );
        assert_eq!(
            violations(start(), after),
            ["root/e/n: only the runner can set `passes`: restore its value"]
        );
    }
}
