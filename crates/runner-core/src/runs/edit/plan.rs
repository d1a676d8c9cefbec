//! Edits of the tree: add, change, split, remove, move, allow.

use super::{EditError, NewNode, NodeChanges, SiblingPosition, UserEdit};
use crate::model::id::NodeId;
use crate::model::tree::{MAX_ATTEMPTS_MAX, Node, Tree, path_text, user_edit_violations};

/// Applies an edit to the tree. The result is checked against the rules for users' edits.
pub(super) fn apply(before: &Tree, edit: &UserEdit) -> Result<Tree, EditError> {
    let mut root = before.root().clone();
    match edit {
        UserEdit::Add { under, node, place } => {
            refuse_duplicate(before, node)?;
            insert(&mut open_parent(&mut root, before, under)?.children, new_node(node, 0), place, under)?;
        }
        UserEdit::Split { node, into } => split(&mut root, before, node, into)?,
        UserEdit::Edit { node, to } => change(open_node(&mut root, before, node)?, to, before)?,
        UserEdit::Remove { node } => remove(&mut root, before, node)?,
        UserEdit::Move { node, under, place } => relocate(&mut root, before, node, under, place)?,
        UserEdit::Allow { node, more } => {
            let leaf = open_leaf(&mut root, before, node)?;
            leaf.max_attempts = leaf.max_attempts.saturating_add(*more).min(MAX_ATTEMPTS_MAX);
        }
        UserEdit::Answer { .. } | UserEdit::Note { .. } | UserEdit::Approve { .. } => {}
    }
    root.derive_passes();
    let after = Tree::new(root).map_err(EditError::Tree)?;
    let violations = user_edit_violations(before, &after);
    if violations.is_empty() { Ok(after) } else { Err(EditError::RunnerOwned(violations)) }
}

fn path_of(tree: &Tree, id: &NodeId) -> String {
    tree.path_to(id).map(|path| path_text(&path)).unwrap_or_default()
}

fn open_node<'t>(root: &'t mut Node, tree: &Tree, id: &NodeId) -> Result<&'t mut Node, EditError> {
    let node = root.find_mut(id).ok_or_else(|| EditError::NoSuchNode(id.clone()))?;
    if node.passes { Err(passed(tree, id, EditError::Passed)) } else { Ok(node) }
}

fn open_leaf<'t>(root: &'t mut Node, tree: &Tree, id: &NodeId) -> Result<&'t mut Node, EditError> {
    let node = open_node(root, tree, id)?;
    if node.is_leaf() { Ok(node) } else { Err(EditError::NotALeaf(path_of(tree, id))) }
}

/// A node that can get children.
fn open_parent<'t>(root: &'t mut Node, tree: &Tree, id: &NodeId) -> Result<&'t mut Node, EditError> {
    let node = root.find_mut(id).ok_or_else(|| EditError::NoSuchNode(id.clone()))?;
    if tree.accepts_children(node) { Ok(node) } else { Err(passed(tree, id, EditError::UnderPassed)) }
}

/// Why a task that has passed cannot be changed. If it is the whole goal, no task can be added either.
fn passed(tree: &Tree, id: &NodeId, of_task: fn(String) -> EditError) -> EditError {
    let is_goal = *id == tree.root().id && !tree.accepts_children(tree.root());
    if is_goal { EditError::GoalPassed(id.clone()) } else { of_task(path_of(tree, id)) }
}

fn refuse_duplicate(tree: &Tree, node: &NewNode) -> Result<(), EditError> {
    let is_taken = tree.path_to(&node.id).is_some();
    if is_taken { Err(EditError::Taken(node.id.clone())) } else { Ok(()) }
}

fn new_node(node: &NewNode, order: i64) -> Node {
    Node {
        id: node.id.clone(),
        order,
        title: node.title.clone(),
        goal: node.goal.clone(),
        acceptance: node.acceptance.clone(),
        passes: false,
        attempts: 0,
        max_attempts: node.max_attempts,
        children: Vec::new(),
    }
}

fn split(root: &mut Node, tree: &Tree, id: &NodeId, into: &[NewNode]) -> Result<(), EditError> {
    let leaf = open_leaf(root, tree, id)?;
    if into.len() < 2 {
        return Err(EditError::TooFewParts);
    }
    for (order, node) in (1_i64..).zip(into) {
        refuse_duplicate(tree, node)?;
        leaf.children.push(new_node(node, order));
    }
    Ok(())
}

fn change(node: &mut Node, to: &NodeChanges, tree: &Tree) -> Result<(), EditError> {
    let NodeChanges { title, goal, acceptance, max_attempts } = to.clone();
    if max_attempts.is_some_and(|max| max < node.attempts) {
        return Err(EditError::BelowAttempts { node: path_of(tree, &node.id), attempts: node.attempts });
    }
    node.title = title.unwrap_or_else(|| node.title.clone());
    node.goal = goal.unwrap_or_else(|| node.goal.clone());
    node.acceptance = acceptance.unwrap_or_else(|| node.acceptance.clone());
    node.max_attempts = max_attempts.unwrap_or(node.max_attempts);
    Ok(())
}

