//! A loop on a terminal: finished iterations scroll away like any output, and the last rows show what is going on.
//!
//! Only the rows of the footer are ever drawn again; everything above them is ordinary scrollback. The terminal is
//! never asked anything.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::step::Event;
use runner_term::agent_event_line;
use runner_term::format::clock;
use runner_term::progress::bar;
use runner_term::{Glyph, Styler, TextRole, Ui};

use crate::render::clean;
use crate::render::cost::spent_text;
use crate::render::event::{EventOutput, settled};
use crate::render::summary::LoopSummary;
use crate::render::wait::{countdown, left_ms, on_the_wall, reason};

/// How often the footer is drawn.
const TICK: Duration = Duration::from_millis(250);
/// How often a loop without a terminal says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// What a session is doing, told by its last line.
pub(crate) type LastLine<'a> = dyn Fn(&RunId, IterationNumber, DisplayPhase) -> Option<String> + Sync + 'a;

/// Where an iteration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisplayPhase {
    Agent,
    Guard,
    Commit,
    Wait,
    Pause,
}

impl DisplayPhase {
    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Guard => "guard",
            Self::Commit => "commit",
            Self::Wait => "wait",
            Self::Pause => "pause",
        }
    }
}

/// The display of one loop.
pub(crate) struct LiveDisplay<'a> {
    out: &'a Ui,
    last_line: Box<LastLine<'a>>,
    view: Mutex<LiveView>,
    over: AtomicBool,
}

#[derive(Clone, Debug)]
struct LiveView {
    summary: LoopSummary,
    now: Option<RunningIteration>,
    waiting: Option<WaitDisplay>,
    /// Since when the loop stands still, if the user paused it.
    paused: Option<Instant>,
    began: Instant,
    said: Instant,
    rows: usize,
}

/// A wait between two sessions.
#[derive(Clone, Debug)]
struct WaitDisplay {
    reason: String,
    ends_unix_ms: u64,
}

#[derive(Clone, Debug)]
struct RunningIteration {
    run: RunId,
    iter: IterationNumber,
    path: String,
    tries: String,
    stage: DisplayPhase,
    planned: Instant,
    since: Instant,
    /// What the agent did last, in a line; empty for one that is not understood.
    doing: String,
}

impl<'a> LiveDisplay<'a> {
    pub(crate) fn new(out: &'a Ui, last_line: Box<LastLine<'a>>) -> Self {
        let began = Instant::now();
        let (now, waiting, paused) = (None, None, None);
        let view =
            LiveView { summary: LoopSummary::default(), now, waiting, paused, began, said: began, rows: 0 };
        Self { out, last_line, view: Mutex::new(view), over: AtomicBool::new(false) }
    }

    /// Tells an event, above the footer.
    pub(crate) fn tell(&self, event: &Event) {
        let Ok(mut view) = self.view.lock() else { return };
        view.note(event);
        view.said = Instant::now();
        if !self.out.is_terminal() {
            self.out.print_now(&EventOutput(event));
            return;
        }
        if matches!(event, Event::Agent { .. }) {
            // Drawn with the next tick: an agent may say a great deal at once.
            return;
        }
        let text = match (event, &view.now) {
            (Event::Decided { iter, outcome, annotations: marks, .. }, Some(now)) => {
                let took = now.planned.elapsed();
                settled(*iter, &now.path, (*outcome, marks), took, &self.out.styler())
            }
            (_, _) => self.out.render(&EventOutput(event)),
        };
        let footer = self.footer(&view);
        self.out.raw(&replaced(view.rows, &text, &footer));
        view.rows = footer.len();
    }

