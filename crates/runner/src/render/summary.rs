//! The summary that `runner loop` and `runner step` print when a run stops.

use std::time::Duration;

use runner_core::config::Budget;
use runner_core::labels::annotation_text;
use runner_core::layout::RUNNER_DIR;
use runner_core::model::cost::RunSpending;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::tree::LeafCount;
use runner_core::run_status::{
    LifecycleState, NextCommand, RunFacts, RunRef, RunStatus, RunTotals, run_status,
};
use runner_core::step::{AttemptCharge, Event, Outcome, StopReason};
use runner_term::format::{clock, counted};
use runner_term::{Styler, TextRole};
use unicode_width::UnicodeWidthStr;

use super::cost::{blind_text, spent_text};

/// The column of the values, behind their names.
const VALUE_COLUMN: usize = 11;

/// What a loop did so far, collected from its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopSummary {
    session: Option<SummarySession>,
    pub(crate) iterations: u32,
    pub(crate) leaves: Option<LeafCount>,
    passed: Vec<NodeId>,
    failed_attempts: u32,
    last: Option<(IterationNumber, Outcome)>,
    annotations: Vec<String>,
    pub(crate) spent: RunSpending,
    pub(crate) budget: Budget,
    warning: Option<String>,
}

/// The last session that was planned.
#[derive(Clone, Debug)]
struct SummarySession {
    run: RunId,
    node: Option<NodeId>,
}

