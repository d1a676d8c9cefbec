//! The live display of a loop on a terminal: finished iterations scroll away like any output, and a footer of a few
//! rows shows the current one.
//!
//! Only the footer is redrawn; everything above it is ordinary scrollback. The display never queries the terminal.

mod footer;
mod heartbeat;
mod phase;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::step::{CheckPhase, Event, Ordinal};
use runner_term::agent_event_line;
use runner_term::{CommandOutput, Ui};
use serde_json::Value;

use self::footer::{paused_footer, running_footer, waiting_footer};
use self::heartbeat::Heartbeat;
pub(crate) use self::phase::DisplayPhase;
use crate::render::clean;
use crate::render::event::{EventOutput, FinishedIteration};
use crate::render::summary::LoopSummary;
use crate::render::wait::reason;

/// How often the footer is redrawn.
const TICK: Duration = Duration::from_millis(250);
/// How often a loop without a terminal prints that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// Reads the last line of a session's log.
pub(crate) type LastLine<'a> = dyn Fn(&RunId, IterationNumber, DisplayPhase) -> Option<String> + Sync + 'a;

pub(crate) struct LiveDisplay<'a> {
    ui: &'a Ui,
    last_line: Box<LastLine<'a>>,
    view: Mutex<LiveView>,
    is_over: AtomicBool,
}

#[derive(Clone, Debug)]
struct LiveView {
    summary: LoopSummary,
    state: DisplayState,
    started: Instant,
    last_printed: Instant,
    footer_rows: usize,
    /// The events of a command that prints one document at its end; none if each is printed at once.
    events: Option<Vec<Value>>,
    /// Whether the user asked to stop after the current iteration.
    is_stopping: bool,
}

/// What the loop does now.
#[derive(Clone, Debug)]
enum DisplayState {
    Idle,
    Running(RunningIteration),
    Waiting(WaitDisplay),
    /// The user paused the run, possibly during a wait, which continues afterwards.
    Paused {
        since: Instant,
        resumes: Box<DisplayState>,
    },
}

/// A wait between two sessions.
#[derive(Clone, Debug)]
struct WaitDisplay {
    reason: String,
    since: Instant,
    ends_unix_ms: u64,
}

#[derive(Clone, Debug)]
struct RunningIteration {
    run: RunId,
    iter: IterationNumber,
    path: String,
    /// `attempt 2/3`; empty for the first attempt.
    attempt: String,
    phase: DisplayPhase,
    started: Instant,
    phase_started: Instant,
    /// The agent's last action; empty if its output is not understood.
    activity: String,
}

impl<'a> LiveDisplay<'a> {
    pub(crate) fn new(ui: &'a Ui, last_line: Box<LastLine<'a>>) -> Self {
        let view = LiveView::new(LoopSummary::default());
        Self { ui, last_line, view: Mutex::new(view), is_over: AtomicBool::new(false) }
    }

    /// Prints an event above the footer.
    pub(crate) fn print_event(&self, event: &Event) {
        let Ok(mut view) = self.view.lock() else { return };
        view.apply(event);
        view.last_printed = Instant::now();
        if !self.ui.is_terminal() {
            match &mut view.events {
                Some(events) => events.push(EventOutput(event).json()),
                None => self.ui.print_now(&EventOutput(event)),
            }
            return;
        }
        if matches!(event, Event::Agent { .. }) {
            // Drawn with the next tick: an agent may report many events at once.
            return;
        }
        let text = match (event, &view.state) {
            (Event::Decided { iter, outcome, annotations, .. }, DisplayState::Running(running)) => {
                let finished = FinishedIteration {
                    iter: *iter,
                    path: &running.path,
                    outcome: *outcome,
                    annotations,
                    took: running.started.elapsed(),
                };
                finished.render(&self.ui.styler())
            }
            (_, _) => self.ui.render(&EventOutput(event)),
        };
        self.redraw(&mut view, &text);
    }

    /// Prints output that is not an event. The footer is not drawn yet.
    pub(crate) fn print(&self, output: &dyn CommandOutput) {
        let Ok(mut view) = self.view.lock() else { return };
        match &mut view.events {
            Some(events) => events.push(output.json()),
            None => self.ui.print_now(output),
        }
    }

