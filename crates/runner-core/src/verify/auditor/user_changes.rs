//! Checks the user's own commits and edits.

use super::{Auditor, CommitContext};
use crate::verify::Rule;
use crate::verify::compare::{self, Difference};
use crate::verify::documents::DecodedDocuments;
use crate::verify::edit::{self, EditAudit, EditDocuments};

impl Auditor {
    /// What a user's own commit may not do to the runner's documents.
    pub(super) fn user_commit_differences(&self, after: &DecodedDocuments) -> Vec<Difference> {
        let mut differences = Vec::new();
        if let (Some(was), Some(is)) = (&self.docs.state, &after.state) {
            differences.extend(compare::states(was, is));
        }
        if let (Some(was), Some(is)) = (&self.docs.tree, &after.tree) {
            differences.extend(edit::user_edit_differences(was, is));
        }
        if self.is_started() && after.tree.is_none() && self.docs.tree.is_some() {
            differences.push(Difference::new(Rule::TreeInvalid, "a tree", "none that can be decoded"));
        }
        differences
    }

    pub(super) fn edit_differences(&self, context: &CommitContext<'_>) -> Vec<Difference> {
        let (Some(tree), Some(state)) = (&self.docs.tree, &self.docs.state) else { return Vec::new() };
        let (Some(new_tree), Some(new_state)) = (&context.after.tree, &context.after.state) else {
            return Vec::new();
        };
        let audit = EditAudit {
            run: &self.run,
            commit: context.commit,
            text: context.text,
            before: EditDocuments { tree, state, files: context.files_before },
            after: EditDocuments { tree: new_tree, state: new_state, files: &self.files },
            user_commits: self.user_commit_count(),
        };
        audit.differences()
    }
}
