//! The details of a run's status after a stop.

use super::{RunFacts, RunTotals, on_stuck};
use crate::config::OnStuck;
use crate::format::counted;
use crate::model::id::NodeId;
use crate::model::ratchet::RecheckRecord;
use crate::model::tree::stuck_leaves;
use crate::step::StopReason;
use crate::text::one_line;

/// How many annotations the details of a complete run list.
const ANNOTATIONS_MAX: usize = 5;
/// How many notes on a failed attempt the details of a stuck run list.
const NOTES_MAX: usize = 3;
/// How many skipped tasks the details of a stuck run name.
const SKIPPED_MAX: usize = 20;

/// What a reader should know about a run that stopped for this reason.
pub(super) fn of_stop(facts: &RunFacts<'_>, reason: &StopReason) -> Vec<String> {
    match reason {
        StopReason::Complete => complete_details(&facts.totals),
        StopReason::Stuck { node } => stuck_details(facts, node),
        StopReason::Regressed { .. } => regressed_details(facts),
        StopReason::NotReproducible { .. } => {
            vec!["the last commit depends on files that are not in it".to_owned()]
        }
        StopReason::Failures { .. } | StopReason::NeedsUser { .. } => vec!["no attempt was used".to_owned()],
        StopReason::TimeLimit { .. } | StopReason::Interrupted { .. } => {
            vec!["work so far is committed".to_owned()]
        }
        StopReason::Stalled { .. } => stalled_details(facts),
        StopReason::MaxIterations { .. }
        | StopReason::LoopIterations { .. }
        | StopReason::LoopBudget { .. }
        | StopReason::LoopUntil { .. }
        | StopReason::Budget { .. }
        | StopReason::VacuousChecks { .. }
        | StopReason::NotApproved
        | StopReason::UserStop
        | StopReason::Unknown => Vec::new(),
    }
}

fn complete_details(totals: &RunTotals<'_>) -> Vec<String> {
    let mut counts = counted(totals.iterations, "iteration", "iterations");
    if let Some(failed) = totals.failed_attempts {
        counts += &format!(", {}", counted(failed, "failed attempt", "failed attempts"));
    }
    let annotations = totals.annotations.iter().take(ANNOTATIONS_MAX).map(|text| one_line(text));
    std::iter::once(counts).chain(annotations).collect()
}

/// The tasks that were skipped, if there are any besides the one that the run is stuck at.
fn skipped_text(facts: &RunFacts<'_>) -> Option<String> {
    let stuck = facts.documents.tree.filter(|_| on_stuck(facts) == OnStuck::Skip).map(stuck_leaves)?;
    if stuck.len() < 2 {
        return None;
    }
    let mut names: Vec<String> =
        stuck.iter().take(SKIPPED_MAX).map(|leaf| format!("`{}`", leaf.id)).collect();
    if stuck.len() > SKIPPED_MAX {
        names.push(format!("and {} more", stuck.len() - SKIPPED_MAX));
    }
    Some(format!("{} skipped tasks have no attempts left: {}", stuck.len(), names.join(", ")))
}

/// The checks of passed tasks that fail again.
fn regressed_details(facts: &RunFacts<'_>) -> Vec<String> {
    let Some(state) = facts.documents.state else { return Vec::new() };
    let text = |red: &RecheckRecord| {
        let by = red.broken_by.map(|iter| format!(", broken by iteration {}", iter.get()));
        format!("check `{}` of `{}`: {}{}", red.name, red.node, red.exit, by.unwrap_or_default())
    };
    state.ratchet.regressed.iter().take(NOTES_MAX).map(text).collect()
}

/// What the last iteration came to, for a run without progress.
fn stalled_details(facts: &RunFacts<'_>) -> Vec<String> {
    let Some(state) = facts.documents.state else { return Vec::new() };
    let Some(outcome) = state.last_outcome else { return Vec::new() };
    let summary = state.last_note_line();
    let colon = if summary.is_empty() { "" } else { ": " };
    vec![format!("last iteration: {}{colon}{summary}", outcome.label().text)]
}

/// What the last session on a stuck task left: its outcome, its summary and the runner's notes.
fn stuck_details(facts: &RunFacts<'_>, node: &NodeId) -> Vec<String> {
    let mut details = Vec::new();
    let history = facts.documents.state.map(|state| state.node_history.as_slice()).unwrap_or_default();
    if let Some(last) = history.iter().rev().find(|history| history.node == *node) {
        let outcome = last.outcome.label().text;
        let summary = one_line(&last.summary);
        let colon = if summary.is_empty() { "" } else { ": " };
        details.push(format!("last attempt, #{}, {outcome}{colon}{summary}", last.iter.get()));
        details.extend(last.notes.iter().take(NOTES_MAX).map(|note| one_line(note)));
    }
    details.extend(skipped_text(facts));
    details
}
