//! Shows the progress of an evaluation run: a table of cases and trials on a terminal, one line per result elsewhere.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use runner_term::{CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::execution::pool::PoolEvent;
use crate::execution::worker::WorkerMessage;
use crate::plan::PlannedTrial;
use crate::result::{FailureCause, TrialMeta, TrialOutcome};

/// The least time between two redraws of the table.
const REDRAW_INTERVAL: Duration = Duration::from_millis(120);

#[derive(Clone, Debug)]
enum TrialProgress {
    Waiting,
    Running { phase: String, iterations: u32, since: Instant },
    Ended(TrialOutcome),
}

/// A trial that had its result before this command started.
#[derive(Clone, Debug)]
pub(crate) struct CompletedTrial {
    pub(crate) trial: PlannedTrial,
    pub(crate) outcome: TrialOutcome,
}

pub(crate) struct EvalProgress<'u> {
    ui: &'u Ui,
    trials: BTreeMap<PlannedTrial, TrialProgress>,
    started: Instant,
    drawn_at: Option<Instant>,
    drawn_lines: usize,
    /// Warnings to show below the final table.
    notes: Vec<String>,
    tally: ProgressTally,
}

/// What the trials of this command have shown so far.
#[derive(Clone, Copy, Debug, Default)]
struct ProgressTally {
    ended: usize,
    scored: u32,
    successes: u32,
    microdollars: u64,
    has_unknown_cost: bool,
}

impl ProgressTally {
    fn add(&mut self, meta: &TrialMeta) {
        self.ended += 1;
        self.scored += u32::from(meta.is_scored());
        self.successes += u32::from(meta.outcome == TrialOutcome::Success);
        self.microdollars += meta.cost.microdollars.unwrap_or(0);
        self.has_unknown_cost |= meta.cost.microdollars.is_none();
    }

    /// Pass rate, cost and remaining time, as far as they are known.
    fn describe(&self, elapsed: Duration, left: usize) -> String {
        let mut text = String::new();
        if self.scored > 0 {
            text.push_str(&format!(
                ", {:.0} % passed",
                100.0 * f64::from(self.successes) / f64::from(self.scored)
            ));
        }
        if self.microdollars > 0 {
            let at_least = if self.has_unknown_cost { "at least " } else { "" };
            text.push_str(&format!(", {at_least}${:.2}", self.microdollars as f64 / 1e6));
        }
        if self.ended > 0 && left > 0 {
            let seconds = elapsed.as_secs_f64() / self.ended as f64 * left as f64;
            text.push_str(&format!(", about {} left", duration_text(seconds)));
        }
        text
    }
}

/// A duration for people, with one unit.
fn duration_text(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5_400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3_600.0),
    }
}

impl<'u> EvalProgress<'u> {
    pub(crate) fn new(ui: &'u Ui, trials: &[PlannedTrial], completed: &[CompletedTrial]) -> Self {
        let mut progress: BTreeMap<PlannedTrial, TrialProgress> =
            trials.iter().map(|trial| (trial.clone(), TrialProgress::Waiting)).collect();
        for CompletedTrial { trial, outcome } in completed {
            progress.insert(trial.clone(), TrialProgress::Ended(*outcome));
        }
        let started = Instant::now();
        Self {
            ui,
            trials: progress,
            started,
            drawn_at: None,
            drawn_lines: 0,
            notes: Vec::new(),
            tally: ProgressTally::default(),
        }
    }

    /// Updates the state from an event and shows it.
    pub(crate) fn handle(&mut self, event: &PoolEvent) {
        match event {
            PoolEvent::Started(trial) => {
                let phase = "start".to_owned();
                let running = TrialProgress::Running { phase, iterations: 0, since: Instant::now() };
                self.trials.insert(trial.clone(), running);
            }
            PoolEvent::Message(trial, message) => self.handle_message(trial, message),
            PoolEvent::Tick => {}
        }
        let is_recent = self.drawn_at.is_some_and(|at| at.elapsed() < REDRAW_INTERVAL);
        if !is_recent {
            self.draw();
        }
    }

