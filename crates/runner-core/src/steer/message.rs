//! The message of an edit's commit: a function of the edit, and of what it was made on.

use super::{Steered, UserEdit};
use crate::digest::Sha256;
use crate::id::{NodeId, RunId};
use crate::run_state::{RunState, SEMANTICS};
use crate::step::message::TAKEN_IN;
use crate::text::{head, one_line};

/// The trailer that holds the edit itself, as JSON.
pub(crate) const EDIT: &str = "Runner-Edit";

/// How much of a text stands in the message for people.
const SAID_BYTES_MAX: usize = 200;

/// The message of the commit that holds `after`, which takes in so many commits of the user's own.
pub fn message(run: &RunId, edit: &UserEdit, after: &Steered, state: &RunState, own_commits: u32) -> String {
    let json = serde_json::to_string(edit).unwrap_or_default();
    let taken_in = if own_commits > 0 { format!("{TAKEN_IN}: {own_commits}\n") } else { String::new() };
    format!(
        "chore(loop): run {run} edit {}\n\n{}{EDIT}: {json}\nRunner-Tree: {}\nRunner-State: {}\n\
         Runner-Semantics: {SEMANTICS}\n{taken_in}",
        subject(edit),
        said(edit),
        Sha256::of(after.tree.bytes()),
        Sha256::of(&state.to_bytes()),
    )
}

fn subject(edit: &UserEdit) -> String {
    let of = |verb: &str, node: &NodeId| format!("node {verb} {node}");
    match edit {
        UserEdit::Add { node, .. } => of("add", &node.id),
        UserEdit::Edit { node, .. } => of("edit", node),
        UserEdit::Split { node, .. } => of("split", node),
        UserEdit::Remove { node } => of("remove", node),
        UserEdit::Move { node, .. } => of("move", node),
        UserEdit::Allow { node, .. } => of("allow", node),
        UserEdit::Answer { question, .. } => format!("answer {question}"),
        UserEdit::Note { .. } => "note".to_owned(),
    }
}

/// The edit in words, a paragraph of its own, indented like the words of agents; or nothing.
fn said(edit: &UserEdit) -> String {
    let text = match edit {
        UserEdit::Add { under, node, .. } => format!("under {under}: {}", node.title),
        UserEdit::Split { into, .. } => {
            into.iter().map(|node| node.id.as_str()).collect::<Vec<_>>().join(", ")
        }
        UserEdit::Move { under, .. } => format!("under {under}"),
        UserEdit::Allow { more, .. } => format!("{more} more"),
        UserEdit::Answer { text, .. } | UserEdit::Note { text } => text.clone(),
        UserEdit::Edit { .. } | UserEdit::Remove { .. } => String::new(),
    };
    let line = one_line(&text);
    let line = head(line.trim(), SAID_BYTES_MAX).trim_end();
    if line.is_empty() { String::new() } else { format!("  {line}\n\n") }
}
