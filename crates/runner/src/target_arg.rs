//! Resolves `ITER|NODE` arguments: `57`, `#57`, `@`, `@-1`, a node's path, its id or a prefix of it.

use runner_core::model::id::{IterationNumber, NodeId};
use runner_core::model::tree::{Node, Tree, path_text};
use runner_core::strict::nearest;
use runner_host::view::run_view::{IterationView, RunView};
use runner_term::CommandError;

use crate::render::short;

/// How many candidates the error for an ambiguous node lists.
const CANDIDATES_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetArg {
    Iteration(IterationNumber),
    Node(NodeId),
}

/// A node with its path.
struct NodePath<'t> {
    id: &'t NodeId,
    path: String,
}

/// Resolves an argument; `what` is the action that fails if it cannot be resolved.
pub(crate) fn resolve(text: &str, view: &RunView, what: &str) -> Result<TargetArg, CommandError> {
    if let Some(result) = parse_iteration(text, view) {
        return result.map(TargetArg::Iteration).map_err(|cause| no_iteration(cause, view, what));
    }
    let tree = view.tree.as_ref().ok_or_else(|| unreadable_tree(what))?;
    resolve_node(text, tree, what).map(TargetArg::Node)
}

pub(crate) fn unreadable_tree(what: &str) -> CommandError {
    CommandError::refused("tree", what)
        .cause("the run's tree.json cannot be read")
        .hint("run 'runner validate' to list its problems")
}

/// Resolves an argument to an iteration: a node means the last iteration that worked on it.
pub(crate) fn resolve_iteration(
    text: &str,
    view: &RunView,
    what: &str,
) -> Result<IterationNumber, CommandError> {
    let node = match resolve(text, view, what)? {
        TargetArg::Iteration(iter) => return Ok(iter),
        TargetArg::Node(node) => node,
    };
    last_iteration_on(&node, view).ok_or_else(|| {
        CommandError::refused("no_iteration", what)
            .cause(format!("no iteration has worked on `{node}` yet"))
            .hint("name an iteration instead: 'runner log' lists them")
    })
}

pub(crate) fn last_iteration_on(node: &NodeId, view: &RunView) -> Option<IterationNumber> {
    let last = view.iterations.iter().rev().find(|iteration| iteration.node() == Some(node));
    last.map(|iteration| iteration.iter)
}

/// Whether a text has the form of an iteration.
pub(crate) fn is_iteration(text: &str) -> bool {
    let digits = text.strip_prefix("@-").or_else(|| text.strip_prefix('#')).unwrap_or(text);
    text == "@" || is_number(digits)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The committed iteration with this number.
pub(crate) fn committed_iteration<'v>(
    iter: IterationNumber,
    view: &'v RunView,
    what: &str,
) -> Result<&'v IterationView, CommandError> {
    let iteration = view.iterations.iter().find(|iteration| iteration.iter == iter);
    if view.is_in_progress(iter) {
        return Err(CommandError::refused("still_running", what)
            .cause(format!("iteration {} is still running", iter.get()))
            .hint("to follow it: runner log @ -f"));
    }
    iteration.ok_or_else(|| no_iteration(format!("there is no iteration {}", iter.get()), view, what))
}

/// The argument as an iteration; none if it does not have the form of one.
fn parse_iteration(text: &str, view: &RunView) -> Option<Result<IterationNumber, String>> {
    let last = view.iterations.last().map(|iteration| iteration.iter);
    let current = view.running().or(last);
    if text == "@" {
        return Some(current.ok_or_else(|| "the run has no iteration yet".to_owned()));
    }
    if let Some(back) = text.strip_prefix("@-") {
        let back: u32 = back.parse().ok()?;
        let iter = current.and_then(|iter| iter.get().checked_sub(back)).and_then(IterationNumber::new);
        return Some(iter.ok_or_else(|| format!("there is no iteration {back} before the last")));
    }
    let digits = text.strip_prefix('#').unwrap_or(text);
    if !is_number(digits) || (digits == text && is_node_id(text, view)) {
        return None;
    }
    let iter: Option<IterationNumber> = digits.parse().ok();
    let exists = |iter: &IterationNumber| {
        view.iterations.iter().any(|iteration| iteration.iter == *iter) || view.running() == Some(*iter)
    };
    Some(iter.filter(exists).ok_or_else(|| format!("there is no iteration {digits}")))
}

fn is_node_id(text: &str, view: &RunView) -> bool {
    let id = NodeId::new(text).ok();
    view.tree.as_ref().zip(id).is_some_and(|(tree, id)| tree.path_to(&id).is_some())
}

fn no_iteration(cause: String, view: &RunView, what: &str) -> CommandError {
    let error = CommandError::refused("no_such_iteration", what).cause(cause);
    match (view.iterations.first(), view.iterations.last()) {
        (Some(first), Some(last)) => error.hint(format!(
            "this run has iterations {} to {}; `@` is the last",
            first.iter.get(),
            last.iter.get()
        )),
        _ => error.hint("run one with 'runner step'"),
    }
}

/// Resolves a node's path, id or prefix.
pub(crate) fn resolve_node(text: &str, tree: &Tree, what: &str) -> Result<NodeId, CommandError> {
    let mut nodes = Vec::new();
    collect_nodes(tree.root(), &mut Vec::new(), &mut nodes);
    if let Some(node) = nodes.iter().find(|node| node.id.as_str() == text || node.path == text) {
        return Ok(node.id.clone());
    }
    let mut by_id = nodes.iter().filter(|node| node.id.as_str().starts_with(text));
    if let (Some(node), None) = (by_id.next(), by_id.next()) {
        return Ok(node.id.clone());
    }
    let suffix = format!("/{text}");
    let candidates: Vec<&NodePath<'_>> = nodes
        .iter()
        .filter(|node| {
            node.id.as_str().starts_with(text) || node.path.starts_with(text) || node.path.ends_with(&suffix)
        })
        .collect();
    let error = CommandError::refused("no_such_node", what);
    match candidates.as_slice() {
        [node] => Ok(node.id.clone()),
        [] => Err(error
            .cause(format!("there is no task `{}`", short(text)))
            .hint(similar_node_hint(text, &nodes))),
        many => Err(error
            .cause(format!("`{}` matches {} tasks", short(text), many.len()))
            .details(many.iter().take(CANDIDATES_MAX).map(|node| node.path.clone()))
            .hint("type more of the id, or the whole path")),
    }
}

fn similar_node_hint(text: &str, nodes: &[NodePath<'_>]) -> String {
    let ids: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    let paths: Vec<&str> = nodes.iter().map(|node| node.path.as_str()).collect();
    match nearest(text, &ids).or_else(|| nearest(text, &paths)) {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => "run 'runner tree' to list the tasks".to_owned(),
    }
}

fn collect_nodes<'t>(node: &'t Node, path: &mut Vec<&'t Node>, nodes: &mut Vec<NodePath<'t>>) {
    path.push(node);
    nodes.push(NodePath { id: &node.id, path: path_text(path) });
    for child in &node.children {
        collect_nodes(child, path, nodes);
    }
    path.pop();
}
