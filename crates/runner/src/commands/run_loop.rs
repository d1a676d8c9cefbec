//! `runner loop`, and the code that it shares with `runner step`

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use runner_core::run_status::{LifecycleState, RunStatus};
use runner_core::step::{self, Event, LoopLimits, NextAction, RunStart, StepResult, StopReason};
use runner_host::clock;
use runner_host::iteration::RepoWorld;
use runner_host::iteration::iteration_dir::last_line;
use runner_host::ops::detach::Detachment;
use runner_host::ops::preflight::preflight;
use runner_host::ops::signed_tip::sign_tip;
use runner_host::ops::stop::StopRequest;
use runner_host::repo::locked_repo::UnrecoveredRepo;
use runner_host::repo::own_output::ignore_own_output;
use runner_host::repo::recovery::Recovered;
use runner_host::sleep_inhibitor::SleepInhibitor;
use runner_term::terminal::KeyReader;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, Ui};
use serde_json::{Value, json};

use super::detach;
use super::red_question::{OnRedBaseline, RedQuestion};
use super::status::{self, StatusOutput, insert_status};
use crate::args::{LoopOptions, WallTime};
use crate::live_display::{DisplayPhase, LiveDisplay};
use crate::render::clean;
use crate::render::cost::spent_text;
use crate::render::recovery::{recovered_json, recovered_line, recovered_text};
use crate::render::summary::LoopSummary;

/// How often the key thread checks whether the loop is over.
const KEY_POLL: Duration = Duration::from_millis(200);

/// The end of a loop or a step.
pub(crate) struct LoopOutput {
    /// None if a step ended and the run can continue.
    stop: Option<StopReason>,
    /// The status of the run after the stop.
    status: Option<RunStatus>,
    summary: LoopSummary,
    took: Duration,
    /// The events of a step that prints one JSON document.
    events: Option<Vec<Value>>,
    /// What came of signing a complete run, if it is to be signed.
    signed: Option<String>,
}

/// When a loop starts no further iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoopDeadline {
    at_ms: u64,
    time: WallTime,
}

impl LoopDeadline {
    /// The next moment at which it is that time of day.
    fn next(time: WallTime) -> Option<Self> {
        clock::next_local(time.hour, time.minute).map(|at_ms| Self { at_ms, time })
    }

