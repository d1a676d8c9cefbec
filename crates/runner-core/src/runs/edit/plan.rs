//! Edits of the tree.

use super::{EditError, NewNode, NodeChanges, SiblingPosition, UserEdit};
use crate::model::id::NodeId;
use crate::model::tree::{MAX_ATTEMPTS_RANGE, Node, Tree, path_text, user_edit_violations};

/// The tree after an edit of it. Whatever the edit is, the rules for a user's own edits hold for the result.
pub(super) fn edited(before: &Tree, edit: &UserEdit) -> Result<Tree, EditError> {
    let mut root = before.root().clone();
    match edit {
        UserEdit::Add { under, node, place } => {
            refuse_taken(before, node)?;
            insert(&mut parent(&mut root, before, under)?.children, fresh(node, 0), place, under)?;
        }
        UserEdit::Split { node, into } => split(&mut root, before, node, into)?,
        UserEdit::Edit { node, to } => reword(open(&mut root, before, node)?, to, before)?,
        UserEdit::Remove { node } => drop(taken_out(&mut root, before, node)?),
        UserEdit::Move { node, under, place } => relocate(&mut root, before, (node, under), place)?,
        UserEdit::Allow { node, more } => {
            let leaf = open_leaf(&mut root, before, node)?;
            let most = u32::try_from(*MAX_ATTEMPTS_RANGE.end()).unwrap_or(u32::MAX);
            leaf.max_attempts = leaf.max_attempts.saturating_add(*more).min(most);
        }
        UserEdit::Answer { .. } | UserEdit::Note { .. } => {}
    }
    root.derive_passes();
    let after = Tree::new(root).map_err(EditError::Tree)?;
    let faults = user_edit_violations(before, &after);
    if faults.is_empty() { Ok(after) } else { Err(EditError::RunnerOwned(faults)) }
}

fn path_of(tree: &Tree, id: &NodeId) -> String {
    tree.path_to(id).map(|path| path_text(&path)).unwrap_or_default()
}

/// A node that may be edited.
fn open<'t>(root: &'t mut Node, tree: &Tree, id: &NodeId) -> Result<&'t mut Node, EditError> {
    let node = root.find_mut(id).ok_or_else(|| EditError::NoSuchNode(id.clone()))?;
    if node.passes { Err(EditError::Passed(path_of(tree, id))) } else { Ok(node) }
}

/// A leaf that may be edited.
fn open_leaf<'t>(root: &'t mut Node, tree: &Tree, id: &NodeId) -> Result<&'t mut Node, EditError> {
    let node = open(root, tree, id)?;
    if node.is_leaf() { Ok(node) } else { Err(EditError::NotALeaf(path_of(tree, id))) }
}

/// A node that may get children.
fn parent<'t>(root: &'t mut Node, tree: &Tree, id: &NodeId) -> Result<&'t mut Node, EditError> {
    let node = root.find_mut(id).ok_or_else(|| EditError::NoSuchNode(id.clone()))?;
    if node.passes { Err(EditError::UnderPassed(path_of(tree, id))) } else { Ok(node) }
}

fn refuse_taken(tree: &Tree, node: &NewNode) -> Result<(), EditError> {
    let is_taken = tree.path_to(&node.id).is_some();
    if is_taken { Err(EditError::Taken(node.id.clone())) } else { Ok(()) }
}

fn fresh(node: &NewNode, order: i64) -> Node {
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
    for (nth, node) in (1_i64..).zip(into) {
        refuse_taken(tree, node)?;
        leaf.children.push(fresh(node, nth));
    }
    Ok(())
}

fn reword(node: &mut Node, to: &NodeChanges, tree: &Tree) -> Result<(), EditError> {
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

/// Takes a node out of the tree, if nothing at or below it passed.
fn taken_out(root: &mut Node, tree: &Tree, id: &NodeId) -> Result<Node, EditError> {
    refuse_root(tree, id)?;
    let node = open(root, tree, id)?;
    if let Some(below) = first_passed(node) {
        let (node, below) = (path_of(tree, id), path_of(tree, &below));
        return Err(EditError::PassedBelow { node, below });
    }
    detach(root, id)
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
    (id, under): (&NodeId, &NodeId),
    place: &SiblingPosition,
) -> Result<(), EditError> {
    refuse_root(tree, id)?;
    let node = open(root, tree, id)?;
    if node.find_mut(under).is_some() {
        return Err(EditError::UnderItself { node: path_of(tree, id) });
    }
    parent(root, tree, under)?;
    let node = detach(root, id)?;
    insert(&mut parent(root, tree, under)?.children, node, place, under)
}

/// Puts a node among its siblings. Where no number is free between its neighbours, open ones behind it make room, or
/// open ones before it.
fn insert(
    siblings: &mut Vec<Node>,
    mut node: Node,
    place: &SiblingPosition,
    under: &NodeId,
) -> Result<(), EditError> {
    let find = |siblings: &[Node], id: &NodeId| {
        let at = siblings.iter().position(|sibling| sibling.id == *id);
        at.ok_or_else(|| EditError::NotASibling { sibling: id.clone(), under: under.clone() })
    };
    let (at, beside) = match place {
        SiblingPosition::Order(order) => {
            node.order = *order;
            siblings.push(node);
            siblings.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
            return Ok(());
        }
        SiblingPosition::Last => (siblings.len(), None),
        SiblingPosition::Before(id) => (find(siblings, id)?, Some(id)),
        SiblingPosition::After(id) => (find(siblings, id)? + 1, Some(id)),
    };
    let before = at.checked_sub(1).and_then(|at| siblings.get(at)).map(|sibling| sibling.order);
    let behind = siblings.get(at).map(|sibling| sibling.order);
    node.order = match (before, behind) {
        (None, None) => 1,
        (None, Some(behind)) => behind.saturating_sub(1),
        (Some(before), _) => before.saturating_add(1),
    };
    if behind.is_some_and(|behind| behind <= node.order) && !make_room(siblings, at, node.order) {
        node.order = behind.unwrap_or_default().saturating_sub(1);
        if !make_room_before(siblings, at, node.order) {
            return Err(EditError::NoRoom(beside.unwrap_or(under).clone()));
        }
    }
    siblings.insert(at, node);
    Ok(())
}

/// Gives the siblings from `at` on numbers above `order`, as few as must be; changes nothing where one of them passed.
fn make_room(siblings: &mut [Node], at: usize, order: i64) -> bool {
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

/// Gives the siblings before `at` numbers below `order`, as few as must be; changes nothing where one of them passed.
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
