//! Runs programs under a supervisor, and knows whether the user interrupted them.

use runner_core::step::Interruption;
use supervise::signals::{ShutdownSignal, SignalListener};
use supervise::{CancelHandle, ProcessResult, ProcessSpec, StopRequest, SupervisorSlot};

use crate::error::Error;
use crate::redaction::output_filter;

/// Runs agents, guards and hooks without keys in their output, one at a time, in one supervisor process that is reused.
pub(crate) struct ProgramRunner {
    cancel: CancelHandle,
    supervisor: SupervisorSlot,
    signals: Option<SignalListener>,
}

impl ProgramRunner {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { cancel: CancelHandle::new()?, supervisor: SupervisorSlot::default(), signals: None })
    }

    /// From now on, a signal stops the running program gracefully instead of killing the runner.
    pub(crate) fn with_signals() -> Result<Self, Error> {
        let mut programs = Self::new()?;
        programs.signals = Some(SignalListener::install(&programs.cancel)?);
        Ok(programs)
    }

    /// Runs a program until it ends, its time is over, or the user interrupts it.
    pub(super) fn run(&self, spec: ProcessSpec<'_>) -> Result<ProcessResult, Error> {
        let spec = spec.output_filter(&output_filter);
        Ok(supervise::run(&spec, &self.cancel, &self.supervisor)?)
    }

    /// Runs a program that the user's interruption does not stop.
    pub(super) fn run_uncancelled(&self, spec: ProcessSpec<'_>) -> Result<ProcessResult, Error> {
        let spec = spec.output_filter(&output_filter);
        Ok(supervise::run(&spec, &CancelHandle::new()?, &self.supervisor)?)
    }

    /// How the user interrupted the run, if they did.
    pub(super) fn interruption(&self) -> Option<Interruption> {
        let signal = self.signals.as_ref().and_then(SignalListener::received);
        match signal {
            Some(ShutdownSignal::Interrupt) => Some(Interruption::Int),
            Some(ShutdownSignal::Terminate) => Some(Interruption::Term),
            Some(ShutdownSignal::HangUp) => Some(Interruption::Hup),
            None if self.cancel.request() != StopRequest::None => Some(Interruption::Int),
            None => None,
        }
    }
}
