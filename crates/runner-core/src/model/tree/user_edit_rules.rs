//! What a user's own edit of the tree may not do: change what passed, or what the runner counts.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{Node, Tree, path_text};
use crate::model::id::NodeId;

/// One thing that an edit may not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserEditError {
    /// The node's path in the tree before the edit, or after it for a new node.
    pub node: String,
    /// What was done to it.
    pub breach: ForbiddenEdit,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForbiddenEdit {
    /// A node that passed is gone.
    PassedRemoved,
    /// A node that passed has another parent.
    PassedMoved,
    /// A node that passed is not the same any more.
    PassedChanged,
    /// `passes` was set by hand.
    PassesSet,
    /// `attempts` was set by hand.
    AttemptsSet,
}

impl fmt::Display for UserEditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let breach = match self.breach {
            ForbiddenEdit::PassedRemoved => "passed and may not be removed: put it back",
            ForbiddenEdit::PassedMoved => "passed and may not be moved: put it back under its parent",
            ForbiddenEdit::PassedChanged => {
                "passed and may not be changed: put it back, and add a new node instead"
            }
            ForbiddenEdit::PassesSet => "`passes` is the runner's to set: put its value back",
            ForbiddenEdit::AttemptsSet => "`attempts` is the runner's to count: put its value back",
        };
        write!(f, "{}: {breach}", self.node)
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

/// Everything in a user's edit that the rules forbid, by node. Open nodes are the user's to change.
pub fn user_edit_faults(before: &Tree, after: &Tree) -> Vec<UserEditError> {
    let (old, new) = (locate(before), locate(after));
    let mut faults = Vec::new();
    let mut report = |path: &str, breach| faults.push(UserEditError { node: path.to_owned(), breach });
    for (id, was) in &old {
        match new.get(id) {
            None if was.node.passes => report(&was.path, ForbiddenEdit::PassedRemoved),
            Some(is) if was.node.passes && is.parent != was.parent => {
                report(&was.path, ForbiddenEdit::PassedMoved)
            }
            Some(is) if was.node.passes && is.node != was.node => {
                report(&was.path, ForbiddenEdit::PassedChanged)
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
    faults.sort_by(|one, other| one.node.cmp(&other.node));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{inner, leaf, passed, tree};

    fn told(before: Node, after: Node) -> Vec<String> {
        user_edit_faults(&tree(before), &tree(after)).iter().map(ToString::to_string).collect()
    }

    fn start() -> Node {
        inner("root", vec![inner("a", vec![passed("b"), leaf("c")]), passed("d"), leaf("e")])
    }

    #[test]
    fn open_nodes_are_the_user_s_to_change() {
        let open = Node { title: "new".to_owned(), max_attempts: 9, ..leaf("c") };
        let after =
            inner("root", vec![inner("a", vec![passed("b"), open]), passed("d"), leaf("f"), leaf("g")]);
        assert_eq!(told(start(), after), [""; 0]);
        let split =
            inner("root", vec![inner("a", vec![passed("b"), inner("c", vec![leaf("h")])]), passed("d")]);
        assert_eq!(told(start(), split), [""; 0]);
    }

    #[test]
    fn an_inner_node_may_come_to_pass_when_its_open_children_go() {
        let after = inner("root", vec![inner("a", vec![passed("b")]), passed("d"), leaf("e")]);
        assert_eq!(told(start(), after), [""; 0]);
    }

    #[test]
    fn what_passed_stays_where_it_is_and_as_it_is() {
        let gone = inner("root", vec![inner("a", vec![leaf("c")]), passed("d"), leaf("e")]);
        assert_eq!(told(start(), gone), ["root/a/b: passed and may not be removed: put it back"]);
        let moved = inner("root", vec![inner("a", vec![leaf("c")]), passed("b"), passed("d"), leaf("e")]);
        assert_eq!(
            told(start(), moved),
            ["root/a/b: passed and may not be moved: put it back under its parent"]
        );
        let changed = Node { order: -1, ..passed("d") };
        let changed = inner("root", vec![changed, inner("a", vec![passed("b"), leaf("c")]), leaf("e")]);
        assert_eq!(
            told(start(), changed),
            ["root/d: passed and may not be changed: put it back, and add a new node instead"]
        );
    }

    #[test]
    fn passes_and_attempts_are_the_runner_s() {
        let counted = Node { attempts: 1, ..passed("e") };
        let fresh = Node { attempts: 2, ..passed("new") };
        let below = inner("a", vec![passed("b"), Node { attempts: 1, ..leaf("c") }]);
        let after = inner("root", vec![below, passed("d"), counted, fresh]);
        assert_eq!(
            told(start(), after),
            [
                "root/a/c: `attempts` is the runner's to count: put its value back",
                "root/e: `passes` is the runner's to set: put its value back",
                "root/e: `attempts` is the runner's to count: put its value back",
                "root/new: `passes` is the runner's to set: put its value back",
                "root/new: `attempts` is the runner's to count: put its value back",
            ]
        );
    }

    #[test]
    fn a_new_inner_node_may_pass_with_what_is_below_it() {
        let after = inner(
            "root",
            vec![inner("a", vec![passed("b"), leaf("c")]), passed("d"), inner("e", vec![passed("n")])],
        );
        assert_eq!(told(start(), after), ["root/e/n: `passes` is the runner's to set: put its value back"]);
    }
}
