//! `runner step` and `runner loop`

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use runner_core::run_status::{LifecycleState, RunStatus};
use runner_core::step::{self, Event, LoopWorld, NextAction, StepResult, StopReason};
use runner_host::iteration::iteration_dir::last_line;
use runner_host::iteration::{Recovered, RepoWorld, recover};
use runner_term::terminal::KeyReader;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, Ui};
use serde_json::{Value, json};

use crate::args::LoopArgs;
use crate::commands::status::{self, StatusOutput, insert_status};
use crate::live_display::{DisplayPhase, LiveDisplay};
use crate::render::cost::spent_text;
use crate::render::recovery::{recovered_json, recovered_line, recovered_text};
use crate::render::summary::LoopSummary;

/// How it ended.
pub(crate) struct LoopOutput {
    stop: Option<StopReason>,
    /// The status of the run after the stop.
    status: Option<RunStatus>,
    summary: LoopSummary,
    took: Duration,
}

/// How much is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunMode {
    OneStep,
    UntilItStops { at_most: Option<u32> },
}

pub(crate) fn step(dir: &Path, out: &Ui) -> Result<LoopOutput, CommandError> {
    run(dir, RunMode::OneStep, out)
}

pub(crate) fn run_loop(dir: &Path, args: &LoopArgs, out: &Ui) -> Result<LoopOutput, CommandError> {
    run(dir, RunMode::UntilItStops { at_most: args.max_iterations }, out)
}

fn run(dir: &Path, amount: RunMode, out: &Ui) -> Result<LoopOutput, CommandError> {
    let told = |error| CommandError::from_host("could not make an iteration", error);
    let root: OnceLock<PathBuf> = OnceLock::new();
    let log_of = |stage| if stage == DisplayPhase::Guard { "guard.log" } else { "executor.log" };
    let live =
        LiveDisplay::new(out, Box::new(|run, iter, stage| last_line(root.get()?, run, iter, log_of(stage))));
    let asked = Arc::new(AtomicBool::new(false));
    let (pressed, presses) = channel();
    let keys = out
        .is_terminal()
        .then(|| {
            KeyReader::read(move |key| {
                let _ = pressed.send(key);
            })
        })
        .flatten();
    std::thread::scope(|scope| {
        let fresh = scope.spawn(|| live.keep_fresh());
        let (live, wanted) = (&live, Arc::clone(&asked));
        if keys.is_some() {
            scope.spawn(move || listen_to_keys(&presses, live, &wanted));
        }
        let stop = work(dir, amount, live, (&asked, &root));
        drop(keys);
        let (summary, took) = live.end();
        fresh.thread().unpark();
        let stop = stop.map_err(told)?;
        let status = stop.as_ref().map(|stop| status_after(dir, stop, &summary));
        Ok(LoopOutput { stop, status, summary, took })
    })
}

/// The status of the run that the loop leaves. The documents are read only where the summary shows something from them.
fn status_after(dir: &Path, stop: &StopReason, summary: &LoopSummary) -> RunStatus {
    let report = if summary.needs_documents(stop) { status::read(dir).ok() } else { None };
    summary.status(stop, &report.as_ref().map(StatusOutput::facts).unwrap_or_default())
}

/// `q` stops after the running iteration, `t` prints where things stand.
fn listen_to_keys(presses: &std::sync::mpsc::Receiver<u8>, live: &LiveDisplay<'_>, asked: &AtomicBool) {
    while !live.is_over() {
        match presses.recv_timeout(Duration::from_millis(200)) {
            Ok(b'q') => asked.store(true, Ordering::SeqCst),
            Ok(b't') => live.snapshot(),
            Ok(_) | Err(_) => {}
        }
    }
}

fn work(
    dir: &Path,
    amount: RunMode,
    live: &LiveDisplay<'_>,
    (asked, root): (&AtomicBool, &OnceLock<PathBuf>),
) -> Result<Option<StopReason>, runner_host::Error> {
    let mut audience = |event: &Event| live.tell(event);
    let wants_stop = Box::new(|| asked.load(Ordering::SeqCst));
    let mut workshop = RepoWorld::open(dir, &mut audience, wants_stop)?;
    let _ = root.set(workshop.root().to_owned());
    workshop.handle_signals()?;
    if let Some(taken) = recover(&mut workshop)? {
        live.say(&RecoveryOutput(taken));
    }
    if let Some(stop) = surveyed(&mut workshop, amount)? {
        return Ok(Some(stop));
    }
    match amount {
        RunMode::UntilItStops { at_most } => step::run_loop(&mut workshop, at_most).map(Some),
        RunMode::OneStep => Ok(match step::step(&mut workshop)? {
            StepResult::Stopped(stop) => Some(stop),
            StepResult::Iterated(it) => match it.transition.next {
                NextAction::Stop(stop) => Some(stop),
                NextAction::Go | NextAction::Wait(_) | NextAction::Unknown => None,
            },
        }),
    }
}

/// Asks the guard before the first session, unless the run is paused or the user breaks in.
fn surveyed(workshop: &mut RepoWorld<'_>, amount: RunMode) -> Result<Option<StopReason>, runner_host::Error> {
    if !workshop.is_before_first() {
        return Ok(None);
    }
    let stop = if amount == RunMode::OneStep { None } else { workshop.pause(None)? };
    if stop.is_some() { Ok(stop) } else { step::baseline(workshop) }
}

/// What a crash had left and what became of it.
struct RecoveryOutput(Recovered);

impl CommandOutput for RecoveryOutput {
    fn json(&self) -> Value {
        json!({ "event": "recovered", "recovered": recovered_json(&self.0) })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![recovered_line(&self.0)]
    }

    fn human(&self, _: &Styler) -> String {
        format!("{}\n", recovered_text(&self.0))
    }
}

impl CommandOutput for LoopOutput {
    fn json(&self) -> Value {
        let mut document = json!({
            "schema": "runner.loop/1",
            "event": "end",
            "stop": self.stop,
            "iterations": self.summary.iterations,
            "leaves": self.summary.leaves,
            "spent": self.summary.spent,
            "cost": self.summary.spent.basis(),
            "exit": self.exit().0,
        });
        if let Some(status) = &self.status {
            insert_status(&mut document, status);
        }
        document
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let stop = self.stop.as_ref().map_or("none", StopReason::as_str);
        let line = KeyValueLine::new().with("event", "end").with("stop", stop);
        let mut line = line.with("iterations", self.summary.iterations);
        if let Some(spent) = spent_text(&self.summary.spent, &self.summary.budget) {
            line = line.with("spent", spent);
        }
        if let Some(status) = self.status.as_ref().filter(|status| status.state != LifecycleState::Complete) {
            line = line.with("headline", &status.headline);
            for next in &status.next {
                line = line.with("next", &next.command);
            }
        }
        vec![line.with("exit", self.exit().0)]
    }

    fn human(&self, pen: &Styler) -> String {
        self.status.as_ref().map(|status| self.summary.draw(status, self.took, pen)).unwrap_or_default()
    }

    fn ends_lines(&self) -> bool {
        true
    }

    fn exit(&self) -> CommandExit {
        self.stop.as_ref().map_or(CommandExit::SUCCESS, |stop| CommandExit(stop.exit_code()))
    }
}