impl LoopSummary {
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Planned { run_id, node, budget, spent, .. } => {
                self.session = Some(SummarySession { run: run_id.clone(), node: node.clone() });
                self.budget = *budget;
                self.spent = *spent;
            }
            Event::BudgetUnenforceable { limits, agent } => self.warning = Some(blind_text(limits, agent)),
            Event::Decided { iter, outcome, charge, leaves, annotations, spent, .. } => {
                self.spent = *spent;
                self.iterations += 1;
                self.leaves = Some(*leaves);
                self.last = Some((*iter, *outcome));
                self.failed_attempts += u32::from(*charge == AttemptCharge::Charged);
                for annotation in annotations {
                    let text = annotation_text(annotation);
                    let is_general = annotation.is_about_place();
                    let note = if is_general { text } else { format!("#{}: {text}", iter.get()) };
                    if !self.annotations.contains(&note) {
                        self.annotations.push(note);
                    }
                }
                if *outcome == Outcome::Passed {
                    self.passed.extend(self.session.as_ref().and_then(|session| session.node.clone()));
                }
            }
            Event::HookRan { .. }
            | Event::Asked { .. }
            | Event::QueuedEdit { .. }
            | Event::Notified { .. }
            | Event::SandboxChosen { .. }
            | Event::GuardInPlace { .. }
            | Event::RoomProposal { .. }
            | Event::BaselineStarted { .. }
            | Event::BaselineEnded { .. }
            | Event::FinalCheckStarted { .. }
            | Event::FinalCheckEnded { .. }
            | Event::RecheckStarted { .. }
            | Event::RecheckEnded { .. }
            | Event::RegressionAdded { .. }
            | Event::Recovered { .. }
            | Event::Agent { .. }
            | Event::AgentEnded { .. }
            | Event::FileNoticed { .. }
            | Event::Checked { .. }
            | Event::GuardStarted { .. }
            | Event::CheckStarted { .. }
            | Event::HeldoutEnded { .. }
            | Event::CheckEnded { .. }
            | Event::ReviewStarted { .. }
            | Event::ReviewEnded { .. }
            | Event::GuardEnded { .. }
            | Event::Committed { .. }
            | Event::OutageContinues { .. }
            | Event::Waiting { .. }
            | Event::Paused
            | Event::Resumed
            | Event::Stopped { .. }
            | Event::Unknown => {}
        }
    }

    /// Whether the summary shows something that only the run's documents have.
    pub(crate) fn needs_documents(&self, stop: &StopReason) -> bool {
        self.session.is_none()
            || matches!(
                stop,
                StopReason::Stuck { .. }
                    | StopReason::NotReproducible { .. }
                    | StopReason::Regressed { .. }
                    | StopReason::Stalled { .. }
                    | StopReason::TimeLimit { .. }
                    // The run may be paused, or wait for a provider.
                    | StopReason::LoopUntil { .. }
                    | StopReason::Interrupted { .. }
                    | StopReason::UserStop
            )
    }

    /// The status of the run that this loop leaves. `read` holds what was read after the loop, if anything was.
    pub(crate) fn status(&self, stop: &StopReason, read: &RunFacts<'_>) -> RunStatus {
        let branch = self.session.as_ref().map(|session| session.run.branch().to_string());
        let session = self.session.as_ref().zip(branch.as_deref());
        let run = session.map(|(session, branch)| RunRef { id: &session.run, branch });
        run_status(&RunFacts {
            run: run.or(read.run),
            documents: read.documents,
            totals: RunTotals {
                iterations: self.iterations,
                failed_attempts: Some(self.failed_attempts),
                leaves: self.leaves,
                ..RunTotals::default()
            },
            is_paused: read.is_paused,
            wait: read.wait,
            stop: Some(stop),
            ..RunFacts::default()
        })
    }

    pub(crate) fn draw(&self, status: &RunStatus, took: Duration, styler: &Styler) -> String {
        let label = status.label();
        let mut numbers = format!("{}, {}", counted(self.iterations, "iteration", "iterations"), clock(took));
        if let (false, Some(leaves)) = (status.state == LifecycleState::Complete, self.leaves) {
            numbers += &format!(", {}/{} tasks passed", leaves.passed, leaves.total);
        }
        let state = label.text.to_uppercase();
        let is_long = format!("G {state}: {} ({numbers})", status.headline).width() > styler.width;
        let numbers = if is_long { format!("\n  {numbers}") } else { format!(" ({numbers})") };
        let mut text = format!(
            "\n{} {}: {}{numbers}\n",
            styler.label_glyph(label),
            styler.paint(label.tone.into(), &state),
            status.headline,
        );
        let width = styler.width.saturating_sub(VALUE_COLUMN + 1);
        let mut push_row = |name: &str, value: &str| {
            text.push_str(&format!("  {} {value}\n", styler.paint(TextRole::Faint, &format!("{name:8}"))));
        };
        for (name, value) in self.rows(status) {
            let value = match name {
                "passed" => styler.fit(&value, width),
                // A path is one word and stays whole.
                _ => styler.wrap_commands(&value, VALUE_COLUMN),
            };
            push_row(name, &value);
        }
        let names = std::iter::once("next").chain(std::iter::repeat(""));
        for (name, command) in names.zip(command_lines(&status.next, width)) {
            push_row(name, &command);
        }
        text
    }

    fn rows(&self, status: &RunStatus) -> Vec<(&'static str, String)> {
        let is_complete = status.state == LifecycleState::Complete;
        let mut rows = Vec::new();
        if !self.passed.is_empty() {
            let names: Vec<&str> = self.passed.iter().map(NodeId::as_str).collect();
            rows.push(("passed", names.join(", ")));
        }
        if self.failed_attempts > 0 {
            rows.push(("attempts", format!("{} failed", self.failed_attempts)));
        }
        rows.extend(self.annotations.iter().map(|annotation| ("note", annotation.clone())));
        rows.extend(spent_text(&self.spent, &self.budget).map(|text| ("spent", text)));
        rows.extend(self.warning.clone().map(|text| ("warning", text)));
        if !is_complete {
            rows.extend(status.details.iter().map(|detail| ("detail", detail.clone())));
            rows.extend(self.log_path().map(|path| ("log", path)));
        }
        rows
    }

    /// The log of the last iteration: the guard's if it failed, else the agent's.
    fn log_path(&self) -> Option<String> {
        let (iter, outcome) = self.last?;
        let run = &self.session.as_ref()?.run;
        let log = if outcome == Outcome::GuardFailed { "guard.log" } else { "executor.log" };
        Some(format!("{RUNNER_DIR}/iterations/{run}/{iter}/{log}"))
    }
}