    fn stop(self) -> Option<StopReason> {
        (clock::now_ms() >= self.at_ms).then(|| StopReason::LoopUntil { until: self.time.to_string() })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunMode {
    OneStep,
    /// One session that only plans.
    Plan,
    UntilStopped {
        limits: LoopLimits,
        deadline: Option<LoopDeadline>,
        on_red: OnRedBaseline,
    },
}

pub(crate) fn run(
    dir: &Path,
    options: &LoopOptions,
    ui: &Ui,
) -> Result<Box<dyn CommandOutput>, CommandError> {
    if options.detach {
        return Ok(Box::new(detach::run(dir, options, ui)?));
    }
    let failed = |error| CommandError::from_host("cannot start the loop", error);
    let detachment = options.is_detached.then(Detachment::take).transpose().map_err(failed)?;
    ignore_own_output(dir).map_err(failed)?;
    preflight(dir, &options.budget()).map_err(failed)?;
    let mode = RunMode::UntilStopped {
        limits: LoopLimits { iterations: options.max_iterations, budget: options.budget() },
        deadline: options.until.and_then(LoopDeadline::next),
        on_red: match (options.allow_red, options.no_questions) {
            (true, _) => OnRedBaseline::Begin,
            (false, false) => OnRedBaseline::Ask,
            (false, true) => OnRedBaseline::Refuse,
        },
    };
    Ok(Box::new(run_iterations(dir, mode, detachment, ui)?))
}

/// Runs iterations and shows them live: a thread redraws the display, and one handles keys if there is a terminal.
pub(super) fn run_iterations(
    dir: &Path,
    mode: RunMode,
    detachment: Option<Detachment>,
    ui: &Ui,
) -> Result<LoopOutput, CommandError> {
    let root: OnceLock<PathBuf> = OnceLock::new();
    let log_of = |phase| if phase == DisplayPhase::Guard { "guard.log" } else { "executor.log" };
    let display =
        LiveDisplay::new(ui, Box::new(|run, iter, phase| last_line(root.get()?, run, iter, log_of(phase))));
    if mode == RunMode::OneStep && ui.is_json() {
        display.collect_events();
    }
    let stop_requested = AtomicBool::new(false);
    let stop_request: OnceLock<StopRequest> = OnceLock::new();
    let is_stop_requested = || stop_request.get().is_some_and(StopRequest::is_made);
    let (key_sender, keys) = channel();
    let on_key = move |key| {
        let _ = key_sender.send(key);
    };
    let key_reader = if ui.is_terminal() { KeyReader::read(on_key) } else { None };
    let red_question = RedQuestion::new(mode, key_reader.is_some());
    std::thread::scope(|scope| {
        // A machine that cannot start a thread gets no live display and no keys, but its run.
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let redrawing =
            thread("display").spawn_scoped(scope, || display.redraw_until_over(is_stop_requested));
        if key_reader.is_some() {
            let _ = thread("keys")
                .spawn_scoped(scope, || handle_keys(keys, &display, &stop_requested, &red_question));
        }
        // A panic must end the other threads too: the scope waits for them.
        let stop = catch_unwind(AssertUnwindSafe(|| {
            let requests = UserRequests {
                stop: &stop_requested,
                stop_command: &stop_request,
                red_question: &red_question,
            };
            run_in_repo(dir, mode, &BackgroundReport::new(detachment, &display), requests, &root)
        }));
        drop(key_reader);
        let (summary, took) = display.end();
        if let Ok(redrawing) = redrawing {
            redrawing.thread().unpark();
        }
        let stop = stop.unwrap_or_else(|panic| resume_unwind(panic));
        let stop = stop.map_err(|error| CommandError::from_host("cannot run the next iteration", error))?;
        let status = stop.as_ref().map(|stop| status_after(dir, stop, &summary));
        let signed = if stop == Some(StopReason::Complete) { signed_text(dir) } else { None };
        Ok(LoopOutput { stop, status, summary, took, signed, events: display.take_events() })
    })
}

/// Signs a complete run, if its configuration enables it. The run is complete without the signature as well.
fn signed_text(dir: &Path) -> Option<String> {
    match sign_tip(dir) {
        Ok(signed) => signed.map(|signed| format!("tag {} with {}", signed.tag, clean(&signed.key))),
        Err(error) => Some(format!("not signed: {}", clean(&error.to_string()))),
    }
}

/// The status of the run after the loop. The documents are read only where the summary shows something from them.
fn status_after(dir: &Path, stop: &StopReason, summary: &LoopSummary) -> RunStatus {
    let report = if summary.needs_documents(stop) { status::read(dir).ok() } else { None };
    summary.status(stop, &report.as_ref().map(StatusOutput::facts).unwrap_or_default())
}

/// What the user asked for with keys, or with `runner stop`.
#[derive(Clone, Copy)]
struct UserRequests<'a> {
    stop: &'a AtomicBool,
    /// Set in a loop, which `runner stop` can end.
    stop_command: &'a OnceLock<StopRequest>,
    red_question: &'a RedQuestion,
}

/// `q` stops after the current iteration, `t` prints a snapshot of the progress.
#[expect(clippy::needless_pass_by_value, reason = "a receiver belongs to the thread that reads it")]
fn handle_keys(
    keys: Receiver<u8>,
    display: &LiveDisplay<'_>,
    stop_requested: &AtomicBool,
    red_question: &RedQuestion,
) {
    while !display.is_over() {
        match keys.recv_timeout(KEY_POLL) {
            Ok(key) if red_question.is_open() => red_question.answer(key),
            Ok(b'q') => {
                stop_requested.store(true, Ordering::SeqCst);
                display.acknowledge_stop();
            }
            Ok(b't') => display.print_snapshot(),
            Ok(_) | Err(_) => {}
        }
    }
}

fn run_in_repo(
    dir: &Path,
    mode: RunMode,
    reports: &BackgroundReport<'_, '_>,
    requests: UserRequests<'_>,
    root: &OnceLock<PathBuf>,
) -> Result<Option<StopReason>, runner_host::Error> {
    let display = reports.display;
    let mut on_event = |event: &Event| reports.report(event);
    let repo = UnrecoveredRepo::lock(dir)?;
    if matches!(mode, RunMode::UntilStopped { .. }) {
        let _ = requests.stop_command.set(StopRequest::forget(&repo)?);
    }
    let deadline = match mode {
        RunMode::OneStep | RunMode::Plan => None,
        RunMode::UntilStopped { deadline, .. } => deadline,
    };
    let requested_stop = Box::new(move || {
        let is_requested = requests.stop.load(Ordering::SeqCst)
            || requests.stop_command.get().is_some_and(StopRequest::is_made);
        if is_requested { Some(StopReason::UserStop) } else { deadline.and_then(LoopDeadline::stop) }
    });
    let _ = root.set(repo.root().to_owned());
    let _awake = (mode != RunMode::OneStep).then(|| SleepInhibitor::start(repo.root()));
    let mut world = RepoWorld::new(repo, &mut on_event, requested_stop)?;
    world.set_red_baseline_choice(|baseline| requests.red_question.choice(baseline, display));
    if let Some(recovered) = world.take_recovered() {
        display.print(&RecoveryOutput(recovered));
    }
    if mode == RunMode::Plan {
        world.request_plan();
    }
    let start = match mode {
        RunMode::OneStep | RunMode::Plan => step::begin_step(&mut world)?,
        RunMode::UntilStopped { .. } => step::begin_loop(&mut world)?,
    };
    let run = match start {
        RunStart::Ready(run) => run,
        RunStart::Stopped(stop) => return Ok(Some(stop)),
    };
    match mode {
        RunMode::UntilStopped { limits, .. } => {
            let stop = step::run_loop(&mut world, *run, &limits)?;
            world.commit_queued_edits();
            let _ = requests.stop_command.get().map(StopRequest::remove);
            Ok(Some(stop))
        }
        RunMode::OneStep | RunMode::Plan => Ok(match step::step(&mut world, &run)? {
            StepResult::Stopped(stop) => Some(stop),
            StepResult::Iterated(iterated) => match &iterated.transition.next {
                NextAction::Stop(stop) => Some(stop.clone()),
                // A planning session works on no task: that one has no attempts left is not its result.
                NextAction::Go if mode == RunMode::OneStep => {
                    step::stuck_after(&run.snapshot, &iterated.transition)
                }
                NextAction::Go | NextAction::Wait(_) | NextAction::Unknown => None,
            },
            StepResult::OutageContinues(_) | StepResult::Rechecked => None,
        }),
    }
}

impl LoopOutput {
    /// Why the run stopped, if it did.
    pub(super) fn stop(&self) -> Option<&StopReason> {
        self.stop.as_ref()
    }
}

/// Where events go: to the display and, until the loop works, to the command that started it in the background.
struct BackgroundReport<'a, 'd> {
    detachment: RefCell<Option<Detachment>>,
    display: &'a LiveDisplay<'d>,
}

impl<'a, 'd> BackgroundReport<'a, 'd> {
    fn new(detachment: Option<Detachment>, display: &'a LiveDisplay<'d>) -> Self {
        Self { detachment: RefCell::new(detachment), display }
    }

