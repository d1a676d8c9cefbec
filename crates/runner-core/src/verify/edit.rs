//! An edit of the user's, applied again to what was there before it.

use super::compare::{self, Difference, shown};
use super::record::MessageParts;
use super::snapshot::{self, Files};
use super::{AuditedCommit, Rule};
use crate::layout::Doc;
use crate::model::id::RunId;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tree::{ForbiddenEdit, Tree, UserEditError, user_edit_violations};
use crate::runs::edit::{self, EditError, EditableDocs, UserEdit};

/// What is known before the edit.
pub(super) struct EditContext<'a> {
    pub(super) run: &'a RunId,
    pub(super) tree: &'a Tree,
    pub(super) state: &'a RunState,
    pub(super) files: &'a Files,
    /// Commits of the user's own that nothing has taken in yet.
    pub(super) own_commits: u32,
}

/// Everything in which a commit differs from the edit that it says it is.
pub(super) fn differences(
    known: &EditContext<'_>,
    (commit, text): (&AuditedCommit, &str),
    (tree, state, files): (&Tree, &RunState, &Files),
) -> Vec<Difference> {
    let parts = MessageParts::of(text);
    let said = parts.value(edit::EDIT).unwrap_or_default();
    let Ok(edit) = serde_json::from_str::<UserEdit>(said) else {
        return vec![(Rule::Message, format!("{} with an edit", edit::EDIT), shown(said))];
    };
    let mut wrong = scope(commit, edit.doc());
    let memory = |files: &Files, doc| snapshot::doc(files, doc).unwrap_or_default().to_vec();
    let (questions, feedback) = (memory(known.files, Doc::Questions), memory(known.files, Doc::Feedback));
    let before = EditableDocs { tree: known.tree.clone(), questions, feedback };
    let after = match edit.apply(&before) {
        Ok(after) => after,
        Err(fault) => {
            wrong.extend(refused(&fault));
            return wrong;
        }
    };
    wrong.extend(compare::trees(known.tree, &after.tree, tree).map(|(rule, expected, found)| {
        let rule = if rule == Rule::TreeRestored { Rule::EditScope } else { rule };
        (rule, expected, found)
    }));
    for (doc, expected) in [(Doc::Questions, &after.questions), (Doc::Feedback, &after.feedback)] {
        if memory(files, doc) != *expected {
            let path = doc.path();
            let (expected, found) =
                (format!("{path} with what was said"), format!("{path} with something else"));
            wrong.push((Rule::EditScope, expected, found));
        }
    }
    wrong.extend(compare::states(known.state, state));
    if wrong.is_empty() {
        let expected = edit::message(known.run, &edit, &after, known.state, known.own_commits);
        wrong.extend(compare::messages(&expected, text, true));
    }
    wrong
}

/// Files that the edit is not about.
pub(super) fn scope(commit: &AuditedCommit, doc: Doc) -> Vec<Difference> {
    let others = commit.changes.iter().filter(|change| change.path != doc.path().as_bytes());
    let told = |path: RepoPath| (Rule::EditScope, format!("{} alone", doc.path()), format!("{path} changed"));
    others.map(|change| told(RepoPath::of_bytes(&change.path))).collect()
}

/// The rules that an edit breaks which could not have been made.
fn refused(fault: &EditError) -> Vec<Difference> {
    let rule = match fault {
        EditError::RunnerOwned(faults) => return faults.iter().map(breach).collect(),
        EditError::Passed(_) | EditError::PassedBelow { .. } | EditError::UnderPassed(_) => {
            Rule::PassedChanged
        }
        EditError::BelowAttempts { .. } => Rule::MaxAttempts,
        EditError::NoSuchNode(_)
        | EditError::Root(_)
        | EditError::NotALeaf(_)
        | EditError::UnderItself { .. }
        | EditError::NotASibling { .. }
        | EditError::NoRoom(_)
        | EditError::Taken(_)
        | EditError::Nothing
        | EditError::NoTitle
        | EditError::NoText
        | EditError::TooLong { .. }
        | EditError::TooFewParts
        | EditError::Tree(_)
        | EditError::NoSuchQuestion { .. } => Rule::PlanEdit,
    };
    vec![(rule, "an edit that the rules allow".to_owned(), shown(&fault.to_string()))]
}

/// What a user's edit of the tree breaks.
pub(super) fn faults(before: &Tree, after: &Tree) -> Vec<Difference> {
    user_edit_violations(before, after).iter().map(breach).collect()
}

fn breach(fault: &UserEditError) -> Difference {
    let rule = match fault.violation {
        ForbiddenEdit::PassedRemoved | ForbiddenEdit::PassedMoved | ForbiddenEdit::PassedChanged => {
            Rule::PassedChanged
        }
        ForbiddenEdit::PassesSet => Rule::Passes,
        ForbiddenEdit::AttemptsSet => Rule::Attempts,
    };
    (rule, "an edit that the rules allow".to_owned(), shown(&fault.to_string()))
}
