//! Checks what a start's commit claims beyond the start itself: that it forks another run, or that it imported a plan.

use std::collections::BTreeSet;

use super::compare::{self, Difference, shown};
use super::snapshot::{self, Files};
use super::{AuditedCommit, Rule};
use crate::layout::Doc;
use crate::model::id::{IterationNumber, RunId};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tree::{Node, Tree};
use crate::runs::fork;
use crate::runs::import::PlanFormat;

/// The start of a fork, with what it must follow from.
pub(super) struct ForkStart<'a> {
    /// The run that is forked.
    pub(super) from: &'a RunId,
    /// The iteration that the commit before is, if it is one.
    pub(super) from_iter: Option<IterationNumber>,
    /// The fork's own id.
    pub(super) run: &'a RunId,
    pub(super) files_before: &'a Files,
    pub(super) state_before: Option<&'a RunState>,
    pub(super) files_after: &'a Files,
    pub(super) state_after: Option<&'a RunState>,
}

impl ForkStart<'_> {
    /// A fork follows an iteration, has the message of one, and changes nothing but the run id in two documents.
    pub(super) fn differences(&self, commit: &AuditedCommit, text: &str) -> Vec<Difference> {
        let Some(iter) = self.from_iter else {
            let expected = format!("an iteration of run {} before a fork", self.from);
            return vec![Difference::new(Rule::Parents, expected, "another commit")];
        };
        let mut differences = Vec::new();
        let message = fork::message(self.run, self.from, iter);
        if text != message {
            differences.push(Difference::new(Rule::Message, shown(&message), shown(text)));
        }
        let allowed = [Doc::Goal.path().as_bytes(), Doc::RunState.path().as_bytes()];
        for change in commit.changes.iter().filter(|change| !allowed.contains(&change.path.as_slice())) {
            let path = RepoPath::of_bytes(&change.path);
            differences.push(Difference::new(
                Rule::EditScope,
                format!("{path} as before"),
                format!("{path} changed"),
            ));
        }
        differences.extend(self.document_differences());
        differences
    }

    fn document_differences(&self) -> Vec<Difference> {
        let goal_before = snapshot::doc(self.files_before, Doc::Goal);
        let (Some(goal_before), Some(state_before)) = (goal_before, self.state_before) else {
            return Vec::new();
        };
        let Ok(expected) = fork::documents(self.run, goal_before, state_before) else { return Vec::new() };
        let mut differences = Vec::new();
        let goal_after = snapshot::doc(self.files_after, Doc::Goal);
        if goal_after != expected.get(&Doc::Goal).map(Vec::as_slice) {
            let found = format!("{} with other changes", Doc::Goal.path());
            let expected = "the goal as before, with the id of the fork";
            differences.push(Difference::new(Rule::EditScope, expected, found));
        }
        let state = RunState { run_id: Some(self.run.clone()), ..state_before.clone() };
        differences.extend(self.state_after.and_then(|after| compare::states(&state, after)));
        differences
    }
}

/// Compares the trailer of an imported plan with the nodes that the commit added.
pub(super) fn import_difference(
    value: &str,
    before: Option<&Tree>,
    after: Option<&Tree>,
) -> Option<Difference> {
    let (Some(before), Some(after)) = (before, after) else { return None };
    let known = ids(before.root(), BTreeSet::new());
    let added = ids(after.root(), BTreeSet::new()).iter().filter(|id| !known.contains(*id)).count();
    let format = value.split(' ').next().unwrap_or_default();
    let is_known = PlanFormat::ALL.iter().any(|known| known.as_str() == format);
    let expected = format!("{} {added}", if is_known { format } else { "a format" });
    (expected != value)
        .then(|| Difference::new(Rule::EditScope, format!("a plan import of {expected}"), shown(value)))
}

fn ids<'t>(node: &'t Node, mut known: BTreeSet<&'t str>) -> BTreeSet<&'t str> {
    known.insert(node.id.as_str());
    node.children.iter().fold(known, |known, child| ids(child, known))
}