/// Removes a node, if nothing in its subtree has passed.
fn remove(root: &mut Node, tree: &Tree, id: &NodeId) -> Result<(), EditError> {
    refuse_root(tree, id)?;
    let node = open_node(root, tree, id)?;
    if let Some(passed) = first_passed(node) {
        let descendant = path_of(tree, &passed);
        return Err(EditError::PassedBelow { node: path_of(tree, id), descendant });
    }
    detach(root, id)?;
    Ok(())
}

fn first_passed(node: &Node) -> Option<NodeId> {
    if node.passes { Some(node.id.clone()) } else { node.children.iter().find_map(first_passed) }
}

fn detach(node: &mut Node, id: &NodeId) -> Result<Node, EditError> {
    fn search(node: &mut Node, id: &NodeId) -> Option<Node> {
        let at = node.children.iter().position(|child| child.id == *id);
        match at {
            Some(at) => Some(node.children.remove(at)),
            None => node.children.iter_mut().find_map(|child| search(child, id)),
        }
    }
    search(node, id).ok_or_else(|| EditError::NoSuchNode(id.clone()))
}

fn refuse_root(tree: &Tree, id: &NodeId) -> Result<(), EditError> {
    if tree.root().id == *id { Err(EditError::Root(id.clone())) } else { Ok(()) }
}

fn relocate(
    root: &mut Node,
    tree: &Tree,
    id: &NodeId,
    under: &NodeId,
    place: &SiblingPosition,
) -> Result<(), EditError> {
    refuse_root(tree, id)?;
    let node = open_node(root, tree, id)?;
    if node.find_mut(under).is_some() {
        return Err(EditError::UnderItself { node: path_of(tree, id) });
    }
    open_parent(root, tree, under)?;
    let node = detach(root, id)?;
    insert(&mut open_parent(root, tree, under)?.children, node, place, under)
}

/// Inserts a node among its siblings. If no `order` is free between its neighbours, the orders of the open siblings after it
/// are increased, or else those of the open siblings before it are decreased.
fn insert(
    siblings: &mut Vec<Node>,
    mut node: Node,
    place: &SiblingPosition,
    under: &NodeId,
) -> Result<(), EditError> {
    let index_of = |siblings: &[Node], id: &NodeId| {
        let at = siblings.iter().position(|sibling| sibling.id == *id);
        at.ok_or_else(|| EditError::NotASibling { sibling: id.clone(), under: under.clone() })
    };
    let (at, neighbour) = match place {
        SiblingPosition::Order(order) => {
            node.order = *order;
            siblings.push(node);
            siblings.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
            return Ok(());
        }
        SiblingPosition::Last => (siblings.len(), None),
        SiblingPosition::Before(id) => (index_of(siblings, id)?, Some(id)),
        SiblingPosition::After(id) => (index_of(siblings, id)? + 1, Some(id)),
    };
    let before = at.checked_sub(1).and_then(|at| siblings.get(at)).map(|sibling| sibling.order);
    let after = siblings.get(at).map(|sibling| sibling.order);
    node.order = match (before, after) {
        (None, None) => 1,
        (None, Some(after)) => after.saturating_sub(1),
        (Some(before), _) => before.saturating_add(1),
    };
    if after.is_some_and(|after| after <= node.order) && !make_room_after(siblings, at, node.order) {
        node.order = after.unwrap_or_default().saturating_sub(1);
        if !make_room_before(siblings, at, node.order) {
            return Err(EditError::NoRoom(neighbour.unwrap_or(under).clone()));
        }
    }
    siblings.insert(at, node);
    Ok(())
}

/// Gives the siblings from `at` on orders above `order`, and changes as few as possible. Changes nothing and returns false if
/// one of them has passed.
fn make_room_after(siblings: &mut [Node], at: usize, order: i64) -> bool {
    let mut last = order;
    let mut orders = Vec::new();
    for sibling in siblings.iter().skip(at) {
        if sibling.order > last {
            break;
        }
        if sibling.passes {
            return false;
        }
        last = last.saturating_add(1);
        orders.push(last);
    }
    siblings.iter_mut().skip(at).zip(orders).for_each(|(sibling, order)| sibling.order = order);
    true
}

/// The same for the siblings before `at`, with orders below `order`.
fn make_room_before(siblings: &mut [Node], at: usize, order: i64) -> bool {
    let mut first = order;
    let mut orders = Vec::new();
    for sibling in siblings.iter().take(at).rev() {
        if sibling.order < first {
            break;
        }
        if sibling.passes {
            return false;
        }
        first = first.saturating_sub(1);
        orders.push(first);
    }
    siblings.iter_mut().take(at).rev().zip(orders).for_each(|(sibling, order)| sibling.order = order);
    true
}

#[cfg(test)]
mod tests;