    /// Tells something that is no event.
    pub(crate) fn say(&self, reply: &dyn runner_term::CommandOutput) {
        let Ok(_view) = self.view.lock() else { return };
        self.out.print_now(reply);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Draws the footer again and again until the loop is over.
    pub(crate) fn keep_fresh(&self) {
        while !self.over.load(Ordering::SeqCst) {
            std::thread::park_timeout(TICK);
            let Ok(mut view) = self.view.lock() else { return };
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            if self.out.is_terminal() {
                let footer = self.footer(&view);
                self.out.raw(&replaced(view.rows, "", &footer));
                view.rows = footer.len();
            } else if view.said.elapsed() >= HEARTBEAT {
                view.said = Instant::now();
                self.out.print_now(&view.alive());
            }
        }
    }

    /// Prints where things stand, above the footer.
    pub(crate) fn snapshot(&self) {
        let Ok(mut view) = self.view.lock() else { return };
        let footer = self.footer(&view);
        let text = footer.iter().map(|row| format!("{row}\n")).collect::<String>();
        self.out.raw(&replaced(view.rows, &text, &footer));
        view.rows = footer.len();
    }

    /// Takes the footer away. Returns what is to be summed up.
    pub(crate) fn end(&self) -> (LoopSummary, Duration) {
        self.over.store(true, Ordering::SeqCst);
        let Ok(mut view) = self.view.lock() else { return (LoopSummary::default(), Duration::ZERO) };
        if view.rows > 0 {
            self.out.raw(&replaced(view.rows, "", &[]));
            view.rows = 0;
        }
        (view.summary.clone(), view.began.elapsed())
    }

    fn footer(&self, view: &LiveView) -> Vec<String> {
        if let Some(since) = view.paused {
            return paused_footer(view, since, &self.out.styler());
        }
        if let Some(waiting) = &view.waiting {
            return waiting_footer(view, waiting, &self.out.styler());
        }
        let Some(now) = &view.now else { return Vec::new() };
        let last = match (now.stage, now.doing.as_str()) {
            (DisplayPhase::Agent, doing) if !doing.is_empty() => doing.to_owned(),
            (stage, _) => {
                (self.last_line)(&now.run, now.iter, stage).map(|line| clean(&line)).unwrap_or_default()
            }
        };
        footer(view, now, &last, &self.out.styler())
    }
}

impl LiveView {
    fn note(&mut self, event: &Event) {
        self.summary.note(event);
        match event {
            Event::Planned { .. } | Event::Stopped { .. } => (self.waiting, self.paused) = (None, None),
            Event::Paused => self.paused = Some(Instant::now()),
            Event::Resumed => self.paused = None,
            Event::Waiting { wait, ends_unix_ms } => {
                self.waiting =
                    Some(WaitDisplay { reason: clean(&reason(wait)), ends_unix_ms: *ends_unix_ms });
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
            | Event::Decided { .. }
            | Event::Committed { .. }
            | Event::BudgetUnenforceable { .. } => {}
        }
        match event {
            Event::Planned { run_id, iter, path, attempt, .. } => {
                let tries = if attempt.nth > 1 {
                    format!("attempt {}/{}", attempt.nth, attempt.of)
                } else {
                    String::new()
                };
                self.now = Some(RunningIteration {
                    run: run_id.clone(),
                    iter: *iter,
                    path: path.clone(),
                    tries,
                    stage: DisplayPhase::Agent,
                    planned: Instant::now(),
                    since: Instant::now(),
                    doing: String::new(),
                });
            }
            Event::Agent { activity: what, .. } => {
                if let (Some(now), Some(doing)) = (&mut self.now, agent_event_line::line(&what.kind)) {
                    now.doing = doing;
                }
            }
            Event::GuardStarted { .. } => self.enter(DisplayPhase::Guard),
            Event::Decided { .. } => self.enter(DisplayPhase::Commit),
            Event::Stopped { .. } => self.now = None,
            Event::HookRan { .. }
            | Event::BaselineStarted { .. }
            | Event::BaselineEnded { .. }
            | Event::Recovered { .. }
            | Event::AgentEnded { .. }
            | Event::Checked { .. }
            | Event::GuardEnded { .. }
            | Event::Committed { .. }
            | Event::BudgetUnenforceable { .. }
            | Event::Paused
            | Event::Resumed
            | Event::Waiting { .. } => {}
        }
    }

    fn enter(&mut self, stage: DisplayPhase) {
        if let Some(now) = &mut self.now {
            now.stage = stage;
            now.since = Instant::now();
        }
    }

    fn alive(&self) -> Heartbeat {
        let (iter, stage) =
            self.now.as_ref().map_or((0, DisplayPhase::Commit), |now| (now.iter.get(), now.stage));
        let stage = if self.waiting.is_some() { DisplayPhase::Wait } else { stage };
        let stage = if self.paused.is_some() { DisplayPhase::Pause } else { stage };
        Heartbeat { iter, stage, secs: self.now.as_ref().map_or(0, |now| now.since.elapsed().as_secs()) }
    }
}

/// The rows of the footer, each narrower than the terminal, so that none wraps.
fn footer(view: &LiveView, now: &RunningIteration, last: &str, pen: &Styler) -> Vec<String> {
    let width = pen.width.saturating_sub(1);
    let stage = now.stage.word();
    let head =
        format!("{} #{} {stage} {}  ", pen.glyph(Glyph::Next), now.iter.get(), clock(now.since.elapsed()));
    let tries = if now.tries.is_empty() { String::new() } else { format!("  {}", now.tries) };
    let path = pen.fit(&now.path, width.saturating_sub(head.chars().count() + tries.len()));
    let mut rows = vec![
        pen.paint(TextRole::Faint, &pen.glyph(Glyph::Rule).repeat(width)),
        format!("{}{path}{tries}", pen.paint(TextRole::Active, &head)),
        pen.paint(TextRole::Faint, &format!("  {}", pen.fit(last, width.saturating_sub(2)))),
    ];
    rows.extend(spent_row(view, pen));
    rows.push(keys_row(view, "q stop after this   t snapshot   ^C stop", pen));
    rows
}

/// The rows of the footer while nothing runs: what is left, until when, and why.
fn waiting_footer(view: &LiveView, waiting: &WaitDisplay, pen: &Styler) -> Vec<String> {
    let width = pen.width.saturating_sub(1);
    let left = countdown(left_ms(waiting.ends_unix_ms));
    let head = format!("{} waiting {left}", pen.glyph(Glyph::Retried));
    let until = format!("  until {}: {}", on_the_wall(waiting.ends_unix_ms), waiting.reason);
    let until = pen.fit(&until, width.saturating_sub(head.chars().count()));
    let mut rows = vec![
        pen.paint(TextRole::Faint, &pen.glyph(Glyph::Rule).repeat(width)),
        format!("{}{until}", pen.paint(TextRole::Warn, &head)),
    ];
    rows.extend(spent_row(view, pen));
    rows.push(keys_row(view, "q or ^C stop now; 'runner loop' waits for the rest", pen));
    rows
}

/// The rows of the footer while the user has paused the run.
fn paused_footer(view: &LiveView, since: Instant, pen: &Styler) -> Vec<String> {
    let width = pen.width.saturating_sub(1);
    let head = format!("{} paused {}", pen.glyph(Glyph::Retried), clock(since.elapsed()));
    let what = "  'runner resume' goes on; 'runner node …' edits the plan";
    let what = pen.fit(what, width.saturating_sub(head.chars().count()));
    let mut rows = vec![
        pen.paint(TextRole::Faint, &pen.glyph(Glyph::Rule).repeat(width)),
        format!("{}{what}", pen.paint(TextRole::Warn, &head)),
    ];
    rows.extend(spent_row(view, pen));
    rows.push(keys_row(view, "q or ^C stop now", pen));
    rows
}

/// What the run has cost so far.
fn spent_row(view: &LiveView, pen: &Styler) -> Option<String> {
    let text = spent_text(&view.summary.spent, &view.summary.budget)?;
    let room = pen.width.saturating_sub(3);
    Some(pen.paint(TextRole::Faint, &format!("  {}", pen.fit(&format!("spent {text}"), room))))
}

/// How far the run is, and what can be pressed.
fn keys_row(view: &LiveView, keys: &str, pen: &Styler) -> String {
    let width = pen.width.saturating_sub(1);
    let keys = format!("{}   {keys}", clock(view.began.elapsed()));
    match view.summary.leaves {
        Some(leaves) => {
            let keys = pen.fit(&keys, width.saturating_sub(40));
            format!("{}   {}", bar(leaves, 36.min(width), pen), pen.paint(TextRole::Faint, &keys))
        }
        None => pen.paint(TextRole::Faint, &pen.fit(&keys, width)),
    }
}

/// The bytes that take the old footer away, print a text above it, and draw the new one, all at once.
fn replaced(old_rows: usize, text: &str, footer: &[String]) -> String {
    let mut bytes = String::from("\u{1b}[?2026h\r\u{1b}[2K");
    // Row by row: some terminals keep what is cleared at once in their history.
    bytes.push_str(&"\u{1b}[1A\u{1b}[2K".repeat(old_rows.saturating_sub(1)));
    bytes.push_str(text);
    bytes.push_str(&footer.join("\r\n"));
    bytes.push_str("\u{1b}[?2026l");
    bytes
}

/// A sign of life where nobody watches.
struct Heartbeat {
    iter: u32,
    stage: DisplayPhase,
    secs: u64,
}

impl runner_term::CommandOutput for Heartbeat {
    fn json(&self) -> serde_json::Value {
        serde_json::json!({ "event": "alive", "iter": self.iter, "stage": self.stage.word(), "secs": self.secs })
    }

