//! What a start may say beside that it starts: that it goes on from another run, or that it took a plan in.

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

/// A fork as its first commit should have made it.
pub(super) struct ExpectedFork<'a> {
    /// The run that it goes on from, and the iteration that lies before it, if one does.
    pub(super) from: (&'a RunId, Option<IterationNumber>),
    /// Its own name.
    pub(super) run: &'a RunId,
    pub(super) before: (&'a Files, Option<&'a RunState>),
    pub(super) after: (&'a Files, Option<&'a RunState>),
}

impl ExpectedFork<'_> {
    /// What is wrong with a fork's first commit: its place, its message, or anything it changes but two names.
    pub(super) fn differences(&self, commit: &AuditedCommit, text: &str) -> Vec<Difference> {
        let mut wrong = Vec::new();
        let (from, iter) = self.from;
        let Some(iter) = iter else {
            let expected = format!("an iteration of run {from} before a fork");
            return vec![(Rule::Parents, expected, "another commit".to_owned())];
        };
        let message = fork::message(self.run, from, iter);
        if text != message {
            wrong.push((Rule::Message, shown(&message), shown(text)));
        }
        let two = [Doc::Goal.path().as_bytes(), Doc::RunState.path().as_bytes()];
        for change in commit.changes.iter().filter(|change| !two.contains(&change.path.as_slice())) {
            let path = RepoPath::of_bytes(&change.path);
            wrong.push((Rule::EditScope, format!("{path} as before"), format!("{path} changed")));
        }
        let goal = |files| snapshot::doc(files, Doc::Goal);
        let (Some(goal_before), Some(state_before)) = (goal(self.before.0), self.before.1) else {
            return wrong;
        };
        let Ok(expected) = fork::documents(self.run, goal_before, state_before) else { return wrong };
        if goal(self.after.0) != expected.get(&Doc::Goal).map(Vec::as_slice) {
            let found = format!("{} changed otherwise", Doc::Goal.path());
            wrong.push((Rule::EditScope, "the goal as before, with the id of the fork".to_owned(), found));
        }
        let state = RunState { run_id: Some(self.run.clone()), ..state_before.clone() };
        wrong.extend(self.after.1.and_then(|after| compare::states(&state, after)));
        wrong
    }
}

/// What is wrong with what a start says of a plan that it took in.
pub(super) fn import(value: &str, before: Option<&Tree>, after: Option<&Tree>) -> Option<Difference> {
    let (Some(before), Some(after)) = (before, after) else { return None };
    let known = ids(before.root(), BTreeSet::new());
    let new = ids(after.root(), BTreeSet::new()).iter().filter(|id| !known.contains(*id)).count();
    let format = value.split(' ').next().unwrap_or_default();
    let is_known = PlanFormat::ALL.iter().any(|known| known.as_str() == format);
    let expected = format!("{} {new}", if is_known { format } else { "a format" });
    (expected != value).then(|| (Rule::EditScope, format!("a plan import of {expected}"), shown(value)))
}

fn ids<'t>(node: &'t Node, mut known: BTreeSet<&'t str>) -> BTreeSet<&'t str> {
    known.insert(node.id.as_str());
    node.children.iter().fold(known, |known, child| ids(child, known))
}
