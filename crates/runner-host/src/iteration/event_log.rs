//! Reports events: to the caller's sink, to the events.jsonl of an iteration, and to the user's hooks and notifications.

use runner_core::config::{Config, HooksConfig, NotifyConfig, TelemetryConfig};
use runner_core::runs::edit::Question;
use runner_core::step::{Event, HookTrigger, Occasion};
use runner_core::telemetry::TraceRecorder;
use serde_json::Value;

use super::hooks;
use super::iteration_dir::EventsFile;
use super::notify::{Notifier, NotifyProgram, send_trace};
use super::program_runner::ProgramRunner;
use crate::clock::now_ms;
use crate::paths::RepoPaths;

pub type EventSink<'a> = &'a mut dyn FnMut(&Event);

/// Whether a hook ran, which may have changed the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum HookRun {
    Yes,
    No,
}

pub(crate) struct EventLog<'a> {
    sink: Option<EventSink<'a>>,
    /// The hooks of the committed configuration.
    hooks: HooksConfig,
    notify: NotifyConfig,
    telemetry: TelemetryConfig,
    trace: TraceRecorder,
    /// How many questions were there before the current iteration.
    questions: usize,
    trigger: HookTrigger,
    /// Events of the next iteration, announced before its directory exists.
    early: Vec<Event>,
    /// The file of the current iteration or, between two iterations, of the last one.
    file: Option<EventsFile>,
    /// The file of the run, for the baseline, and for a stop before the first event of an iteration's own file.
    run_file: Option<EventsFile>,
}

impl<'a> EventLog<'a> {
    pub(crate) fn new(sink: EventSink<'a>) -> Self {
        Self { sink: Some(sink), ..Self::without_sink() }
    }

    pub(crate) fn without_sink() -> Self {
        Self {
            sink: None,
            hooks: HooksConfig::default(),
            notify: NotifyConfig::default(),
            telemetry: TelemetryConfig::default(),
            trace: TraceRecorder::default(),
            questions: 0,
            trigger: HookTrigger::default(),
            early: Vec::new(),
            file: None,
            run_file: None,
        }
    }

    /// For the next iteration of a run with this configuration and these questions.
    pub(crate) fn begin(&mut self, run_file: EventsFile, config: &Config, questions: &[Question]) {
        self.run_file = Some(run_file);
        self.hooks = config.hooks.clone();
        self.notify = config.notify.clone();
        self.telemetry = config.telemetry.clone();
        self.questions = questions.len();
    }

    /// The questions that were asked since.
    pub(super) fn asked<'q>(&self, questions: &'q [Question]) -> &'q [Question] {
        questions.get(self.questions..).unwrap_or_default()
    }

    /// Writes the events of an iteration into its own file from now on.
    pub(super) fn begin_iteration(&mut self, file: EventsFile) {
        self.early.drain(..).for_each(|event| file.append(&event));
        self.file = Some(file);
    }

    /// Records an event in events.jsonl and passes it to the sink.
    pub(super) fn record(&mut self, event: &Event) {
        let is_between = matches!(event, Event::Stopped { .. }) && !self.early.is_empty();
        let file = self.file.as_ref().filter(|_| !is_between);
        if let Some(file) = file.or(self.run_file.as_ref()) {
            file.append(event);
        }
        if let Some(sink) = &mut self.sink {
            sink(event);
        }
    }

    /// Records an event and runs the hook that is due after it. The run continues whatever becomes of the hook.
    pub(super) fn announce(&mut self, event: &Event, paths: &RepoPaths, programs: &ProgramRunner) -> HookRun {
        if belongs_to_next_iteration(event) {
            if let (Some(file), true) = (&self.run_file, is_of_baseline(event)) {
                // It may take minutes, and the iteration has no file yet.
                file.append(event);
            }
            self.early.push(event.clone());
            if let Some(sink) = &mut self.sink {
                sink(event);
            }
        } else {
            self.record(event);
        }
        self.export(event, paths, programs);
        let Some(occasion) = self.trigger.note(event) else { return HookRun::No };
        self.notify(&occasion, paths, programs);
        let Some(mut call) = occasion.hook_call(&self.hooks) else { return HookRun::No };
        if let Value::Object(payload) = &mut call.payload {
            payload.insert("repository".to_owned(), paths.root().display().to_string().into());
        }
        let fault = hooks::run(&call, &self.hooks, paths, programs).err();
        self.record(&Event::HookRan { hook: call.hook.to_owned(), fault });
        HookRun::Yes
    }

    /// Sends the trace of an iteration that is over. A success is not worth an event.
    fn export(&mut self, event: &Event, paths: &RepoPaths, programs: &ProgramRunner) {
        let Some(endpoint) = self.telemetry.otlp_endpoint.clone() else { return };
        let place = paths.root().display().to_string();
        let Some(trace) = self.trace.record(now_ms(), event, &place) else { return };
        let timeout_secs = self.telemetry.timeout_secs.as_u64();
        let program = NotifyProgram { timeout_secs, paths, programs };
        if let Err(fault) = send_trace(&program, &endpoint, &trace) {
            self.record(&Event::Notified { to: "telemetry".to_owned(), fault: Some(fault) });
        }
    }

    fn notify(&mut self, occasion: &Occasion, paths: &RepoPaths, programs: &ProgramRunner) {
        let Some(event) = occasion.kind.notify_event().filter(|event| self.notify.reports(*event)) else {
            return;
        };
        let config = self.notify.clone();
        let deliveries = Notifier { config: &config, paths, programs }.send(occasion, event);
        for delivery in deliveries {
            self.record(&Event::Notified { to: delivery.to.to_owned(), fault: delivery.fault });
        }
    }
}

/// Whether an event is announced before the directory of its iteration exists.
fn belongs_to_next_iteration(event: &Event) -> bool {
    matches!(event, Event::Planned { .. }) || is_of_baseline(event)
}

fn is_of_baseline(event: &Event) -> bool {
    matches!(event, Event::BaselineStarted { .. } | Event::BaselineEnded { .. })
}
