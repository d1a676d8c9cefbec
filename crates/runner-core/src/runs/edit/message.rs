//! The message of an edit's commit: a function of the edit, and of what it was made on.

use super::{EditableDocs, UserEdit};
use crate::commit_message::{CommitKind, CommitMessage, EditSubject, NodeVerb, Trailer};
use crate::model::digest::Sha256;
use crate::model::id::{NodeId, RunId};
use crate::model::run_state::{RunState, SEMANTICS};
use crate::text::{head, one_line};

/// The most bytes of a text in the body.
const BODY_BYTES_MAX: usize = 200;

/// The message of the commit that holds `after`.
pub fn message(
    run: &RunId,
    edit: &UserEdit,
    after: &EditableDocs,
    state: &RunState,
    user_commits: u32,
) -> String {
    let json = serde_json::to_string(edit).unwrap_or_default();
    CommitMessage::new(CommitKind::Edit { run_id: run.clone(), edit: subject(edit) })
        .body(&body(edit))
        .trailer(Trailer::Edit, json)
        .trailer(Trailer::Tree, Sha256::of(after.tree.bytes()))
        .trailer(Trailer::State, Sha256::of(&state.to_bytes()))
        .trailer(Trailer::Semantics, SEMANTICS)
        .user_commits(user_commits)
        .to_string()
}

fn subject(edit: &UserEdit) -> EditSubject {
    let of = |verb, node: &NodeId| EditSubject::Node { verb, node: node.clone() };
    match edit {
        UserEdit::Add { node, .. } => of(NodeVerb::Add, &node.id),
        UserEdit::Edit { node, .. } => of(NodeVerb::Edit, node),
        UserEdit::Split { node, .. } => of(NodeVerb::Split, node),
        UserEdit::Remove { node } => of(NodeVerb::Remove, node),
        UserEdit::Move { node, .. } => of(NodeVerb::Move, node),
        UserEdit::Allow { node, .. } => of(NodeVerb::Allow, node),
        UserEdit::Answer { question, .. } => EditSubject::Answer { question: *question },
        UserEdit::Note { .. } => EditSubject::Note,
        UserEdit::Approve { .. } => EditSubject::PlanApproval,
    }
}

/// The edit in one line for people; empty if the subject has everything.
fn body(edit: &UserEdit) -> String {
    let text = match edit {
        UserEdit::Add { under, node, .. } => format!("under {under}: {}", node.title),
        UserEdit::Split { into, .. } => {
            into.iter().map(|node| node.id.as_str()).collect::<Vec<_>>().join(", ")
        }
        UserEdit::Move { under, .. } => format!("under {under}"),
        UserEdit::Allow { more, .. } => format!("{more} more"),
        UserEdit::Answer { text, .. } | UserEdit::Note { text } => text.clone(),
        UserEdit::Edit { .. } | UserEdit::Remove { .. } | UserEdit::Approve { .. } => String::new(),
    };
    let line = one_line(&text);
    head(line.trim(), BODY_BYTES_MAX).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{leaf, tree};
    use crate::runs::edit::{NewNode, NodeChanges, SiblingPosition};

    fn id(text: &str) -> NodeId {
        NodeId::new(text).unwrap()
    }

    fn new(name: &str) -> NewNode {
        NewNode::new(id(name), &format!("Do {name}"), None, &[], 3)
    }

    /// The message of an edit that takes in so many commits, with what belongs to no edit in particular cut off.
    fn written(edit: &UserEdit, own_commits: u32) -> String {
        let run = RunId::new("r1").unwrap();
        let after = EditableDocs {
            tree: tree(leaf("root")),
            questions: Vec::new(),
            notes: Vec::new(),
            plan: None,
            approval: None,
        };
        let state = RunState::new(Some(run.clone()));
        let (sha_tree, sha_state) = (Sha256::of(after.tree.bytes()), Sha256::of(&state.to_bytes()));
        let taken_in = match own_commits {
            0 => String::new(),
            count => format!("Runner-User-Commits: {count}\n"),
        };
        let end =
            format!("\nRunner-Tree: {sha_tree}\nRunner-State: {sha_state}\nRunner-Semantics: 1\n{taken_in}");
        let text = message(&run, edit, &after, &state, own_commits);
        let begin = text.strip_suffix(&end).unwrap_or_else(|| panic!("{text}"));
        begin.strip_prefix("chore(loop): run r1 edit ").unwrap_or_else(|| panic!("{text}")).to_owned()
    }

    #[test]
    fn a_message_names_the_edit_says_it_in_words_and_holds_it_whole() {
        let to = NodeChanges { max_attempts: Some(5), ..NodeChanges::default() };
        for (edit, expected) in [
            (
                UserEdit::Add { under: id("root"), node: new("n"), place: SiblingPosition::Last },
                "node add n\n\n  under root: Do n\n\nRunner-Edit: {\"do\":\"add\",\"under\":\"root\",\"node\":{\"id\":\"n\",\
                 \"title\":\"Do n\",\"goal\":\"Do n\",\"acceptance\":[],\"max_attempts\":3},\"place\":\"last\"}",
            ),
            (
                UserEdit::Edit { node: id("c"), to },
                "node edit c\n\nRunner-Edit: {\"do\":\"edit\",\"node\":\"c\",\"max_attempts\":5}",
            ),
            (
                UserEdit::Split { node: id("c"), into: vec![new("x"), new("y")] },
                "node split c\n\n  x, y\n\nRunner-Edit: {\"do\":\"split\",\"node\":\"c\",\"into\":[\
                 {\"id\":\"x\",\"title\":\"Do x\",\"goal\":\"Do x\",\"acceptance\":[],\"max_attempts\":3},\
                 {\"id\":\"y\",\"title\":\"Do y\",\"goal\":\"Do y\",\"acceptance\":[],\"max_attempts\":3}]}",
            ),
            (
                UserEdit::Remove { node: id("c") },
                "node remove c\n\nRunner-Edit: {\"do\":\"remove\",\"node\":\"c\"}",
            ),
            (
                UserEdit::Move { node: id("c"), under: id("e"), place: SiblingPosition::Order(-3) },
                "node move c\n\n  under e\n\n\
                 Runner-Edit: {\"do\":\"move\",\"node\":\"c\",\"under\":\"e\",\"place\":{\"order\":-3}}",
            ),
            (
                UserEdit::Allow { node: id("c"), more: 2 },
                "node allow c\n\n  2 more\n\nRunner-Edit: {\"do\":\"allow\",\"node\":\"c\",\"more\":2}",
            ),
            (
                UserEdit::Answer { question: 2, text: "no,\nRunner-Tree: x".to_owned() },
                "answer 2\n\n  no, Runner-Tree: x\n\n\
                 Runner-Edit: {\"do\":\"answer\",\"question\":2,\"text\":\"no,\\nRunner-Tree: x\"}",
            ),
            (
                UserEdit::Note { text: "\u{200b}".to_owned() },
                "note\n\nRunner-Edit: {\"do\":\"note\",\"text\":\"\u{200b}\"}",
            ),
        ] {
            for own_commits in [0, 1, 2] {
                assert_eq!(written(&edit, own_commits), expected);
            }
        }
    }

    #[test]
    fn a_long_text_is_cut_for_people_and_whole_in_its_trailer() {
        let text = format!("{} end", "é".repeat(120));
        let note = written(&UserEdit::Note { text: text.clone() }, 0);
        let shown = "é".repeat(100);
        assert_eq!(
            note,
            format!("note\n\n  {shown}\n\nRunner-Edit: {{\"do\":\"note\",\"text\":\"{text}\"}}")
        );
    }
}