/// Commands with what they do as a comment, so that every line can be copied. The comments are aligned if all lines fit into
/// `width` cells; a comment that does not fit is omitted, a command is never cut.
pub(crate) fn command_lines(commands: &[NextCommand], width: usize) -> Vec<String> {
    let longest = commands.iter().map(|next| next.command.width()).max().unwrap_or_default();
    let line = |next: &NextCommand, column: usize| {
        let gap = " ".repeat(column.saturating_sub(next.command.width()));
        format!("{}{gap}  # {}", next.command, next.what)
    };
    let aligned: Vec<String> = commands.iter().map(|next| line(next, longest)).collect();
    if aligned.iter().all(|line| line.width() <= width) {
        return aligned;
    }
    let fitting = |next: &NextCommand| {
        let text = line(next, 0);
        if text.width() <= width { text } else { next.command.clone() }
    };
    commands.iter().map(fitting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::model::cost::BudgetLimit;

    #[test]
    fn a_headline_that_does_not_fit_has_its_numbers_below() {
        let stop = StopReason::Failures { outcome: Outcome::NoAnswer, in_row: 3 };
        let summary = LoopSummary { iterations: 3, ..LoopSummary::default() };
        let status = summary.status(&stop, &RunFacts::default());
        let text = summary.draw(&status, Duration::from_secs(1), &Styler::plain(60));
        assert!(
            text.starts_with("\n✗ STOPPED: 3 failures in a row (no answer)\n  3 iterations, 0:01\n"),
            "{text}"
        );
    }

    #[test]
    fn every_stop_is_shown_with_its_reason_and_what_to_type() {
        let node = NodeId::root();
        let session = Some(SummarySession { run: RunId::new("x").unwrap(), node: None });
        let summary = LoopSummary { session, ..LoopSummary::default() };
        for (stop, banner) in [
            (StopReason::Complete, "✓ COMPLETE: all tasks passed (0 iterations, 0:01)"),
            (StopReason::Stuck { node }, "✗ STOPPED: `root` has no attempts left (0 iterations, 0:01)"),
            (StopReason::MaxIterations { max: 3 }, "✗ STOPPED: reached max_iterations (3) ("),
            (StopReason::LoopIterations { max: 3 }, "⊘ STOPPED: reached --max-iterations (3) ("),
            (
                StopReason::Budget {
                    limit: BudgetLimit::RunUsd,
                    node: None,
                    spent: 2_000_000,
                    max: 1_000_000,
                },
                "✗ STOPPED: reached run_usd: $2.00 of $1.00 spent (",
            ),
            (
                StopReason::Failures { outcome: Outcome::AgentNotStarted, in_row: 3 },
                "✗ STOPPED: 3 failures in a row (agent not started) (",
            ),
            (StopReason::NeedsUser { outcome: Outcome::NotLoggedIn }, "✗ STOPPED: not logged in ("),
            (StopReason::UserStop, "⊘ STOPPED: requested by the user ("),
        ] {
            let status = summary.status(&stop, &RunFacts::default());
            let text = summary.draw(&status, Duration::from_secs(1), &Styler::plain(80));
            assert!(text.contains(banner) && text.contains("\n  next "), "{text}");
        }
    }

    #[test]
    fn log_path_stays_whole_on_a_narrow_terminal() {
        let run = RunId::new("add-a-login-form-with-passkeys").unwrap();
        let session = Some(SummarySession { run, node: None });
        let last = Some((IterationNumber::FIRST, Outcome::GuardFailed));
        let summary = LoopSummary { session, last, ..LoopSummary::default() };
        let status = summary.status(&StopReason::UserStop, &RunFacts::default());
        let text = summary.draw(&status, Duration::from_secs(1), &Styler::plain(50));
        assert!(
            text.contains(".runner/iterations/add-a-login-form-with-passkeys/0001/guard.log\n"),
            "{text}"
        );
    }

    #[test]
    fn commands_are_copyable() {
        let command =
            |command: &str, what: &str| NextCommand { command: command.to_owned(), what: what.to_owned() };
        let commands = [command("runner node allow a", "allow it"), command("runner loop", "continue")];
        let lines = |width| command_lines(&commands, width);
        assert_eq!(lines(31), ["runner node allow a  # allow it", "runner loop          # continue"]);
        assert_eq!(lines(30), ["runner node allow a", "runner loop  # continue"]);
    }
}
