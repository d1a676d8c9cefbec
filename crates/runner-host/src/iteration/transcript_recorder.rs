//! What an agent says while it works: understood line by line, recorded and announced as it comes.

use std::path::Path;

use runner_core::agents::{AgentEvent, AgentSpec, ProcessFacts, SessionResult, Transcript};
use runner_core::model::id::IterationNumber;
use runner_core::step::{Event, SessionExit, Usage};

use crate::iteration::iteration_dir::{IterationDir, now_ms};
use supervise::OutputSource;

/// How much of the end of standard error is kept, to say why a program gave up.
const STDERR_BYTES_MAX: usize = 16 << 10;

/// Who listens to a session.
pub(super) struct TranscriptRecorder<'e> {
    transcript: Option<Transcript>,
    stderr: Vec<u8>,
    iter: IterationNumber,
    seq: u32,
    folder: &'e IterationDir,
    audience: &'e mut (dyn FnMut(&Event) + 'e),
}

impl<'e> TranscriptRecorder<'e> {
    pub(super) fn new(
        agent: Option<&'static AgentSpec>,
        iter: IterationNumber,
        folder: &'e IterationDir,
        audience: &'e mut (dyn FnMut(&Event) + 'e),
    ) -> Self {
        let transcript = agent.map(Transcript::new);
        Self { transcript, stderr: Vec::new(), iter, seq: 0, folder, audience }
    }

    /// Hears a piece of what the agent writes.
    pub(super) fn hear(&mut self, source: OutputSource, bytes: &[u8]) {
        let Some(transcript) = &mut self.transcript else { return };
        match source {
            OutputSource::Stdout => {
                let events = transcript.push(bytes);
                self.tell(events);
            }
            OutputSource::Stderr => {
                self.stderr.extend(bytes);
                let beyond = self.stderr.len().saturating_sub(STDERR_BYTES_MAX);
                self.stderr.drain(..beyond);
            }
        }
    }

    fn tell(&mut self, events: Vec<AgentEvent>) {
        for what in events {
            self.seq = self.seq.saturating_add(1);
            let event = Event::Agent { iter: self.iter, seq: self.seq, activity: what };
            self.folder.tell(&event);
            (self.audience)(&event);
        }
    }

    /// What the session came to, now that its process has ended.
    pub(super) fn conclude(mut self, exit: SessionExit, context_full: &Path) -> SessionResult {
        let events = self.transcript.as_mut().map(Transcript::finish).unwrap_or_default();
        self.tell(events);
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
