//! Properties of every tree: encoding, selection, problems and forbidden edits.

use proptest::prelude::*;
use proptest::sample::Index;
use runner_core::model::tree::{
    ForbiddenEdit, Node, Selection, Tree, TreeProblem, select, user_edit_violations,
};

use crate::document_properties::{changed, tree, valid_tree};
use crate::holds;

#[test]
fn canonical_form_survives_decoding_and_encoding() {
    holds(valid_tree(), |tree| {
        let bytes = tree.bytes();
        let again = Tree::decode(bytes);
        prop_assert_eq!(again.as_ref().map(Tree::bytes), Ok(bytes));
        prop_assert_eq!(again.as_ref(), Ok(&tree));
        prop_assert_eq!(Tree::new(tree.root().clone()), Ok(tree));
        Ok(())
    });
}

/// All open leaves in the order of a walk that sorts the children itself.
fn open_leaves(node: &Node) -> Vec<&Node> {
    let mut children: Vec<&Node> = node.children.iter().collect();
    children.sort_by(|one, other| {
        one.order.cmp(&other.order).then(one.id.as_str().as_bytes().cmp(other.id.as_str().as_bytes()))
    });
    if children.is_empty() && !node.passes {
        return vec![node];
    }
    children.into_iter().flat_map(open_leaves).collect()
}

#[test]
fn first_open_leaf_of_a_sorted_walk_is_selected() {
    holds(valid_tree(), |tree| {
        let first = open_leaves(tree.root()).first().copied();
        match select(&tree) {
            Selection::Complete => prop_assert_eq!(first, None),
            Selection::Leaf(choice) => {
                prop_assert_eq!(Some(choice.leaf), first);
                prop_assert!(choice.leaf.attempts < choice.leaf.max_attempts);
                prop_assert_eq!(tree.path_to(&choice.leaf.id), Some(choice.path.clone()));
            }
            Selection::Stuck(choice) => {
                prop_assert_eq!(Some(choice.leaf), first);
                prop_assert_eq!(choice.leaf.attempts, choice.leaf.max_attempts);
            }
        }
        Ok(())
    });
}

/// Calls `work` for every node, children first.
fn visit(node: &mut Node, work: &mut impl FnMut(&mut Node)) {
    node.children.iter_mut().for_each(|child| visit(child, work));
    work(node);
}

fn selected(tree: &Tree) -> (u8, Option<String>) {
    match select(tree) {
        Selection::Complete => (0, None),
        Selection::Leaf(choice) => (1, Some(choice.leaf.id.to_string())),
        Selection::Stuck(choice) => (2, Some(choice.leaf.id.to_string())),
    }
}

#[test]
fn texts_do_not_affect_the_selection() {
    holds((valid_tree(), ".{0,9}"), |(tree, words)| {
        let mut root = tree.root().clone();
        visit(&mut root, &mut |node| {
            node.title.clone_from(&words);
            node.goal.push_str(&words);
            node.acceptance.push(words.clone());
        });
        let reworded = Tree::new(root).map_err(|problems| TestCaseError::fail(format!("{problems:?}")))?;
        prop_assert_eq!(selected(&reworded), selected(&tree));
        Ok(())
    });
}

#[test]
fn problems_are_in_node_order_and_deterministic() {
    holds(changed(tree()), |document| {
        let text = document.to_string();
        let Err(problems) = Tree::decode(text.as_bytes()) else { return Ok(()) };
        prop_assert_eq!(Tree::decode(text.as_bytes()), Err(problems.clone()));
        let around = problems.iter().take_while(|problem| problem.node.is_empty()).count();
        let (_, in_nodes) = problems.split_at(around);
        prop_assert!(in_nodes.iter().all(|problem| !problem.node.is_empty()), "{:?}", problems);
        // A node's problems are adjacent, and parents come before their children.
        let mut nodes: Vec<&str> =
            in_nodes.iter().map(|problem: &TreeProblem| problem.node.as_str()).collect();
        nodes.dedup();
        let parents_first = nodes.iter().enumerate().all(|(nth, node)| {
            nodes.iter().skip(nth + 1).all(|later| !node.starts_with(&format!("{later}/")) || node == later)
        });
        prop_assert!(parents_first || !has_unique_ids(&document), "{:?}", nodes);
        Ok(())
    });
}