    fn handle_message(&mut self, trial: &PlannedTrial, message: &WorkerMessage) {
        match (message, self.trials.get_mut(trial)) {
            (WorkerMessage::Phase(new), Some(TrialProgress::Running { phase, .. })) => phase.clone_from(new),
            (WorkerMessage::Iterations(count), Some(TrialProgress::Running { iterations, .. })) => {
                *iterations = *count;
            }
            (WorkerMessage::Phase(_) | WorkerMessage::Iterations(_), _) => {}
            (WorkerMessage::Note(note), _) => self.note(trial, note),
            // Another machine works on it; its result is not ours to show.
            (WorkerMessage::Busy, _) => {
                self.trials.remove(trial);
            }
            (WorkerMessage::Finished(meta) | WorkerMessage::AlreadyDone(meta), _) => {
                self.end_trial(trial, meta);
            }
        }
    }

    fn done(&self) -> usize {
        self.trials.values().filter(|progress| matches!(progress, TrialProgress::Ended(_))).count()
    }

    fn note(&mut self, trial: &PlannedTrial, note: &str) {
        self.notes.push(format!("{trial}: {note}"));
        let line = KeyValueLine::new().with("event", "note").with("trial", trial).with("note", note);
        let value = json!({ "event": "note", "trial": trial, "note": note });
        self.ui.print_now(&ProgressLine { line, value });
    }

    /// Shows a warning about the whole run.
    pub(crate) fn warn(&mut self, note: &str) {
        self.notes.push(note.to_owned());
        let line = KeyValueLine::new().with("event", "note").with("note", note);
        self.ui.print_now(&ProgressLine { line, value: json!({ "event": "note", "note": note }) });
    }

    fn end_trial(&mut self, trial: &PlannedTrial, meta: &TrialMeta) {
        self.tally.add(meta);
        // An interrupted trial is still open.
        let is_open = meta.cause == Some(FailureCause::Interrupted);
        let state = if is_open { TrialProgress::Waiting } else { TrialProgress::Ended(meta.outcome) };
        self.trials.insert(trial.clone(), state);
        let done = self.done();
        let total = self.trials.len();
        let mut line = KeyValueLine::new()
            .with("event", "trial")
            .with("case", &meta.case_id)
            .with("agent", &meta.agent)
            .with("trial", meta.trial)
            .with("attempt", meta.attempt)
            .with("outcome", meta.outcome);
        if let (Some(cause), Some(why)) = (meta.cause, &meta.why) {
            line = line.with("cause", cause).with("why", why);
        }
        let line = line
            .with("iterations", meta.iterations)
            .with("seconds", format!("{:.1}", meta.wall_secs))
            .with("done", done)
            .with("total", total);
        let value = json!({ "event": "trial", "done": done, "total": total, "result": meta });
        self.ui.print_now(&ProgressLine { line, value });
    }

    /// Draws the table over the previous one, on a terminal.
    fn draw(&mut self) {
        if !self.ui.is_terminal() {
            return;
        }
        let lines = self.table(&self.ui.styler(), terminal_rows().saturating_sub(2));
        let mut text = String::new();
        if self.drawn_lines > 0 {
            text.push_str(&format!("\u{1b}[{}A\u{1b}[J", self.drawn_lines));
        }
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.ui.raw(&text);
        self.drawn_lines = lines.len();
        self.drawn_at = Some(Instant::now());
    }

    /// Draws the final table and the notes.
    pub(crate) fn finish(&mut self) {
        self.draw();
        if self.ui.is_terminal() {
            let styler = self.ui.styler();
            for note in &self.notes {
                self.ui.raw(&format!("{} {note}\n", styler.paint(TextRole::Warn, "note:")));
            }
        }
    }

