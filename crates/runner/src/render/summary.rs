//! What a loop did, for a person who reads it in the morning.

use std::time::Duration;

use runner_core::config::Budget;
use runner_core::layout::Doc;
use runner_core::model::cost::RunSpending;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::tree::LeafCount;
use runner_core::step::{AttemptCharge, Event, Outcome, StopReason};
use runner_term::format::clock;
use runner_term::format::counted;
use runner_term::{Glyph, Styler, TextRole};

use super::event::mark_text;

use super::cost::{blind_text, budget_why, spent_text};

/// Kept up while the loop runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopSummary {
    pub(crate) run: Option<RunId>,
    pub(crate) iterations: u32,
    pub(crate) leaves: Option<LeafCount>,
    passed: Vec<NodeId>,
    charged: u32,
    node: Option<NodeId>,
    last: Option<(IterationNumber, Outcome)>,
    marks: Vec<String>,
    /// What the run has cost, and what it may cost.
    pub(crate) spent: RunSpending,
    pub(crate) budget: Budget,
    blind: Option<String>,
}

impl LoopSummary {
    /// Takes an event in.
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Planned { run_id, node, budget, spent, .. } => {
                self.run = Some(run_id.clone());
                self.node.clone_from(node);
                (self.budget, self.spent) = (*budget, *spent);
            }
            Event::BudgetUnenforceable { limits, agent } => self.blind = Some(blind_text(limits, agent)),
            Event::Decided { iter, outcome, charge, leaves, annotations: marks, spent, .. } => {
                self.spent = *spent;
                self.iterations += 1;
                self.leaves = Some(*leaves);
                self.last = Some((*iter, *outcome));
                self.charged += u32::from(*charge == AttemptCharge::Charged);
                self.marks.extend(marks.iter().map(|mark| format!("#{}: {}", iter.get(), mark_text(mark))));
                if *outcome == Outcome::Passed {
                    self.passed.extend(self.node.clone());
                }
            }
            Event::HookRan { .. }
            | Event::BaselineStarted { .. }
            | Event::BaselineEnded { .. }
            | Event::Recovered { .. }
            | Event::Agent { .. }
            | Event::AgentEnded { .. }
            | Event::Checked { .. }
            | Event::GuardStarted { .. }
            | Event::GuardEnded { .. }
            | Event::Committed { .. }
            | Event::Waiting { .. }
            | Event::Paused
            | Event::Resumed
            | Event::Stopped { .. }
            | Event::Unknown => {}
        }
    }

    /// The whole, drawn.
    pub(crate) fn drawn(&self, stop: &StopReason, took: Duration, pen: &Styler) -> String {
        let (glyph, ink) = match stop {
            StopReason::Complete => (Glyph::Passed, TextRole::Good),
            StopReason::UserStop | StopReason::Interrupted { .. } | StopReason::LoopIterations { .. } => {
                (Glyph::Retried, TextRole::Warn)
            }
            StopReason::Stuck { .. }
            | StopReason::MaxIterations { .. }
            | StopReason::Budget { .. }
            | StopReason::TimeLimit { .. }
            | StopReason::Failures { .. }
            | StopReason::NeedsUser { .. }
            | StopReason::Unknown => (Glyph::Failed, TextRole::Bad),
        };
        let leaves = self.leaves.map(|leaves| format!(", {}/{} leaves", leaves.passed, leaves.total));
        let iterations = counted(self.iterations, "iteration", "iterations");
        let mut text = format!(
            "\n{} {} after {iterations} ({}{})\n",
            pen.paint(ink, pen.glyph(glyph)),
            pen.paint(ink, &headline(stop)),
            clock(took),
            leaves.unwrap_or_default()
        );
        for (name, says) in self.rows(stop) {
            let says = pen.fit(&says, pen.width.saturating_sub(12));
            text.push_str(&format!("  {} {says}\n", pen.paint(TextRole::Faint, &format!("{name:8}"))));
        }
        text
    }

    fn rows(&self, stop: &StopReason) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        if !self.passed.is_empty() {
            let names: Vec<&str> = self.passed.iter().map(NodeId::as_str).collect();
            rows.push(("passed", names.join(", ")));
        }
        if self.charged > 0 {
            rows.push(("attempts", format!("{} spent on what did not pass", self.charged)));
        }
        rows.extend(self.marks.iter().map(|mark| ("mark", mark.clone())));
        rows.extend(spent_text(&self.spent, &self.budget).map(|text| ("spent", text)));
        rows.extend(self.blind.clone().map(|text| ("warning", text)));
        rows.push(("why", why(stop)));
        if let (Some(run), Some((iter, outcome)), false) =
            (&self.run, self.last, *stop == StopReason::Complete)
        {
            let log = if outcome == Outcome::GuardFailed { "guard.log" } else { "executor.log" };
            rows.push(("log", format!(".runner/iterations/{run}/{iter}/{log}")));
        }
        rows.extend(self.next(stop).into_iter().map(|next| ("next", next)));
        rows
    }

    /// What to type now.
    pub(crate) fn next(&self, stop: &StopReason) -> Vec<String> {
        let branch = self.run.as_ref().map(|run| run.branch().to_string()).unwrap_or_default();
        let config = Doc::Config.path();
        match stop {
            StopReason::Complete => vec![
                format!("git log --oneline {branch}"),
                format!("git switch main && git merge --no-ff {branch}"),
            ],
            StopReason::Stuck { node } => {
                unstick(node).into_iter().chain(["runner loop".to_owned()]).collect()
            }
            StopReason::MaxIterations { .. } => {
                vec![format!("raise max_iterations in {config}, run 'runner start', then 'runner loop'")]
            }
            StopReason::Budget { limit, .. } => vec![format!(
                "raise {} under [budget] in {config}, run 'runner start', then 'runner loop'",
                limit.as_str()
            )],
            StopReason::TimeLimit { .. } => vec![
                "runner loop    to go on".to_owned(),
                format!("if it was too short, raise the timeouts in {config} and run 'runner start' first"),
            ],
            StopReason::Failures { .. } => {
                vec!["runner doctor    to see what is missing, then 'runner loop'".to_owned()]
            }
            StopReason::NeedsUser { .. } => {
                vec!["log the agent in or give it its key (see the log), then 'runner loop'".to_owned()]
            }
            StopReason::LoopIterations { .. }
            | StopReason::Interrupted { .. }
            | StopReason::UserStop
            | StopReason::Unknown => {
                vec!["runner loop    to go on".to_owned()]
            }
        }
    }
}