/// Whether every id in a document is unique, so that a path names one node.
fn has_unique_ids(document: &serde_json::Value) -> bool {
    let text = document.to_string();
    let mut ids: Vec<&str> =
        text.split("\"id\":").skip(1).filter_map(|rest| rest.split(',').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() == all
}

#[test]
fn unchanged_tree_has_no_forbidden_edit() {
    holds(valid_tree(), |tree| {
        prop_assert_eq!(user_edit_violations(&tree, &tree), []);
        Ok(())
    });
}

/// The ids of the nodes that satisfy `condition`.
fn ids(tree: &Tree, condition: impl Fn(&Node) -> bool) -> Vec<String> {
    let mut ids = Vec::new();
    visit(&mut tree.root().clone(), &mut |node| {
        if condition(node) {
            ids.push(node.id.to_string());
        }
    });
    ids
}

/// The tree after `edit` on the node with this id; the parents' `passes` are derived again.
fn edited(tree: &Tree, id: &str, edit: &dyn Fn(&mut Node)) -> Tree {
    let mut root = tree.root().clone();
    visit(&mut root, &mut |node| {
        if node.id.as_str() == id {
            edit(node);
        }
        if !node.children.is_empty() {
            node.passes = node.children.iter().all(|child| child.passes);
        }
    });
    Tree::new(root).expect("the edit keeps the tree valid")
}

fn is_reported(before: &Tree, after: &Tree, id: &str, violation: ForbiddenEdit) -> bool {
    let faults = user_edit_violations(before, after);
    faults.iter().any(|fault| fault.node.rsplit('/').next() == Some(id) && fault.violation == violation)
}

#[test]
fn every_forbidden_edit_is_reported() {
    holds((valid_tree(), any::<Index>()), |(tree, pick)| {
        let pick = |ids: &[String]| (!ids.is_empty()).then(|| ids[pick.index(ids.len())].clone());
        if let Some(id) = pick(&ids(&tree, |node| node.passes)) {
            let reworded = edited(&tree, &id, &|node| node.goal.push('!'));
            prop_assert!(is_reported(&tree, &reworded, &id, ForbiddenEdit::PassedChanged));
        }
        let open_leaf = |node: &Node| !node.passes && node.children.is_empty();
        if let Some(id) = pick(&ids(&tree, open_leaf)) {
            let passed = edited(&tree, &id, &|node| node.passes = true);
            prop_assert!(is_reported(&tree, &passed, &id, ForbiddenEdit::PassesSet));
        }
        if let Some(id) = pick(&ids(&tree, |node| !node.passes)) {
            let counted = edited(&tree, &id, &|node| {
                node.max_attempts += 1;
                node.attempts += 1;
            });
            prop_assert!(is_reported(&tree, &counted, &id, ForbiddenEdit::AttemptsSet));
            prop_assert_eq!(
                user_edit_violations(&tree, &edited(&tree, &id, &|node| node.title.push('!'))),
                []
            );
        }
        if let Some(id) = pick(&ids(&tree, |node| node.children.iter().any(|child| child.passes))) {
            let remove_passed = |node: &mut Node| node.children.retain(|child| !child.passes);
            let passed = ids(&tree, |node| node.id.as_str() == id).len();
            prop_assert_eq!(passed, 1);
            let without = edited(&tree, &id, &remove_passed);
            let violations = user_edit_violations(&tree, &without);
            prop_assert!(
                violations.iter().any(|fault| fault.violation == ForbiddenEdit::PassedRemoved),
                "{:?}",
                violations
            );
        }
        Ok(())
    });
}

#[test]
fn moved_passed_node_is_reported() {
    holds(valid_tree(), |tree| {
        let root = tree.root();
        let Some(at) = root.children.iter().position(|child| child.passes) else { return Ok(()) };
        if root.children.len() < 2 {
            return Ok(());
        }
        let mut moved = root.clone();
        let child = moved.children.remove(at);
        let id = child.id.to_string();
        moved.children[0].children.push(child);
        moved.children[0].children.sort_by(|one, other| (one.order, &one.id).cmp(&(other.order, &other.id)));
        visit(&mut moved, &mut |node| {
            if !node.children.is_empty() {
                node.passes = node.children.iter().all(|child| child.passes);
            }
        });
        let after = Tree::new(moved).map_err(|problems| TestCaseError::fail(format!("{problems:?}")))?;
        prop_assert!(is_reported(&tree, &after, &id, ForbiddenEdit::PassedMoved));
        Ok(())
    });
}
