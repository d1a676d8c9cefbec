//! Feeds an agent's output to the transcript parser, and records and announces the events in it as they arrive.

use std::path::Path;

use runner_core::agents::{AgentEvent, OutputFormat, ProcessFacts, SessionResult, Transcript};
use runner_core::model::id::IterationNumber;
use runner_core::step::{Event, SessionExit, Usage};
use supervise::OutputSource;

use super::event_log::EventLog;
use super::usage_logs::UsageLogs;
use crate::clock::now_ms;

/// How much of the end of standard error is kept to explain why a program failed.
const STDERR_BYTES_MAX: usize = 16 << 10;

pub(super) struct TranscriptRecorder<'e, 'a> {
    /// None for an agent whose output has no known format.
    transcript: Option<Transcript>,
    stderr: Vec<u8>,
    iter: IterationNumber,
    seq: u32,
    /// None for a reviewer, whose single steps are only in its log.
    events: Option<&'e mut EventLog<'a>>,
    usage_logs: UsageLogs,
}

impl<'e, 'a> TranscriptRecorder<'e, 'a> {
    pub(super) fn new(
        format: Option<&'static OutputFormat>,
        iter: IterationNumber,
        events: Option<&'e mut EventLog<'a>>,
    ) -> Self {
        Self {
            transcript: format.map(Transcript::new),
            stderr: Vec::new(),
            iter,
            seq: 0,
            events,
            usage_logs: UsageLogs::default(),
        }
    }

    /// Also reads the usage that the agent records in files while it works.
    pub(super) fn with_usage_logs(self, usage_logs: UsageLogs) -> Self {
        Self { usage_logs, ..self }
    }

    /// What the session has used so far; none if its output has no known format.
    pub(super) fn usage(&mut self) -> Option<Usage> {
        let transcript = self.transcript.as_mut()?;
        transcript.push_usage_log(&self.usage_logs.read_new());
        Some(transcript.usage())
    }

    /// Parses a piece of the output.
    pub(super) fn push(&mut self, source: OutputSource, bytes: &[u8]) {
        let Some(transcript) = &mut self.transcript else { return };
        match source {
            OutputSource::Stdout => {
                let activities = transcript.push(bytes);
                self.record(activities);
            }
            OutputSource::Stderr => {
                self.stderr.extend(bytes);
                let excess = self.stderr.len().saturating_sub(STDERR_BYTES_MAX);
                self.stderr.drain(..excess);
            }
        }
    }

    fn record(&mut self, activities: Vec<AgentEvent>) {
        let Some(events) = &mut self.events else { return };
        for activity in activities {
            self.seq = self.seq.saturating_add(1);
            events.record(&Event::Agent { iter: self.iter, seq: self.seq, activity });
        }
    }

    /// The result of the session, once its process has ended. The file `context_full` exists if the agent was stopped
    /// because its context was full.
    pub(super) fn conclude(mut self, exit: SessionExit, context_full: &Path) -> SessionResult {
        let activities = self.transcript.as_mut().map(Transcript::finish).unwrap_or_default();
        self.record(activities);
        // A session that was stopped has reported its usage nowhere else.
        self.usage();
        match self.transcript {
            Some(transcript) => transcript.conclude(ProcessFacts {
                exit,
                stderr: &self.stderr,
                is_context_full: context_full.exists(),
                now_unix_secs: now_ms() / 1000,
            }),
            None => {
                SessionResult { exit, usage: Usage::default(), answer: None, identity: Default::default() }
            }
        }
    }
}
