//! The commit that the next one must follow.

use crate::commit_message::CommitKind;
use crate::model::digest::Sha256;
use crate::model::id::IterationNumber;
use crate::verify::compare::Difference;
use crate::verify::rule::Rule;

/// The commit before the next one.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct LastCommit {
    pub(super) id: Option<String>,
    /// The iteration that it is, if it is one.
    pub(super) iter: Option<IterationNumber>,
    /// The digest of the plan in the runner's last commit, if that plan is approved.
    pub(in crate::verify) approved_plan: Option<Sha256>,
}

impl LastCommit {
    /// What is wrong with the parents of the next commit.
    pub(super) fn parent_difference(&self, kind: &CommitKind, parents: &[String]) -> Option<Difference> {
        let is_right = match kind {
            // A user may merge: only the first parent must be the commit before.
            CommitKind::User { .. } => parents.first() == self.id.as_ref(),
            CommitKind::Start { .. }
            | CommitKind::Iteration { .. }
            | CommitKind::Baseline { .. }
            | CommitKind::Final { .. }
            | CommitKind::Milestone { .. }
            | CommitKind::Edit { .. }
            | CommitKind::Malformed { .. } => parents.iter().eq(self.id.iter()),
        };
        let text = |parents: &[String]| match parents {
            [] => "no parent".to_owned(),
            parents => format!("parent {}", parents.join(", ")),
        };
        (!is_right).then(|| Difference::new(Rule::Parents, text(self.id.as_slice()), text(parents)))
    }
}
