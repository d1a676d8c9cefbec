//! The question whether a run begins although its guard already fails: asked on a terminal, answered by a key.

use std::sync::atomic::{AtomicU8, Ordering};

use runner_core::model::run_state::RecordedGuardRun;
use runner_host::iteration::RedBaselineChoice;
use runner_term::{CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::run_loop::RunMode;
use crate::live_display::LiveDisplay;
use crate::render::clean;

/// How many lines of the guard's output the question shows.
const LINES_MAX: usize = 8;

const UNASKED: u8 = 0;
const OPEN: u8 = 1;
const ALLOWED: u8 = 2;
const REFUSED: u8 = 3;

/// What a loop does if the guard already fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnRedBaseline {
    Begin,
    /// Ask on a terminal, and refuse elsewhere.
    Ask,
    Refuse,
}

/// The state of the question, shared between the loop and the thread that reads keys.
pub(super) struct RedQuestion(AtomicU8);

impl RedQuestion {
    /// A step, and a loop with `--allow-red`, begin in any case. Where no key can be read, a loop does not.
    pub(super) fn new(mode: RunMode, can_ask: bool) -> Self {
        let answer = match mode {
            RunMode::OneStep | RunMode::Plan | RunMode::UntilStopped { on_red: OnRedBaseline::Begin, .. } => {
                ALLOWED
            }
            RunMode::UntilStopped { on_red: OnRedBaseline::Ask, .. } if can_ask => UNASKED,
            RunMode::UntilStopped { .. } => REFUSED,
        };
        Self(AtomicU8::new(answer))
    }

    /// The answer; asks the question when it is called for the first time.
    pub(super) fn choice(&self, baseline: &RecordedGuardRun, display: &LiveDisplay<'_>) -> RedBaselineChoice {
        match self.0.load(Ordering::SeqCst) {
            ALLOWED => RedBaselineChoice::Allow,
            REFUSED => RedBaselineChoice::Refuse,
            UNASKED => {
                display.print(&RedBaselineText(baseline));
                self.0.store(OPEN, Ordering::SeqCst);
                RedBaselineChoice::Undecided
            }
            _ => RedBaselineChoice::Undecided,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst) == OPEN
    }

    /// `y` begins the run; every other key refuses it.
    pub(super) fn answer(&self, key: u8) {
        let answer = if matches!(key, b'y' | b'Y') { ALLOWED } else { REFUSED };
        self.0.store(answer, Ordering::SeqCst);
    }
}

struct RedBaselineText<'a>(&'a RecordedGuardRun);

impl CommandOutput for RedBaselineText<'_> {
    fn json(&self) -> Value {
        json!({ "event": "red_baseline", "exit": self.0.exit })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![KeyValueLine::new().with("event", "red_baseline").with("exit", &self.0.exit)]
    }

    fn human(&self, styler: &Styler) -> String {
        let output = self.0.output.as_deref().unwrap_or_default();
        let lines: Vec<String> = output.lines().map(clean).filter(|line| !line.is_empty()).collect();
        let mut text = String::new();
        for line in lines.iter().skip(lines.len().saturating_sub(LINES_MAX)) {
            text.push_str(&format!(
                "  {}\n",
                styler.paint(TextRole::Faint, &styler.fit(line, styler.width - 3))
            ));
        }
        let question =
            "The guard already fails, before any agent ran. Start anyway, and let the agent fix it? [y/N]";
        text + &format!("{}\n", styler.paint(TextRole::Warn, &styler.wrap(question, 0)))
    }
}
