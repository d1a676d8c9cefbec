//! Reads what a program writes, as it writes it, into files of limited size.
//!
//! Memory stays flat however much comes, and the program never waits for more than the writing of one piece.
//! Reading ends when the program has ended, not when the pipe does: whatever it left behind may hold the pipe open.

use std::fs::{self, File};
use std::io::{ErrorKind, PipeReader, PipeWriter, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::bounded_log::{BoundedLog, ByteCounts};
use crate::error::IoError;
use crate::output_jsonl::OutputJsonl;
use crate::{OutputLog, OutputSource, OutputTarget, wait_until};

const PIECE_BYTES_MAX: usize = 64 << 10;
/// How long what is still in the pipes may take to be read when the program has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// The reading ends of a program's pipes, and where their content goes.
pub(super) struct Pump {
    started: Instant,
    channels: Vec<PumpChannel>,
    copy: Option<(OutputJsonl<File>, PathBuf)>,
    piece: Vec<u8>,
}

struct PumpChannel {
    pipe: Option<PipeReader>,
    log: BoundedLog<File>,
    path: PathBuf,
    source: OutputSource,
}

/// The writing ends, for the program.
pub(super) struct PipeWriters {
    pub(super) stdout: PipeWriter,
    pub(super) stderr: PipeWriter,
}

/// What came of all the reading.
pub(super) struct PumpResult {
    pub(super) stdout: ByteCounts,
    pub(super) stderr: ByteCounts,
    pub(super) fault: Option<IoError>,
}

impl Pump {
    /// Creates the files and the pipes.
    pub(super) fn open(
        output: &OutputTarget,
        copy: Option<&OutputLog>,
        started: Instant,
    ) -> Result<(Self, PipeWriters), IoError> {
        let fail = || IoError::wrap("open", Path::new("a pipe"));
        let mut channels = Vec::new();
        let writers = match output {
            OutputTarget::Combined(log) => {
                let (channel, stdout) = PumpChannel::open(log)?;
                channels.push(channel);
                let stderr = stdout.try_clone().map_err(fail())?;
                PipeWriters { stdout, stderr }
            }
            OutputTarget::Separate { stdout, stderr } => {
                let (first, stdout) = PumpChannel::open(stdout)?;
                let (second, stderr) = PumpChannel::open(stderr)?;
                channels.extend([first, PumpChannel { source: OutputSource::Stderr, ..second }]);
                PipeWriters { stdout, stderr }
            }
        };
        let copy = copy
            .map(|log| Ok::<_, IoError>((OutputJsonl::new(create(log)?, log.bytes_max), log.path.clone())));
        Ok((Self { started, channels, copy: copy.transpose()?, piece: vec![0; PIECE_BYTES_MAX] }, writers))
    }

    /// The pipes that are still open, to be waited for.
    pub(super) fn pipes(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.channels.iter().filter_map(|channel| Some(PollFd::new(channel.pipe.as_ref()?, PollFlags::IN)))
    }

    /// Reads one piece of each pipe that has one; says whether any had.
    pub(super) fn read(&mut self, hear: &dyn Fn(OutputSource, &[u8])) -> bool {
        let mut is_any = false;
        for channel in &mut self.channels {
            let Some(pipe) = &mut channel.pipe else { continue };
            match pipe.read(&mut self.piece) {
                Ok(0) => channel.pipe = None,
                Ok(count) => {
                    let bytes = self.piece.get(..count).unwrap_or_default();
                    is_any = true;
                    channel.log.push(bytes);
                    hear(channel.source, bytes);
                    if channel.source == OutputSource::Stdout
                        && let Some((copy, _)) = &mut self.copy
                    {
                        copy.push(bytes, elapsed_ms(self.started));
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => channel.pipe = None,
            }
        }
        is_any
    }

    /// Reads what is still there, and closes the files.
    pub(super) fn finish(mut self, hear: &dyn Fn(OutputSource, &[u8])) -> PumpResult {
        let until = Instant::now() + DRAIN;
        while self.read(hear) && Instant::now() < until {}
        let mut fault = None;
        if let Some((copy, path)) = self.copy {
            fault = copy.finish(elapsed_ms(self.started)).map(IoError::wrap("write", path));
        }
        let mut bytes = [ByteCounts::default(); 2];
        for (channel, bytes) in self.channels.into_iter().zip(&mut bytes) {
            let (counted, failed) = channel.log.finish();
            *bytes = counted;
            fault = fault.or(failed.map(IoError::wrap("write", channel.path)));
        }
        let [stdout, stderr] = bytes;
        PumpResult { stdout, stderr, fault }
    }

    /// Waits until one of these or a pipe has something, or time is up.
    pub(super) fn wait(&self, others: [PollFd<'_>; 2], until: Option<Instant>) -> std::io::Result<()> {
        let mut watched: Vec<PollFd<'_>> = others.into_iter().chain(self.pipes()).collect();
        wait_until(&mut watched, until)
    }
}

impl PumpChannel {
    fn open(log: &OutputLog) -> Result<(Self, PipeWriter), IoError> {
        let fail = || IoError::wrap("open", Path::new("a pipe"));
        let (pipe, writer) = std::io::pipe().map_err(fail())?;
        rustix::io::ioctl_fionbio(&pipe, true).map_err(|errno| fail()(errno.into()))?;
        let file = BoundedLog::new(create(log)?, log.bytes_max);
        Ok((
            Self { pipe: Some(pipe), log: file, path: log.path.clone(), source: OutputSource::Stdout },
            writer,
        ))
    }
}

/// A new file in the place of whatever is there. What an agent put there, a link or a pipe, is not written to.
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