    /// One line per case and agent, and a summary. If there are more than fit, only those that are running.
    fn table(&self, styler: &Styler, lines_max: usize) -> Vec<String> {
        let mut rows: BTreeMap<(&str, &str), Vec<&TrialProgress>> = BTreeMap::new();
        for (trial, progress) in &self.trials {
            rows.entry((&trial.case, &trial.agent)).or_default().push(progress);
        }
        let longest = rows.keys().map(|(case, agent)| case.len() + agent.len() + 3).max().unwrap_or(0);
        let width = longest.min(styler.width / 2);
        let rows_max = lines_max.saturating_sub(1).max(1);
        let is_too_long = rows.len() > rows_max;
        let mut lines = Vec::new();
        for ((case, agent), trials) in &rows {
            let is_running = trials.iter().any(|trial| matches!(trial, TrialProgress::Running { .. }));
            if lines.len() < rows_max && (!is_too_long || is_running) {
                lines.push(row(styler, &format!("{case} ({agent})"), width, trials));
            }
        }
        let running =
            self.trials.values().filter(|trial| matches!(trial, TrialProgress::Running { .. })).count();
        let elapsed = self.started.elapsed();
        let left = self.trials.len().saturating_sub(self.done());
        let summary = format!(
            "{}/{} done, {running} running, {}{}",
            self.done(),
            self.trials.len(),
            duration_text(elapsed.as_secs_f64()),
            self.tally.describe(elapsed, left)
        );
        lines.push(styler.fit(&summary, styler.width));
        lines
    }
}

/// One event for scripts and programs; people see the table.
pub(crate) struct ProgressLine {
    pub(crate) line: KeyValueLine,
    pub(crate) value: Value,
}

impl CommandOutput for ProgressLine {
    fn json(&self) -> Value {
        self.value.clone()
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![self.line.clone()]
    }

    fn human(&self, _: &Styler) -> String {
        String::new()
    }
}

fn row(styler: &Styler, name: &str, width: usize, trials: &[&TrialProgress]) -> String {
    let name: String = name.chars().take(width).collect();
    let mut line = format!("{name:width$}  ");
    let mut status = String::new();
    for trial in trials {
        line.push_str(&match trial {
            TrialProgress::Waiting => styler.paint(TextRole::Faint, "·"),
            TrialProgress::Running { phase, iterations, since } => {
                status = format!("  {phase} #{iterations} {:.0} s", since.elapsed().as_secs_f64());
                styler.paint(TextRole::Active, "▸")
            }
            TrialProgress::Ended(outcome) => outcome_glyph(styler, *outcome),
        });
    }
    line + &styler.paint(TextRole::Faint, &status)
}

pub(crate) fn outcome_glyph(styler: &Styler, outcome: TrialOutcome) -> String {
    match outcome {
        TrialOutcome::Success => styler.paint(TextRole::Good, "✓"),
        TrialOutcome::Fail => styler.paint(TextRole::Bad, "✗"),
        TrialOutcome::Stuck => styler.paint(TextRole::Warn, "s"),
        TrialOutcome::Error => styler.paint(TextRole::Warn, "e"),
        TrialOutcome::Skipped => styler.paint(TextRole::Faint, "-"),
    }
}

/// How often each outcome occurs.
pub(crate) fn outcome_counts<'m>(
    metas: impl IntoIterator<Item = &'m TrialMeta>,
) -> BTreeMap<TrialOutcome, usize> {
    let mut counts = BTreeMap::new();
    for meta in metas {
        *counts.entry(meta.outcome).or_default() += 1;
    }
    counts
}

/// The same as a JSON object.
pub(crate) fn outcome_counts_json(counts: &BTreeMap<TrialOutcome, usize>) -> Value {
    counts.iter().map(|(outcome, count)| (outcome.to_string(), Value::from(*count))).collect()
}

/// The same for people: `✓ 3 success   ✗ 1 fail`.
pub(crate) fn outcome_counts_line(styler: &Styler, counts: &BTreeMap<TrialOutcome, usize>) -> String {
    let parts: Vec<String> = counts
        .iter()
        .map(|(outcome, count)| format!("{} {count} {outcome}", outcome_glyph(styler, *outcome)))
        .collect();
    parts.join("   ")
}

fn terminal_rows() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0).unwrap_or(24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_rate_cost_and_remaining_time() {
        let tally = ProgressTally {
            ended: 4,
            scored: 4,
            successes: 3,
            microdollars: 1_500_000,
            has_unknown_cost: false,
        };
        assert_eq!(tally.describe(Duration::from_secs(40), 12), ", 75 % passed, $1.50, about 2 min left");
        let unknown = ProgressTally { has_unknown_cost: true, ..tally };
        assert!(unknown.describe(Duration::from_secs(1), 0).ends_with("at least $1.50"));
        assert_eq!(ProgressTally::default().describe(Duration::ZERO, 3), "");
        assert_eq!(duration_text(7_200.0), "2.0 h");
    }
}
