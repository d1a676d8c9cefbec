//! Checks an edit of the user's: applies it again to the documents before it, and compares.

use super::compare::{self, Difference, PromptCheck, shown};
use super::snapshot::{self, Files};
use super::{AuditedCommit, Rule};
use crate::commit_message::{MessageParts, Trailer};
use crate::layout::Doc;
use crate::model::id::RunId;
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tree::{ForbiddenEdit, Tree, UserEditError, user_edit_violations};
use crate::runs::edit::{self, EditError, EditableDocs, UserEdit};
use crate::runs::plan_digest::plan_digest;

/// The documents that an edit changes or must not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct EditDocuments<'a> {
    pub(super) tree: &'a Tree,
    pub(super) state: &'a RunState,
    pub(super) files: &'a Files,
}

/// An edit's commit, with the documents before and after it.
pub(super) struct EditAudit<'a> {
    pub(super) run: &'a RunId,
    pub(super) commit: &'a AuditedCommit,
    pub(super) text: &'a str,
    pub(super) before: EditDocuments<'a>,
    pub(super) after: EditDocuments<'a>,
    /// The user's own commits that no commit of the runner's counts yet.
    pub(super) user_commits: u32,
}

impl EditAudit<'_> {
    /// Every difference between the commit and the edit that its message names.
    pub(super) fn differences(&self) -> Vec<Difference> {
        let trailer = MessageParts::parse(self.text).value(Trailer::Edit).unwrap_or_default();
        let Ok(edit) = serde_json::from_str::<UserEdit>(trailer) else {
            let expected = format!("{} with an edit", Trailer::Edit);
            return vec![Difference::new(Rule::Message, expected, shown(trailer))];
        };
        let approval = self.before.state.plan_approval;
        let plan =
            || plan_digest(self.before.tree, &snapshot::all_checks(self.before.files, self.before.tree));
        let is_approval = matches!(edit, UserEdit::Approve { .. });
        let before = EditableDocs {
            tree: self.before.tree.clone(),
            questions: memory(self.before.files, Doc::Questions),
            notes: memory(self.before.files, Doc::Notes),
            plan: is_approval.then(plan),
            approval,
        };
        let expected = match edit.apply(&before) {
            Ok(expected) => expected,
            Err(error) => {
                let mut differences = scope_differences(self.commit, &[edit.doc()]);
                differences.extend(refused(&error));
                return differences;
            }
        };
        // An edit of an approved plan ends its approval, one after commits of the user's own the final check. It changes the
        // state for nothing else.
        let state = RunState {
            plan_approval: expected.approval,
            final_check: self.before.state.final_check_after(self.user_commits),
            ..self.before.state.clone()
        };
        let docs = [edit.doc(), Doc::RunState];
        let changes_state = state != *self.before.state;
        let mut differences = scope_differences(self.commit, if changes_state { &docs } else { &docs[..1] });
        differences.extend(self.content_differences(&expected, &state));
        if differences.is_empty() {
            let message = edit::message(self.run, &edit, &expected, &state, self.user_commits);
            differences.extend(compare::messages(&message, self.text, PromptCheck::Derivable));
        }
        differences
    }

    fn content_differences(&self, expected: &EditableDocs, state: &RunState) -> Vec<Difference> {
        let mut differences = Vec::new();
        if let Some(mut difference) = compare::trees(self.before.tree, &expected.tree, self.after.tree) {
            if difference.rule == Rule::TreeRestored {
                difference.rule = Rule::EditScope;
            }
            differences.push(difference);
        }
        for (doc, expected) in [(Doc::Questions, &expected.questions), (Doc::Notes, &expected.notes)] {
            if memory(self.after.files, doc) != *expected {
                let path = doc.path();
                differences.push(Difference::new(
                    Rule::EditScope,
                    format!("{path} with the edit's text"),
                    format!("{path} with another text"),
                ));
            }
        }
        differences.extend(compare::states(state, self.after.state));
        differences
    }
}

fn memory(files: &Files, doc: Doc) -> Vec<u8> {
    snapshot::doc(files, doc).unwrap_or_default().to_vec()
}

/// Files that a commit changed although it may change these documents alone.
pub(super) fn scope_differences(commit: &AuditedCommit, docs: &[Doc]) -> Vec<Difference> {
    let is_allowed = |path: &[u8]| docs.iter().any(|doc| doc.path().as_bytes() == path);
    let names: Vec<&str> = docs.iter().map(|doc| doc.path()).collect();
    let others = commit.changes.iter().filter(|change| !is_allowed(&change.path));
    others
        .map(|change| {
            let path = RepoPath::of_bytes(&change.path);
            let expected = format!("{} alone", names.join(" and "));
            Difference::new(Rule::EditScope, expected, format!("{path} changed"))
        })
        .collect()
}

/// The rules that an edit violates which the runner would have refused.
fn refused(error: &EditError) -> Vec<Difference> {
    let rule = match error {
        EditError::RunnerOwned(faults) => return faults.iter().map(forbidden_edit).collect(),
        EditError::Passed(_)
        | EditError::GoalPassed(_)
        | EditError::PassedBelow { .. }
        | EditError::UnderPassed(_) => Rule::PassedChanged,
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
        | EditError::Notes(_)
        | EditError::NoSuchQuestion { .. } => Rule::PlanEdit,
        EditError::PlanChanged => Rule::Approval,
    };
    vec![Difference::new(rule, "an edit that the rules allow", shown(&error.to_string()))]
}

/// The rules that a user's change of the tree violates.
pub(super) fn user_edit_differences(before: &Tree, after: &Tree) -> Vec<Difference> {
    user_edit_violations(before, after).iter().map(forbidden_edit).collect()
}

fn forbidden_edit(error: &UserEditError) -> Difference {
    let rule = match error.violation {
        ForbiddenEdit::PassedRemoved | ForbiddenEdit::PassedMoved | ForbiddenEdit::PassedChanged => {
            Rule::PassedChanged
        }
        ForbiddenEdit::PassesSet => Rule::Passes,
        ForbiddenEdit::AttemptsSet => Rule::Attempts,
    };
    Difference::new(rule, "an edit that the rules allow", shown(&error.to_string()))
}