    fn report(&self, event: &Event) {
        self.display.print_event(event);
        let mut detachment = self.detachment.borrow_mut();
        if let (Event::BaselineStarted { .. }, Some(detachment)) = (event, detachment.as_mut()) {
            detachment.report_baseline();
        }
        let works = matches!(
            event,
            Event::Planned { .. } | Event::Waiting { .. } | Event::Paused | Event::FinalCheckStarted { .. }
        );
        if let Some(detachment) = detachment.take_if(|_| works) {
            detachment.detach();
        }
    }
}

/// What recovery finished after a crash.
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
            "signed": self.signed,
            "exit": self.exit().0,
        });
        if let Some(status) = &self.status {
            insert_status(&mut document, status);
        }
        if let (Some(events), Value::Object(document)) = (&self.events, &mut document) {
            document.insert("schema".to_owned(), json!("runner.step/1"));
            document.remove("event");
            document.insert("events".to_owned(), json!(events));
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
        let line = self.signed.iter().fold(line, |line, signed| line.with("signed", signed));
        vec![line.with("exit", self.exit().0)]
    }

    fn human(&self, styler: &Styler) -> String {
        let summary = self.status.as_ref().map(|status| self.summary.draw(status, self.took, styler));
        let signed = self.signed.iter().map(|signed| format!("  signed   {signed}\n"));
        summary.into_iter().chain(signed).collect()
    }

    fn ends_json_lines(&self) -> bool {
        self.events.is_none()
    }

    fn exit(&self) -> CommandExit {
        self.stop.as_ref().map_or(CommandExit::SUCCESS, |stop| CommandExit(stop.exit_code()))
    }
}