    /// Keeps the events for a document instead of printing them.
    pub(crate) fn collect_events(&self) {
        let Ok(mut view) = self.view.lock() else { return };
        view.events = Some(Vec::new());
    }

    pub(crate) fn take_events(&self) -> Option<Vec<Value>> {
        self.view.lock().ok()?.events.take()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Redraws until the loop is over. A stop can be requested from another terminal meanwhile.
    pub(crate) fn redraw_until_over(&self, is_stop_requested: impl Fn() -> bool) {
        while !self.is_over() {
            std::thread::park_timeout(TICK);
            let Ok(mut view) = self.view.lock() else { return };
            if self.is_over() {
                return;
            }
            view.is_stopping |= is_stop_requested();
            if self.ui.is_terminal() {
                self.redraw(&mut view, "");
            } else if view.last_printed.elapsed() >= HEARTBEAT && view.events.is_none() {
                view.last_printed = Instant::now();
                self.ui.print_now(&view.heartbeat());
            }
        }
    }

    /// Says that the loop stops after the current iteration.
    pub(crate) fn acknowledge_stop(&self) {
        let Ok(mut view) = self.view.lock() else { return };
        view.is_stopping = true;
        self.redraw(&mut view, "");
    }

    /// Prints a copy of the footer above it.
    pub(crate) fn print_snapshot(&self) {
        let Ok(mut view) = self.view.lock() else { return };
        let text = self.footer(&view).iter().map(|row| format!("{row}\n")).collect::<String>();
        self.redraw(&mut view, &text);
    }

    /// Erases the footer. Returns the summary and the duration of the loop.
    pub(crate) fn end(&self) -> (LoopSummary, Duration) {
        self.is_over.store(true, Ordering::SeqCst);
        let Ok(mut view) = self.view.lock() else { return (LoopSummary::default(), Duration::ZERO) };
        if view.footer_rows > 0 {
            self.ui.raw(&replace_footer(view.footer_rows, "", &[]));
            view.footer_rows = 0;
        }
        (view.summary.clone(), view.started.elapsed())
    }

    fn redraw(&self, view: &mut LiveView, text: &str) {
        if !self.ui.can_move_cursor() {
            // A footer could not be replaced.
            self.ui.raw(text);
            return;
        }
        let footer = self.footer(view);
        self.ui.raw(&replace_footer(view.footer_rows, text, &footer));
        view.footer_rows = footer.len();
    }

    fn footer(&self, view: &LiveView) -> Vec<String> {
        let styler = self.ui.styler();
        match &view.state {
            DisplayState::Idle => Vec::new(),
            DisplayState::Running(running) => running_footer(view, running, &self.activity(running), &styler),
            DisplayState::Waiting(wait) => waiting_footer(view, wait, &styler),
            DisplayState::Paused { since, .. } => paused_footer(view, *since, &styler),
        }
    }

    fn activity(&self, running: &RunningIteration) -> String {
        if running.phase == DisplayPhase::Agent && !running.activity.is_empty() {
            return running.activity.clone();
        }
        if matches!(running.phase, DisplayPhase::FinalCheck | DisplayPhase::Recheck) {
            return String::new();
        }
        let line = (self.last_line)(&running.run, running.iter, running.phase);
        line.map(|line| clean(&line)).unwrap_or_default()
    }
}

impl RunningIteration {
    /// An iteration whose session starts now.
    fn new(run: RunId, iter: IterationNumber, path: String, attempt: Ordinal) -> Self {
        let is_repeated = attempt.nth > 1;
        let attempt =
            if is_repeated { format!("attempt {}/{}", attempt.nth, attempt.of) } else { String::new() };
        let now = Instant::now();
        Self {
            run,
            iter,
            path,
            attempt,
            phase: DisplayPhase::Agent,
            started: now,
            phase_started: now,
            activity: String::new(),
        }
    }
}

impl LiveView {
    fn new(summary: LoopSummary) -> Self {
        let started = Instant::now();
        Self {
            summary,
            state: DisplayState::Idle,
            started,
            last_printed: started,
            footer_rows: 0,
            events: None,
            is_stopping: false,
        }
    }