    fn key_values(&self) -> Vec<runner_term::KeyValueLine> {
        let line = runner_term::KeyValueLine::new().with("event", "alive").with("iter", self.iter);
        vec![line.with("stage", self.stage.word()).with("secs", self.secs)]
    }

    fn human(&self, _: &Styler) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_of_the_footer_is_as_wide_as_the_terminal() {
        let began = Instant::now();
        let leaves = runner_core::model::tree::LeafCount { total: 120, passed: 41 };
        let mut summary = LoopSummary::default();
        summary.leaves = Some(leaves);
        let (now, waiting, paused) = (None, None, None);
        let view = LiveView { summary, now, waiting, paused, began, said: began, rows: 0 };
        let now = RunningIteration {
            run: RunId::new("x").unwrap(),
            iter: IterationNumber::new(58).unwrap(),
            path: "root/a/very/long/path/that/goes/on/and/on/and/on/until/it/is/too/long/日本語".to_owned(),
            tries: "attempt 2/3".to_owned(),
            stage: DisplayPhase::Agent,
            planned: began,
            since: began,
            doing: String::new(),
        };
        for width in [50, 80, 200] {
            let pen = Styler::plain(width);
            let waiting = WaitDisplay { reason: "usage limit of codex ".repeat(20), ends_unix_ms: u64::MAX };
            let rows = footer(&view, &now, &"x".repeat(500), &pen).into_iter();
            let paused = paused_footer(&view, began, &pen);
            for row in rows.chain(waiting_footer(&view, &waiting, &pen)).chain(paused) {
                assert!(unicode_width::UnicodeWidthStr::width(row.as_str()) < width, "{width}: {row}");
            }
        }
    }

    #[test]
    fn a_text_goes_above_the_footer() {
        let bytes = replaced(3, "done\n", &["a".to_owned(), "b".to_owned()]);
        assert_eq!(
            bytes,
            "\u{1b}[?2026h\r\u{1b}[2K\u{1b}[1A\u{1b}[2K\u{1b}[1A\u{1b}[2Kdone\na\r\nb\u{1b}[?2026l"
        );
        assert_eq!(replaced(0, "", &[]), "\u{1b}[?2026h\r\u{1b}[2K\u{1b}[?2026l");
    }
}
