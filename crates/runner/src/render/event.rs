//! What happens while iterations are made, told line by line.

use std::time::Duration;

use runner_core::config::CommandArgv;
use runner_core::model::id::IterationNumber;
use runner_core::model::run_state::GuardResult;
use runner_core::step::{Annotation, Event, Outcome};
use runner_term::format::clock;
use runner_term::{CommandOutput, Glyph, KeyValueLine, Styler, TextRole, agent_event_line};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::clean;
use super::cost::blind_text;
use super::wait::{countdown, in_utc, left_ms, on_the_wall, reason};

/// An event to be told.
pub(crate) struct EventOutput<'e>(pub(crate) &'e Event);

fn look(outcome: Outcome) -> (Glyph, TextRole) {
    match outcome {
        Outcome::Passed | Outcome::Repaired | Outcome::Replanned => (Glyph::Passed, TextRole::Good),
        Outcome::Decomposed => (Glyph::Next, TextRole::Active),
        Outcome::Retry
        | Outcome::Interrupted
        | Outcome::RateLimited
        | Outcome::Overloaded
        | Outcome::Disconnected
        | Outcome::UsageLimit => (Glyph::Retried, TextRole::Warn),
        Outcome::GuardFailed
        | Outcome::RuleViolation
        | Outcome::InvalidTree
        | Outcome::RepairFailed
        | Outcome::RepairAbandoned
        | Outcome::ReplanRefused
        | Outcome::TimedOut
        | Outcome::IdleTimeout
        | Outcome::GuardTimedOut
        | Outcome::AgentNotStarted
        | Outcome::AgentCrashed
        | Outcome::NoAnswer
        | Outcome::ProviderRefused
        | Outcome::NotLoggedIn
        | Outcome::ContextFull
        | Outcome::GuardNotStarted => (Glyph::Failed, TextRole::Bad),
    }
}

impl CommandOutput for EventOutput<'_> {
    fn json(&self) -> Value {
        serde_json::to_value(self.0).unwrap_or_default()
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("event", self.0.name());
        vec![match self.0 {
            Event::Planned { iter, mode, path, attempt, agent: name, rung, .. } => {
                let line = line.with("iter", iter).with("mode", mode.as_str()).with("node", path);
                let line = line.with("attempt", format!("{}/{}", attempt.nth, attempt.of));
                let climbs = rung.of > 1;
                if climbs {
                    line.with("rung", format!("{}/{}", rung.nth, rung.of)).with("agent", name)
                } else {
                    line
                }
            }
            Event::Agent { iter, activity, .. } => {
                let Some(text) = agent_event_line::line(&activity.kind) else { return Vec::new() };
                line.with("iter", iter).with("kind", activity.kind.name()).with("text", text)
            }
            Event::BaselineStarted { command } => line.with("guard", clean(&command.words().join(" "))),
            Event::BaselineEnded { guard, exit, .. } => line.with("guard", guard.as_str()).with("exit", exit),
            Event::Recovered { iter, .. }
            | Event::AgentEnded { iter, .. }
            | Event::GuardStarted { iter, .. } => line.with("iter", iter),
            Event::Checked { iter, findings, .. } => {
                let line = line.with("iter", iter);
                findings.iter().fold(line, |line, finding| line.with("finding", clean(finding)))
            }
            Event::GuardEnded { iter, exit, .. } => {
                let exit = exit.map(|exit| exit.to_string()).unwrap_or_default();
                line.with("iter", iter).with("exit", exit)
            }
            Event::Decided { iter, outcome, leaves, .. } => line
                .with("iter", iter)
                .with("outcome", outcome)
                .with("leaves", format!("{}/{}", leaves.passed, leaves.total)),
            Event::Committed { iter, commit, .. } => line.with("iter", iter).with("commit", commit),
            Event::Waiting { wait, ends_unix_ms } => line
                .with("reason", wait.outcome)
                .with("agent", clean(&wait.agent))
                .with("until", in_utc(*ends_unix_ms))
                .with("left", countdown(left_ms(*ends_unix_ms))),
            Event::Paused => line.with("next", "runner resume"),
            Event::HookRan { hook, fault } => {
                let line = line.with("hook", hook).with("ok", fault.is_none());
                fault.iter().fold(line, |line, fault| line.with("fault", clean(fault)))
            }
            Event::Resumed => line,
            Event::BudgetUnenforceable { limits, agent } => {
                line.with("warning", blind_text(limits, &clean(agent)))
            }
            Event::Stopped { stop, exit_code } => line.with("reason", stop.as_str()).with("exit", exit_code),
        }]
    }

    fn human(&self, pen: &Styler) -> String {
        match self.0 {
            Event::Checked { findings, .. } => noted(findings.iter().map(|finding| clean(finding)), pen),
            Event::Waiting { wait, ends_unix_ms } => {
                let until = on_the_wall(*ends_unix_ms);
                noted([format!("waiting until {until}: {}", clean(&reason(wait)))], pen)
            }
            Event::BaselineStarted { command } => {
                let guard = clean(&command.words().join(" "));
                format!(
                    "{}\n",
                    pen.paint(
                        TextRole::Faint,
                        &pen.fit(&format!("asking the guard first: {guard}"), pen.width)
                    )
                )
            }
            Event::BaselineEnded { guard, exit, command } => baseline_text(*guard, exit, command, pen),
            Event::Paused => noted(["paused; 'runner resume' goes on".to_owned()], pen),
            Event::BudgetUnenforceable { limits, agent } => {
                let text = blind_text(limits, &clean(agent));
                format!("{} {}\n", pen.paint(TextRole::Bad, "warning:"), pen.paint(TextRole::Warn, &text))
            }
            Event::HookRan { hook, fault } => {
                noted(fault.iter().map(|fault| format!("hook {hook}: {}", clean(fault))), pen)
            }
            Event::Planned { .. }
            | Event::Recovered { .. }
            | Event::Agent { .. }
            | Event::AgentEnded { .. }
            | Event::GuardStarted { .. }
            | Event::GuardEnded { .. }
            | Event::Decided { .. }
            | Event::Committed { .. }
            | Event::Resumed
            | Event::Stopped { .. } => String::new(),
        }
    }
}