    fn apply(&mut self, event: &Event) {
        self.summary.note(event);
        match event {
            Event::Planned { run_id, iter, path, attempt, .. } => {
                self.state = DisplayState::Running(RunningIteration::new(
                    run_id.clone(),
                    *iter,
                    path.clone(),
                    *attempt,
                ));
            }
            Event::Agent { activity, .. } => {
                if let (DisplayState::Running(running), Some(line)) =
                    (&mut self.state, agent_event_line::line(&activity.kind))
                {
                    running.activity = line;
                }
            }
            Event::GuardStarted { .. } | Event::CheckStarted { .. } => self.enter(DisplayPhase::Guard),
            Event::ReviewStarted { .. } => self.enter(DisplayPhase::Review),
            Event::CheckEnded { phase: CheckPhase::Red, .. } => self.enter(DisplayPhase::Agent),
            Event::ReviewEnded { .. } | Event::Decided { .. } => self.enter(DisplayPhase::Commit),
            Event::FinalCheckStarted { .. } => self.enter_check(DisplayPhase::FinalCheck),
            Event::RecheckStarted { .. } => self.enter_check(DisplayPhase::Recheck),
            Event::Waiting { wait, ends_unix_ms } => {
                self.state = DisplayState::Waiting(WaitDisplay {
                    reason: clean(&reason(wait)),
                    since: Instant::now(),
                    ends_unix_ms: *ends_unix_ms,
                });
            }
            Event::Paused => {
                let resumes = Box::new(std::mem::replace(&mut self.state, DisplayState::Idle));
                self.state = DisplayState::Paused { since: Instant::now(), resumes };
            }
            Event::Resumed => self.resume(),
            Event::Stopped { .. } => self.state = DisplayState::Idle,
            Event::HookRan { .. }
            | Event::Asked { .. }
            | Event::QueuedEdit { .. }
            | Event::Notified { .. }
            | Event::BaselineStarted { .. }
            | Event::BaselineEnded { .. }
            | Event::FinalCheckEnded { .. }
            | Event::RecheckEnded { .. }
            | Event::RegressionAdded { .. }
            | Event::Recovered { .. }
            | Event::AgentEnded { .. }
            | Event::FileNoticed { .. }
            | Event::Checked { .. }
            | Event::GuardEnded { .. }
            | Event::CheckEnded { phase: CheckPhase::Green, .. }
            | Event::HeldoutEnded { .. }
            | Event::Committed { .. }
            | Event::OutageContinues { .. }
            | Event::BudgetUnenforceable { .. }
            | Event::SandboxChosen { .. }
            | Event::GuardInPlace { .. }
            | Event::RoomProposal { .. }
            | Event::Unknown => {}
        }
    }

    /// Goes back to what was shown before the pause.
    fn resume(&mut self) {
        if let DisplayState::Paused { resumes, .. } = std::mem::replace(&mut self.state, DisplayState::Idle) {
            self.state = *resumes;
        }
    }

    fn enter(&mut self, phase: DisplayPhase) {
        if let DisplayState::Running(running) = &mut self.state {
            running.phase = phase;
            running.phase_started = Instant::now();
        }
    }

    /// A check of the whole run, which belongs to no task.
    fn enter_check(&mut self, phase: DisplayPhase) {
        if let DisplayState::Running(running) = &mut self.state {
            running.path.clear();
            running.attempt.clear();
        }
        self.enter(phase);
    }

    fn heartbeat(&self) -> Heartbeat {
        let (iter, phase, since) = match &self.state {
            DisplayState::Idle => (None, "idle", self.started),
            DisplayState::Running(running) => {
                (Some(running.iter), running.phase.word(), running.phase_started)
            }
            DisplayState::Waiting(wait) => (None, "waiting", wait.since),
            DisplayState::Paused { since, .. } => (None, "paused", *since),
        };
        Heartbeat { iter, phase, secs: since.elapsed().as_secs() }
    }
}

/// The bytes that erase the old footer, print a text above it, and draw the new one, in one synchronized update.
fn replace_footer(old_rows: usize, text: &str, footer: &[String]) -> String {
    let mut bytes = String::from("\u{1b}[?2026h\r\u{1b}[2K");
    // Row by row: some terminals keep what is cleared at once in their history.
    bytes.push_str(&"\u{1b}[1A\u{1b}[2K".repeat(old_rows.saturating_sub(1)));
    bytes.push_str(text);
    bytes.push_str(&footer.join("\r\n"));
    bytes.push_str("\u{1b}[?2026l");
    bytes
}

#[cfg(test)]
mod tests {
    use runner_term::Styler;

