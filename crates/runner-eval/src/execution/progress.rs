//! A run on its way: a table of cases and trials on a terminal, a line a result elsewhere.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use runner_term::{CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::execution::pool::PoolEvent;
use crate::execution::trial::WorkerMessage;
use crate::plan::TrialUnit;
use crate::result::{TrialMeta, TrialOutcome};

/// How often a table is drawn anew.
const DRAW_EVERY: Duration = Duration::from_millis(120);

/// Where a unit stands.
#[derive(Clone, Debug)]
enum TrialProgress {
    Waiting,
    Running { phase: String, iterations: u32, since: Instant },
    Ended(TrialOutcome),
}

/// What is known so far.
pub(crate) struct EvalProgress<'o> {
    out: &'o Ui,
    cells: BTreeMap<TrialUnit, TrialProgress>,
    began: Instant,
    drawn_at: Option<Instant>,
    drawn_lines: usize,
    /// What a person is to see when the table stands still.
    notes: Vec<String>,
}

impl<'o> EvalProgress<'o> {
    /// With all units, and those that have their result already.
    pub(crate) fn new(out: &'o Ui, units: &[TrialUnit], had: &[(TrialUnit, TrialOutcome)]) -> Self {
        let mut cells: BTreeMap<TrialUnit, TrialProgress> =
            units.iter().map(|unit| (unit.clone(), TrialProgress::Waiting)).collect();
        for (unit, outcome) in had {
            cells.insert(unit.clone(), TrialProgress::Ended(*outcome));
        }
        Self { out, cells, began: Instant::now(), drawn_at: None, drawn_lines: 0, notes: Vec::new() }
    }

    /// Takes an event in and shows it.
    pub(crate) fn tell(&mut self, event: &PoolEvent) {
        match event {
            PoolEvent::Began(unit) => self.set(
                unit,
                TrialProgress::Running { phase: "begin".to_owned(), iterations: 0, since: Instant::now() },
            ),
            PoolEvent::Said(unit, WorkerMessage::Phase(said)) => {
                if let Some(TrialProgress::Running { phase, .. }) = self.cells.get_mut(unit) {
                    phase.clone_from(said);
                }
            }
            PoolEvent::Said(unit, WorkerMessage::Iterations(count)) => {
                if let Some(TrialProgress::Running { iterations, .. }) = self.cells.get_mut(unit) {
                    *iterations = *count;
                }
            }
            PoolEvent::Said(unit, WorkerMessage::Note(note)) => self.note(unit, note),
            PoolEvent::Said(unit, WorkerMessage::Made(meta) | WorkerMessage::Had(meta)) => {
                self.ended(unit, meta)
            }
            PoolEvent::Tick => {}
        }
        self.draw(false);
    }

    fn set(&mut self, unit: &TrialUnit, cell: TrialProgress) {
        self.cells.insert(unit.clone(), cell);
    }

    fn done(&self) -> usize {
        self.cells.values().filter(|cell| matches!(cell, TrialProgress::Ended(_))).count()
    }

    fn note(&mut self, unit: &TrialUnit, note: &str) {
        self.notes.push(format!("{unit}: {note}"));
        let line = KeyValueLine::new().with("event", "note").with("unit", unit).with("note", note);
        self.say(line, json!({ "event": "note", "unit": unit, "note": note }));
    }

    fn ended(&mut self, unit: &TrialUnit, meta: &TrialMeta) {
        self.set(unit, TrialProgress::Ended(meta.outcome));
        let done = self.done();
        let mut line = KeyValueLine::new().with("event", "ended").with("case", &meta.case_id);
        line = line.with("agent", &meta.agent).with("trial", meta.trial).with("attempt", meta.attempt);
        line = line.with("outcome", meta.outcome);
        if let (Some(cause), Some(why)) = (meta.cause, &meta.why) {
            line = line.with("cause", cause).with("why", why);
        }
        line = line.with("iterations", meta.iterations).with("seconds", format!("{:.1}", meta.wall_secs));
        let line = line.with("done", done).with("of", self.cells.len());
        self.say(line, json!({ "event": "ended", "done": done, "of": self.cells.len(), "result": meta }));
    }

