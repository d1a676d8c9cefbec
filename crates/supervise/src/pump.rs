//! Reads a program's output from its pipes, as it arrives, into files of bounded size.
//!
//! Memory use does not depend on the amount of output, and the program never waits for more than one write. Reading ends
//! when the program has ended, not at end of file: a process that the program left behind may hold the pipe open.

use std::fs::{self, File};
use std::io::{ErrorKind, PipeReader, PipeWriter, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::bounded_log::{BoundedLog, ByteCounts};
use crate::error::IoError;
use crate::output_jsonl::OutputJsonl;
use crate::poll_until;
use crate::spec::{OutputFilter, OutputLog, OutputSource, OutputTarget, ProcessSpec};

const CHUNK_BYTES_MAX: usize = 64 << 10;
/// How long reading the rest of the pipes may take after the program has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The read ends of a program's pipes, and the files their content goes to.
pub(super) struct Pump {
    started: Instant,
    channels: Vec<PumpChannel>,
    jsonl_copy: Option<(OutputJsonl<File>, PathBuf)>,
    chunk: Vec<u8>,
    /// What a filter passes on of a chunk.
    filtered: Vec<u8>,
}

struct PumpChannel {
    pipe: Option<PipeReader>,
    log: BoundedLog<File>,
    path: PathBuf,
    source: OutputSource,
    filter: Option<Box<dyn OutputFilter>>,
}

/// The write ends, for the program.
pub(super) struct PipeWriters {
    pub(super) stdout: PipeWriter,
    pub(super) stderr: PipeWriter,
}

pub(super) struct PumpResult {
    pub(super) stdout: ByteCounts,
    pub(super) stderr: ByteCounts,
    /// The first log that could not be written.
    pub(super) error: Option<IoError>,
}

impl Pump {
    /// Creates the files and the pipes.
    pub(super) fn open(spec: &ProcessSpec<'_>, started: Instant) -> Result<(Self, PipeWriters), IoError> {
        let mut channels = Vec::new();
        let filter = || spec.observers.filter.map(|filter| filter());
        let writers = match &spec.output {
            OutputTarget::Combined(log) => {
                let (channel, stdout) = PumpChannel::open(log, OutputSource::Stdout, filter())?;
                channels.push(channel);
                let stderr = stdout.try_clone().map_err(IoError::wrap("open", "a pipe"))?;
                PipeWriters { stdout, stderr }
            }
            OutputTarget::Separate { stdout, stderr } => {
                let (stdout_channel, stdout) = PumpChannel::open(stdout, OutputSource::Stdout, filter())?;
                let (stderr_channel, stderr) = PumpChannel::open(stderr, OutputSource::Stderr, filter())?;
                channels.extend([stdout_channel, stderr_channel]);
                PipeWriters { stdout, stderr }
            }
        };
        let jsonl_copy = match &spec.jsonl_copy {
            Some(log) => Some((OutputJsonl::new(create(log)?, log.bytes_max), log.path.clone())),
            None => None,
        };
        let chunk = vec![0; CHUNK_BYTES_MAX];
        Ok((Self { started, channels, jsonl_copy, chunk, filtered: Vec::new() }, writers))
    }

    /// The pipes that are still open, for polling.
    fn pipes(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.channels.iter().filter_map(|channel| Some(PollFd::new(channel.pipe.as_ref()?, PollFlags::IN)))
    }

    /// Reads one chunk from each pipe that has one; returns whether any had.
    pub(super) fn read(&mut self, on_output: &dyn Fn(OutputSource, &[u8])) -> bool {
        let mut has_read = false;
        let Self { started, channels, jsonl_copy, chunk, filtered } = self;
        for channel in channels {
            let Some(pipe) = &mut channel.pipe else { continue };
            match pipe.read(chunk) {
                Ok(0) => channel.pipe = None,
                Ok(count) => {
                    has_read = true;
                    let bytes = chunk.get(..count).unwrap_or_default();
                    let Some(filter) = &mut channel.filter else {
                        channel.pass_on(bytes, on_output, jsonl_copy.as_mut(), *started);
                        continue;
                    };
                    filtered.clear();
                    filter.push(bytes, filtered);
                    channel.pass_on(filtered, on_output, jsonl_copy.as_mut(), *started);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => channel.pipe = None,
            }
        }
        has_read
    }

    /// Reads what is still in the pipes and closes the files.
    pub(super) fn finish(mut self, on_output: &dyn Fn(OutputSource, &[u8])) -> PumpResult {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while self.read(on_output) && Instant::now() < deadline {}
        let Self { started, channels, jsonl_copy, filtered, .. } = &mut self;
        for channel in channels {
            filtered.clear();
            if let Some(filter) = &mut channel.filter {
                filter.finish(filtered);
                channel.pass_on(filtered, on_output, jsonl_copy.as_mut(), *started);
            }
        }
        let mut error = None;
        if let Some((copy, path)) = self.jsonl_copy {
            error = copy.finish(elapsed_ms(self.started)).map(IoError::wrap("write", path));
        }
        let mut counts = [ByteCounts::default(); 2];
        for (channel, counts) in self.channels.into_iter().zip(&mut counts) {
            let (channel_counts, log_error) = channel.log.finish();
            *counts = channel_counts;
            error = error.or(log_error.map(IoError::wrap("write", channel.path)));
        }
        let [stdout, stderr] = counts;
        PumpResult { stdout, stderr, error }
    }

    /// Polls the pipes and two other descriptors until one is ready or the deadline has passed.
    pub(super) fn wait(&self, others: [PollFd<'_>; 2], deadline: Option<Instant>) -> std::io::Result<()> {
        let mut fds: Vec<PollFd<'_>> = others.into_iter().chain(self.pipes()).collect();
        poll_until(&mut fds, deadline)
    }
}

impl PumpChannel {
    fn open(
        log: &OutputLog,
        source: OutputSource,
        filter: Option<Box<dyn OutputFilter>>,
    ) -> Result<(Self, PipeWriter), IoError> {
        let wrap = || IoError::wrap::<std::io::Error>("open", Path::new("a pipe"));
        let (pipe, writer) = std::io::pipe().map_err(wrap())?;
        rustix::io::ioctl_fionbio(&pipe, true).map_err(|errno| wrap()(errno.into()))?;
        let bounded_log = BoundedLog::new(create(log)?, log.bytes_max);
        let channel = Self { pipe: Some(pipe), log: bounded_log, path: log.path.clone(), source, filter };
        Ok((channel, writer))
    }

    /// Writes output to the logs, and shows it to the observer.
    fn pass_on(
        &mut self,
        bytes: &[u8],
        on_output: &dyn Fn(OutputSource, &[u8]),
        jsonl_copy: Option<&mut (OutputJsonl<File>, PathBuf)>,
        started: Instant,
    ) {
        if bytes.is_empty() {
            return;
        }
        self.log.push(bytes);
        on_output(self.source, bytes);
        if let (OutputSource::Stdout, Some((copy, _))) = (self.source, jsonl_copy) {
            copy.push(bytes, elapsed_ms(started));
        }
    }
}

/// Replaces the path by a new file. An agent may have put a link or a FIFO there, so an existing file is never opened.
fn create(log: &OutputLog) -> Result<File, IoError> {
    match fs::remove_file(&log.path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(IoError::wrap("replace", &log.path)(error));
        }
        Ok(()) | Err(_) => {}
    }
    File::create_new(&log.path).map_err(IoError::wrap("create", &log.path))
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