    use super::footer::whole_parts;
    use super::*;

    #[test]
    fn footer_rows_are_narrower_than_the_terminal() {
        let now = Instant::now();
        let mut view = LiveView::new(LoopSummary::default());
        view.summary.leaves = Some(runner_core::model::tree::LeafCount { total: 120, passed: 41 });
        let running = RunningIteration {
            run: RunId::new("x").unwrap(),
            iter: IterationNumber::new(58).unwrap(),
            path: "root/a/very/long/path/that/goes/on/and/on/and/on/until/it/is/too/long/日本語".to_owned(),
            attempt: "attempt 2/3".to_owned(),
            phase: DisplayPhase::Agent,
            started: now,
            phase_started: now,
            activity: String::new(),
        };
        let wait =
            WaitDisplay { reason: "usage limit, codex ".repeat(20), since: now, ends_unix_ms: u64::MAX };
        for width in [50, 80, 200] {
            let styler = Styler::plain(width);
            let rows = running_footer(&view, &running, &"x".repeat(500), &styler).into_iter();
            let other_rows = [waiting_footer(&view, &wait, &styler), paused_footer(&view, now, &styler)];
            for row in rows.chain(other_rows.concat()) {
                assert!(unicode_width::UnicodeWidthStr::width(row.as_str()) < width, "{width}: {row}");
            }
        }
    }

    #[test]
    fn stop_key_is_acknowledged_on_every_width() {
        let mut view = LiveView::new(LoopSummary::default());
        view.summary.leaves = Some(runner_core::model::tree::LeafCount { total: 120, passed: 41 });
        view.is_stopping = true;
        let iter = IterationNumber::new(1).unwrap();
        let attempt = Ordinal { nth: 1, of: 3 };
        let running = RunningIteration::new(RunId::new("x").unwrap(), iter, "root".to_owned(), attempt);
        for width in [32, 40, 60, 70, 80, 120] {
            let rows = running_footer(&view, &running, "", &Styler::plain(width));
            let row = rows.last().unwrap();
            assert!(row.contains("stopping after this iteration"), "{width}: {row}");
            assert!(unicode_width::UnicodeWidthStr::width(row.as_str()) < width, "{width}: {row}");
            assert_eq!(row.contains("41/120"), width >= 80, "{width}: {row}");
        }
    }

    #[test]
    fn keys_that_do_not_fit_are_left_out_whole() {
        let row = "0:05   q stop   t snapshot";
        for (width, shown) in [(80, row), (26, row), (25, "0:05   q stop"), (12, "0:05"), (2, "")] {
            assert_eq!(whole_parts(row, width), shown, "{width}");
        }
    }

    #[test]
    fn text_is_printed_above_the_footer() {
        let bytes = replace_footer(3, "done\n", &["a".to_owned(), "b".to_owned()]);
        assert_eq!(
            bytes,
            "\u{1b}[?2026h\r\u{1b}[2K\u{1b}[1A\u{1b}[2K\u{1b}[1A\u{1b}[2Kdone\na\r\nb\u{1b}[?2026l"
        );
        assert_eq!(replace_footer(0, "", &[]), "\u{1b}[?2026h\r\u{1b}[2K\u{1b}[?2026l");
    }

    #[test]
    fn pause_during_a_wait_returns_to_the_wait() {
        let mut view = LiveView::new(LoopSummary::default());
        let wait = WaitDisplay { reason: "rate limit".to_owned(), since: Instant::now(), ends_unix_ms: 0 };
        view.state = DisplayState::Waiting(wait);
        view.apply(&Event::Paused);
        assert_eq!(view.heartbeat().phase, "paused");
        view.apply(&Event::Resumed);
        assert_eq!(view.heartbeat().phase, "waiting");
    }
}