    fn say(&self, line: KeyValueLine, value: Value) {
        self.out.print_now(&ProgressLine { line, value });
    }

    /// Draws the table, if there is a terminal and it is time.
    fn draw(&mut self, is_last: bool) {
        let is_soon = self.drawn_at.is_some_and(|at| at.elapsed() < DRAW_EVERY);
        if !self.out.is_terminal() || is_soon && !is_last {
            return;
        }
        let pen = self.out.styler();
        let lines = self.lines(&pen, terminal_rows().saturating_sub(2));
        let mut text = String::new();
        if self.drawn_lines > 0 {
            text.push_str(&format!("\u{1b}[{}A\u{1b}[J", self.drawn_lines));
        }
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        self.out.raw(&text);
        self.drawn_lines = lines.len();
        self.drawn_at = Some(Instant::now());
    }

    /// Draws the table for the last time, and what should be seen beside it.
    pub(crate) fn end(&mut self) {
        self.draw(true);
        if self.out.is_terminal() {
            let pen = self.out.styler();
            for note in &self.notes {
                self.out.raw(&format!("{} {note}\n", pen.paint(TextRole::Warn, "note:")));
            }
        }
    }

    /// One line a case and agent, as many as there is room for: those at work first, then the last ones.
    fn lines(&self, pen: &Styler, most: usize) -> Vec<String> {
        let mut rows: BTreeMap<(&str, &str), Vec<&TrialProgress>> = BTreeMap::new();
        for (unit, cell) in &self.cells {
            rows.entry((&unit.case, &unit.agent)).or_default().push(cell);
        }
        let width = rows.keys().map(|(case, agent)| case.len() + agent.len() + 3).max().unwrap_or(0);
        let width = width.min(pen.width / 2);
        let room = most.saturating_sub(1).max(1);
        let is_active =
            |cells: &[&TrialProgress]| cells.iter().any(|cell| matches!(cell, TrialProgress::Running { .. }));
        let too_many = rows.len() > room;
        let mut lines: Vec<String> = rows
            .iter()
            .filter(|(_, cells)| !too_many || is_active(cells))
            .take(room)
            .map(|((case, agent), cells)| row(pen, &format!("{case} ({agent})"), width, cells))
            .collect();
        let running =
            self.cells.values().filter(|cell| matches!(cell, TrialProgress::Running { .. })).count();
        let secs = self.began.elapsed().as_secs_f64();
        let whole = format!("{}/{} done, {running} running, {secs:.0} s", self.done(), self.cells.len());
        lines.push(pen.fit(&whole, pen.width));
        lines
    }
}

/// Something that just happened, for whoever is no person: people see the table.
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

fn row(pen: &Styler, name: &str, width: usize, cells: &[&TrialProgress]) -> String {
    let name: String = name.chars().take(width).collect();
    let mut line = format!("{name:width$}  ");
    let mut note = String::new();
    for cell in cells {
        line.push_str(&match cell {
            TrialProgress::Waiting => pen.paint(TextRole::Faint, "·"),
            TrialProgress::Running { phase, iterations, since } => {
                note = format!("  {phase} #{iterations} {:.0} s", since.elapsed().as_secs_f64());
                pen.paint(TextRole::Active, "▸")
            }
            TrialProgress::Ended(outcome) => mark(pen, *outcome),
        });
    }
    line + &pen.paint(TextRole::Faint, &note)
}

/// An outcome in one cell.
pub(crate) fn mark(pen: &Styler, outcome: TrialOutcome) -> String {
    match outcome {
        TrialOutcome::Success => pen.paint(TextRole::Good, "✓"),
        TrialOutcome::Fail => pen.paint(TextRole::Bad, "✗"),
        TrialOutcome::Stuck => pen.paint(TextRole::Warn, "s"),
        TrialOutcome::Error => pen.paint(TextRole::Warn, "e"),
        TrialOutcome::Skipped => pen.paint(TextRole::Faint, "-"),
    }
}

fn terminal_rows() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0).unwrap_or(24)
}