/// What can be done about a leaf whose attempts are spent.
pub(crate) fn unstick(node: &NodeId) -> Vec<String> {
    vec![
        format!("runner node allow {node}    for more attempts"),
        format!(
            "runner node edit {node} --goal \"…\"    to ask for something else, and then allow it attempts"
        ),
        format!("runner node split {node} --into \"…\" --into \"…\"    to divide it"),
    ]
}

fn headline(stop: &StopReason) -> String {
    stop.as_str().replace('_', " ").to_uppercase()
}

pub(crate) fn why(stop: &StopReason) -> String {
    match stop {
        StopReason::Budget { .. } => budget_why(stop).unwrap_or_default(),
        StopReason::Complete => "every leaf passes".to_owned(),
        StopReason::Stuck { node } => format!("every attempt at `{node}` is spent"),
        StopReason::MaxIterations { max } => format!("the run has made its {max} iterations"),
        StopReason::LoopIterations { max } => format!("the {max} iterations that were asked for are made"),
        StopReason::TimeLimit { outcome } => {
            format!("an iteration ran out of time: {}", outcome.as_str().replace('_', " "))
        }
        StopReason::Failures { outcome, in_row } => {
            format!("{in_row} failures in a row, the last one: {}", outcome.as_str().replace('_', " "))
        }
        StopReason::NeedsUser { outcome } => {
            format!("the agent cannot work here: {}", outcome.as_str().replace('_', " "))
        }
        StopReason::Interrupted { .. } => "a signal; what there was is committed".to_owned(),
        StopReason::UserStop => "you asked for it".to_owned(),
        StopReason::Unknown => "a newer runner stopped it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::model::cost::BudgetLimit;

    #[test]
    fn every_ending_says_why_and_what_next() {
        let node = NodeId::root();
        for stop in [
            StopReason::Complete,
            StopReason::Stuck { node },
            StopReason::MaxIterations { max: 3 },
            StopReason::LoopIterations { max: 3 },
            StopReason::Budget { limit: BudgetLimit::RunUsd, node: None, spent: 2, max: 1 },
            StopReason::TimeLimit { outcome: Outcome::IdleTimeout },
            StopReason::Failures { outcome: Outcome::NoAnswer, in_row: 3 },
            StopReason::NeedsUser { outcome: Outcome::NotLoggedIn },
            StopReason::UserStop,
        ] {
            let text = LoopSummary::default().drawn(&stop, Duration::from_secs(1), &Styler::plain(80));
            assert!(text.contains("why") && text.contains("next"), "{text}");
        }
    }
}