/// What the guard said before the first session.
fn baseline_text(guard: GuardResult, exit: &str, command: &CommandArgv, pen: &Styler) -> String {
    let command = clean(&command.words().join(" "));
    let text = match guard {
        GuardResult::Pass => {
            let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
            return format!("{tick} the guard is green before the first session\n");
        }
        GuardResult::Fail => format!("`{command}` is red before any agent came (exit {exit})"),
        GuardResult::Skipped => format!("`{command}` could not be asked before the first session"),
    };
    let more = "  no leaf passes before it is green; see baseline.log in the run's iterations";
    format!(
        "{} {}\n{}\n",
        pen.paint(TextRole::Bad, "warning:"),
        pen.paint(TextRole::Warn, &text),
        pen.paint(TextRole::Faint, &pen.fit(more, pen.width))
    )
}

/// Lines that belong to the iteration above or below them.
fn noted(notes: impl IntoIterator<Item = String>, pen: &Styler) -> String {
    let room = pen.width.saturating_sub(6);
    notes
        .into_iter()
        .map(|note| format!("      {}\n", pen.paint(TextRole::Warn, &pen.fit(&note, room))))
        .collect()
}

/// An iteration that is over, on one line, with what should be seen about it below.
pub(crate) fn settled(
    iter: IterationNumber,
    path: &str,
    end: (Outcome, &[Annotation]),
    took: Duration,
    pen: &Styler,
) -> String {
    let (outcome, marks) = end;
    let (glyph, ink) = look(outcome);
    let head = format!("{} #{:<4}", pen.glyph(glyph), iter.get());
    let says = outcome.as_str().replace('_', " ");
    let time = clock(took);
    let room = pen.width.saturating_sub(head.chars().count() + 2 + 20 + 2 + time.len());
    let path = if path.is_empty() { "repair of the tree" } else { path };
    let shown = pen.fit(path, room);
    let gap = " ".repeat(room.saturating_sub(shown.width()).min(40_usize.saturating_sub(shown.width())));
    let line = format!(
        "{} {shown}{gap}  {}  {}\n",
        pen.paint(ink, &head),
        pen.paint(ink, &format!("{says:20}")),
        pen.paint(TextRole::Faint, &time)
    );
    line + &noted(marks.iter().map(mark_text), pen)
}

/// A mark in words.
pub(crate) fn mark_text(mark: &Annotation) -> String {
    match mark {
        Annotation::GuardFileRestored { path } => {
            format!("the agent changed the guard's `{path}`: it was put back")
        }
        Annotation::GuardFileChanged { path } => {
            format!("the agent changed the guard's `{path}`, which the policy lets pass")
        }
        Annotation::GuardFileCreated { path } => {
            format!("the guard's `{path}` is new and is pinned from now on")
        }
        Annotation::PlanEdited { added, removed, moved, reordered, reworded } => {
            let counts = [
                ("added", added),
                ("removed", removed),
                ("moved", moved),
                ("reordered", reordered),
                ("reworded", reworded),
            ];
            let counts =
                counts.iter().filter(|(_, count)| **count > 0).map(|(what, count)| format!("{count} {what}"));
            format!("the plan was edited: {}", counts.collect::<Vec<_>>().join(", "))
        }
        Annotation::SelectedTaskEdited => "the agent changed what its own leaf asks for".to_owned(),
        Annotation::GuardFilesOmitted { count } => format!("and {count} more files of the guard"),
        Annotation::RepairAbandoned => {
            "the tree could not be repaired: the run goes on from the last valid one".to_owned()
        }
        Annotation::NothingChanged => "the session changed nothing".to_owned(),
    }
}
