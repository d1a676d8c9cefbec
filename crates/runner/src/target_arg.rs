//! What people mean by `57`, `#57`, `@`, `@-1`, a node's path, or the beginning of its id.

use runner_core::model::id::{IterationNumber, NodeId};
use runner_core::model::tree::{Node, Tree, path_text};
use runner_core::strict::nearest;
use runner_host::view::run_view::{IterationView, RunView};
use runner_term::{CommandError, CommandExit};

/// What an argument stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetArg {
    Iteration(IterationNumber),
    Node(NodeId),
}

/// Finds what an argument stands for in a run.
pub(crate) fn which(text: &str, look: &RunView, what: &str) -> Result<TargetArg, CommandError> {
    if let Some(found) = iteration(text, look) {
        return found.map(TargetArg::Iteration).map_err(|why| no_iteration(why, look, what));
    }
    let tree = look.tree.as_ref().ok_or_else(|| {
        CommandError::new("tree", CommandExit::REFUSED, what)
            .cause("the run's tree cannot be read")
            .hint("run 'runner validate'")
    })?;
    node(text, tree, what).map(TargetArg::Node)
}

/// Finds the iteration that an argument stands for; a node stands for the last one on it.
pub(crate) fn iteration_of(text: &str, look: &RunView, what: &str) -> Result<IterationNumber, CommandError> {
    let node = match which(text, look, what)? {
        TargetArg::Iteration(iter) => return Ok(iter),
        TargetArg::Node(node) => node,
    };
    let last = look.iterations.iter().rev().find(|seen| seen.node() == Some(&node));
    last.map(|seen| seen.iter).ok_or_else(|| {
        CommandError::new("no_iteration", CommandExit::REFUSED, what)
            .cause(format!("no iteration has worked on `{node}` yet"))
            .hint("name an iteration: 'runner log' lists them")
    })
}

/// Whether a text is written like an iteration.
pub(crate) fn is_iteration(text: &str) -> bool {
    let digits = text.strip_prefix("@-").or_else(|| text.strip_prefix('#')).unwrap_or(text);
    text == "@" || (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An iteration that is in git.
pub(crate) fn seen<'l>(
    iter: IterationNumber,
    look: &'l RunView,
    what: &str,
) -> Result<&'l IterationView, CommandError> {
    let found = look.iterations.iter().find(|seen| seen.iter == iter);
    found.ok_or_else(|| no_iteration(format!("there is no iteration {}", iter.get()), look, what))
}

/// The argument as an iteration, if it is written like one.
fn iteration(text: &str, look: &RunView) -> Option<Result<IterationNumber, String>> {
    let last = look.iterations.last().map(|seen| seen.iter);
    let now = look.running().or(last);
    let none = || "the run has no iteration yet".to_owned();
    if text == "@" {
        return Some(now.ok_or_else(none));
    }
    if let Some(back) = text.strip_prefix("@-") {
        let back: u32 = back.parse().ok()?;
        let found = now.and_then(|now| now.get().checked_sub(back)).and_then(IterationNumber::new);
        return Some(found.ok_or_else(|| format!("there is no iteration {back} before the last")));
    }
    let digits = text.strip_prefix('#').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_node = || {
        look.tree.as_ref().zip(NodeId::new(text).ok()).is_some_and(|(tree, id)| tree.path_to(&id).is_some())
    };
    if !is_number || (digits == text && is_node()) {
        return None;
    }
    let number: Option<IterationNumber> = digits.parse().ok();
    let is_there = |iter: &IterationNumber| {
        look.iterations.iter().any(|seen| seen.iter == *iter) || look.running() == Some(*iter)
    };
    Some(number.filter(is_there).ok_or_else(|| format!("there is no iteration {digits}")))
}

fn no_iteration(why: String, look: &RunView, what: &str) -> CommandError {
    let report = CommandError::new("no_such_iteration", CommandExit::REFUSED, what).cause(why);
    match (look.iterations.first(), look.iterations.last()) {
        (Some(first), Some(last)) => report.hint(format!(
            "this run has iterations {} to {}; `@` is the last",
            first.iter.get(),
            last.iter.get()
        )),
        _ => report.hint("make one with 'runner step'"),
    }
}

/// The node that a path, an id, or the beginning of one names.
pub(crate) fn node(text: &str, tree: &Tree, what: &str) -> Result<NodeId, CommandError> {
    let mut all = Vec::new();
    collect(tree.root(), &mut Vec::new(), &mut all);
    let exact = all.iter().find(|(path, id)| *id == text || path == text);
    if let Some((_, id)) = exact {
        return NodeId::new(*id)
            .map_err(|fault| CommandError::new("node", CommandExit::REFUSED, what).cause(fault.to_string()));
    }
    let mut short = all.iter().filter(|(_, id)| id.starts_with(text));
    if let (Some((_, id)), None) = (short.next(), short.next()) {
        return NodeId::new(*id)
            .map_err(|fault| CommandError::new("node", CommandExit::REFUSED, what).cause(fault.to_string()));
    }
    let tail = format!("/{text}");
    let begins = |(path, id): &&(String, &str)| {
        id.starts_with(text) || path.starts_with(text) || path.ends_with(&tail)
    };
    let begun: Vec<&(String, &str)> = all.iter().filter(begins).collect();
    let report = CommandError::new("no_such_node", CommandExit::REFUSED, what);
    match begun.as_slice() {
        [(_, id)] => NodeId::new(*id).map_err(|fault| report.cause(fault.to_string())),
        [] => {
            let ids: Vec<&str> = all.iter().map(|(_, id)| *id).collect();
            let paths: Vec<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
            let near = nearest(text, &ids).or_else(|| nearest(text, &paths));
            let hint = near.map_or("see 'runner tree' for the nodes".to_owned(), |near| {
                format!("did you mean `{near}`?")
            });
            Err(report.cause(format!("there is no node `{}`", crate::render::short(text))).hint(hint))
        }
        many => Err(report
            .cause(format!("`{}` could be {} nodes", crate::render::short(text), many.len()))
            .details(many.iter().take(8).map(|(path, _)| path.clone()))
            .hint("write more of the id, or the whole path")),
    }
}

fn collect<'t>(node: &'t Node, path: &mut Vec<&'t Node>, all: &mut Vec<(String, &'t str)>) {
    path.push(node);
    all.push((path_text(path), node.id.as_str()));
    node.children.iter().for_each(|child| collect(child, path, all));
    path.pop();
}
