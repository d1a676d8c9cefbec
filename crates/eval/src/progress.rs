//! A run on its way: a table of cases and trials on a terminal, a line a result elsewhere.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use runner_cli::{Ink, Line, Out, Pen, Reply};
use serde_json::{Value, json};

use crate::plan::Unit;
use crate::pool::Event;
use crate::result::{Meta, Outcome};
use crate::trial::Said;

/// How often a table is drawn anew.
const DRAW_EVERY: Duration = Duration::from_millis(120);

/// Where a unit stands.
#[derive(Clone, Debug)]
enum Cell {
    Waiting,
    Running { phase: String, iterations: u32, since: Instant },
    Ended(Outcome),
}

/// What is known so far.
pub(crate) struct Progress<'o> {
    out: &'o Out,
    cells: BTreeMap<Unit, Cell>,
    began: Instant,
    drawn_at: Option<Instant>,
    drawn_lines: usize,
    /// What a person is to see when the table stands still.
    notes: Vec<String>,
}

impl<'o> Progress<'o> {
    /// With all units, and those that have their result already.
    pub(crate) fn new(out: &'o Out, units: &[Unit], had: &[(Unit, Outcome)]) -> Self {
        let mut cells: BTreeMap<Unit, Cell> =
            units.iter().map(|unit| (unit.clone(), Cell::Waiting)).collect();
        for (unit, outcome) in had {
            cells.insert(unit.clone(), Cell::Ended(*outcome));
        }
        Self { out, cells, began: Instant::now(), drawn_at: None, drawn_lines: 0, notes: Vec::new() }
    }

    /// Takes an event in and shows it.
    pub(crate) fn tell(&mut self, event: &Event) {
        match event {
            Event::Began(unit) => self
                .set(unit, Cell::Running { phase: "begin".to_owned(), iterations: 0, since: Instant::now() }),
            Event::Said(unit, Said::Phase(said)) => {
                if let Some(Cell::Running { phase, .. }) = self.cells.get_mut(unit) {
                    phase.clone_from(said);
                }
            }
            Event::Said(unit, Said::Iterations(count)) => {
                if let Some(Cell::Running { iterations, .. }) = self.cells.get_mut(unit) {
                    *iterations = *count;
                }
            }
            Event::Said(unit, Said::Note(note)) => self.note(unit, note),
            Event::Said(unit, Said::Made(meta) | Said::Had(meta)) => self.ended(unit, meta),
            Event::Tick => {}
        }
        self.draw(false);
    }

    fn set(&mut self, unit: &Unit, cell: Cell) {
        self.cells.insert(unit.clone(), cell);
    }

    fn done(&self) -> usize {
        self.cells.values().filter(|cell| matches!(cell, Cell::Ended(_))).count()
    }

    fn note(&mut self, unit: &Unit, note: &str) {
        self.notes.push(format!("{unit}: {note}"));
        let line = Line::new().with("event", "note").with("unit", unit).with("note", note);
        self.say(line, json!({ "event": "note", "unit": unit, "note": note }));
    }

    fn ended(&mut self, unit: &Unit, meta: &Meta) {
        self.set(unit, Cell::Ended(meta.outcome));
        let done = self.done();
        let mut line = Line::new().with("event", "ended").with("case", &meta.case_id);
        line = line.with("agent", &meta.agent).with("trial", meta.trial).with("attempt", meta.attempt);
        line = line.with("outcome", meta.outcome);
        if let (Some(cause), Some(why)) = (meta.cause, &meta.why) {
            line = line.with("cause", cause).with("why", why);
        }
        line = line.with("iterations", meta.iterations).with("seconds", format!("{:.1}", meta.wall_secs));
        let line = line.with("done", done).with("of", self.cells.len());
        self.say(line, json!({ "event": "ended", "done": done, "of": self.cells.len(), "result": meta }));
    }

    fn say(&self, line: Line, value: Value) {
        self.out.tell_now(&Happening { line, value });
    }

    /// Draws the table, if there is a terminal and it is time.
    fn draw(&mut self, is_last: bool) {
        let is_soon = self.drawn_at.is_some_and(|at| at.elapsed() < DRAW_EVERY);
        if !self.out.is_terminal() || is_soon && !is_last {
            return;
        }
        let pen = self.out.fresh_pen();
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
            let pen = self.out.fresh_pen();
            for note in &self.notes {
                self.out.raw(&format!("{} {note}\n", pen.ink(Ink::Warn, "note:")));
            }
        }
    }

    /// One line a case and agent, as many as there is room for: those at work first, then the last ones.
    fn lines(&self, pen: &Pen, most: usize) -> Vec<String> {
        let mut rows: BTreeMap<(&str, &str), Vec<&Cell>> = BTreeMap::new();
        for (unit, cell) in &self.cells {
            rows.entry((&unit.case, &unit.agent)).or_default().push(cell);
        }
        let width = rows.keys().map(|(case, agent)| case.len() + agent.len() + 3).max().unwrap_or(0);
        let width = width.min(pen.width / 2);
        let room = most.saturating_sub(1).max(1);
        let is_active = |cells: &[&Cell]| cells.iter().any(|cell| matches!(cell, Cell::Running { .. }));
        let too_many = rows.len() > room;
        let mut lines: Vec<String> = rows
            .iter()
            .filter(|(_, cells)| !too_many || is_active(cells))
            .take(room)
            .map(|((case, agent), cells)| row(pen, &format!("{case} ({agent})"), width, cells))
            .collect();
        let running = self.cells.values().filter(|cell| matches!(cell, Cell::Running { .. })).count();
        let secs = self.began.elapsed().as_secs_f64();
        let whole = format!("{}/{} done, {running} running, {secs:.0} s", self.done(), self.cells.len());
        lines.push(pen.fit(&whole, pen.width));
        lines
    }
}

/// Something that just happened, for whoever is no person: people see the table.
pub(crate) struct Happening {
    pub(crate) line: Line,
    pub(crate) value: Value,
}

impl Reply for Happening {
    fn json(&self) -> Value {
        self.value.clone()
    }

    fn plain(&self) -> Vec<Line> {
        vec![self.line.clone()]
    }

    fn drawn(&self, _: &Pen) -> String {
        String::new()
    }
}

fn row(pen: &Pen, name: &str, width: usize, cells: &[&Cell]) -> String {
    let name: String = name.chars().take(width).collect();
    let mut line = format!("{name:width$}  ");
    let mut note = String::new();
    for cell in cells {
        line.push_str(&match cell {
            Cell::Waiting => pen.ink(Ink::Faint, "·"),
            Cell::Running { phase, iterations, since } => {
                note = format!("  {phase} #{iterations} {:.0} s", since.elapsed().as_secs_f64());
                pen.ink(Ink::Active, "▸")
            }
            Cell::Ended(outcome) => mark(pen, *outcome),
        });
    }
    line + &pen.ink(Ink::Faint, &note)
}

/// An outcome in one cell.
pub(crate) fn mark(pen: &Pen, outcome: Outcome) -> String {
    match outcome {
        Outcome::Success => pen.ink(Ink::Good, "✓"),
        Outcome::Fail => pen.ink(Ink::Bad, "✗"),
        Outcome::Stuck => pen.ink(Ink::Warn, "s"),
        Outcome::Error => pen.ink(Ink::Warn, "e"),
        Outcome::Skipped => pen.ink(Ink::Faint, "-"),
    }
}

fn terminal_rows() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0).unwrap_or(24)
}
