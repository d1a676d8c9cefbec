//! One past iteration as JSON, `key=value` line and terminal row, for `runner log` and `runner show`.

use std::time::Duration;

use runner_core::step::Outcome;
use runner_core::text::lines;
use runner_host::view::run_view::IterationView;
use runner_term::format::{clock, counted, dollars};
use runner_term::{Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::clean;

/// A dot where the commit names no outcome that this version knows.
pub(crate) fn outcome_style(outcome: Option<Outcome>) -> (Glyph, TextRole) {
    let label = outcome.map(Outcome::label);
    label.map_or((Glyph::Open, TextRole::Warn), |label| (label.symbol.into(), label.tone.into()))
}

pub(crate) fn outcome_glyph(outcome: Option<Outcome>, styler: &Styler) -> String {
    let (glyph, role) = outcome_style(outcome);
    styler.paint(role, styler.glyph(glyph))
}

pub(crate) fn outcome_word(outcome: Option<Outcome>) -> &'static str {
    outcome.map_or("unknown", Outcome::as_str)
}

/// The outcome as people read it.
pub(crate) fn outcome_label(outcome: Option<Outcome>) -> &'static str {
    outcome.map_or("unknown", |outcome| outcome.label().text)
}

/// The node that the iteration worked on, or `repair`.
pub(crate) fn target_word(iteration: &IterationView) -> String {
    iteration.node().map_or_else(|| "repair".to_owned(), ToString::to_string)
}

pub(crate) fn iteration_json(iteration: &IterationView) -> Value {
    json!({
        "iter": iteration.iter, "commit": iteration.commit, "node": iteration.node(), "outcome": iteration.outcome,
        "committed": iteration.committed, "agent_ms": iteration.agent_time().map(milliseconds),
        "guard_ms": iteration.guard_time().map(milliseconds), "files": iteration.files,
        "cost_microdollars": iteration.cost(),
        "annotations": iteration.annotations, "summary": lines(&iteration.body),
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Unknown times and costs are left out.
pub(crate) fn iteration_line(iteration: &IterationView) -> KeyValueLine {
    let mut line = KeyValueLine::new()
        .with("iter", iteration.iter.get())
        .with("outcome", outcome_word(iteration.outcome))
        .with("node", target_word(iteration))
        .with("files", iteration.files)
        .with("commit", &iteration.commit);
    for (key, time) in [("agent_ms", iteration.agent_time()), ("guard_ms", iteration.guard_time())] {
        if let Some(time) = time {
            line = line.with(key, milliseconds(time));
        }
    }
    if let Some(cost) = iteration.cost() {
        line = line.with("cost_microdollars", cost);
    }
    line
}

/// Narrower terminals show no time of the guard.
const NARROW: usize = 76;
/// The cells of a row besides the name of the task and the time of the guard.
const OTHER_COLUMNS: usize = 53;

pub(crate) fn iteration_row(iteration: &IterationView, styler: &Styler) -> String {
    let agent = iteration.agent_time().map(clock).unwrap_or_default();
    let guard = iteration.guard_time().map(|time| format!("guard {}", clock(time))).unwrap_or_default();
    let files = match iteration.files {
        0 => String::new(),
        count => counted(count, "file", "files"),
    };
    let cost = iteration.cost().map(dollars).unwrap_or_default();
    let outcome = outcome_label(iteration.outcome);
    // Without a column for the guard if the terminal is narrow: no column is cut.
    let guard = if styler.width < NARROW { String::new() } else { format!("{guard:>13} ") };
    let name_width = styler.width.saturating_sub(OTHER_COLUMNS + guard.len()).clamp(8, 24);
    let name = styler.fit(&target_word(iteration), name_width);
    let gap = " ".repeat(name_width.saturating_sub(name.width()));
    let row = format!(
        "#{:<5} {name}{gap} {outcome:<17} {agent:>7} {guard}{files:>9} {cost:>7}",
        iteration.iter.get()
    );
    let row = styler.fit(row.trim_end(), styler.width.saturating_sub(2));
    let mut text = format!("{} {row}\n", outcome_glyph(iteration.outcome, styler));
    if styler.verbose && !iteration.annotations.is_empty() {
        let annotations = clean(&iteration.annotations.join("; "));
        text.push_str(&format!("         {}\n", styler.fit(&annotations, styler.width.saturating_sub(9))));
    }
    text
}
