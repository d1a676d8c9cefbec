//! Runs a git process to its end: writes its input, reads its output and enforces a deadline, all in the calling thread.
//!
//! No helper thread is needed, so that a machine that cannot start one more thread gets an error instead of a panic.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

/// How long a git process may run. Only a process that waits for something that never comes, such as a named pipe in the
/// place of a file, takes this long.
const DEADLINE: Duration = Duration::from_secs(300);

/// The longest wait that counts. Time in which the user stopped the runner with Ctrl-Z shows up as one long wait.
const WAIT_MAX: Duration = Duration::from_secs(1);

const BUFFER_BYTES: usize = 64 << 10;

/// The output of a process that ended by itself.
pub(super) struct ChildOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// Whether there was more output than requested. Then the process was killed.
    pub(super) is_truncated: bool,
}

/// Runs a command. Beyond `stdout_max` bytes of output, or after the deadline, kills it.
pub(super) fn run(command: &mut Command, input: Option<&[u8]>, stdout_max: usize) -> io::Result<ChildOutput> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut child = KilledOnDrop(child);
    let mut pipes = ChildPipes::open(&mut child.0, input.unwrap_or_default())?;
    let mut timer = DeadlineTimer::new();
    while pipes.is_open() {
        pipes.exchange(timer.next_wait()?)?;
        if pipes.stdout.bytes.len() > stdout_max {
            drop(child.0.kill());
            pipes.stdout.bytes.truncate(stdout_max);
            let status = child.0.wait()?;
            return Ok(pipes.output(status, true));
        }
        timer.count_wait();
    }
    let status = timer.wait_for(&mut child.0)?;
    Ok(pipes.output(status, false))
}

/// A process that is killed and reaped when the caller returns early.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// Counts the time that a process has run, without the time in which the runner itself was stopped.
struct DeadlineTimer {
    left: Duration,
    since: Instant,
}

impl DeadlineTimer {
    fn new() -> Self {
        Self { left: DEADLINE, since: Instant::now() }
    }

    fn count_wait(&mut self) {
        let now = Instant::now();
        self.left = self.left.saturating_sub(now.duration_since(self.since).min(2 * WAIT_MAX));
        self.since = now;
    }

    fn next_wait(&self) -> io::Result<Duration> {
        if self.left.is_zero() {
            let text = format!("git did not end within {} seconds and was killed", DEADLINE.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        Ok(self.left.min(WAIT_MAX))
    }

    /// Waits for a process that has closed its output: it ends at once, unless it is stuck.
    fn wait_for(&mut self, child: &mut Child) -> io::Result<ExitStatus> {
        let mut pause = Duration::from_micros(20);
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(pause.min(self.next_wait()?));
            pause = (pause * 2).min(Duration::from_millis(20));
            self.count_wait();
        }
    }
}

/// One output of a process: what was read, and its pipe until it is closed.
struct OutputPipe {
    pipe: Option<File>,
    bytes: Vec<u8>,
}

impl OutputPipe {
    fn new(pipe: Option<OwnedFd>) -> Self {
        Self { pipe: pipe.map(File::from), bytes: Vec::new() }
    }

    /// Reads once. Called when there is something to read, so it does not block.
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        self.bytes.reserve(BUFFER_BYTES);
        let count = match rustix::io::read(pipe, rustix::buffer::spare_capacity(&mut self.bytes)) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        if count == 0 {
            self.pipe = None;
        }
        Ok(())
    }
}

struct ChildPipes<'i> {
    stdin: Option<File>,
    /// What is left to write.
    input: &'i [u8],
    stdout: OutputPipe,
    stderr: OutputPipe,
}

impl<'i> ChildPipes<'i> {
    fn open(child: &mut Child, input: &'i [u8]) -> io::Result<Self> {
        let stdin = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        if let Some(stdin) = &stdin {
            rustix::io::ioctl_fionbio(stdin, true)?;
        }
        Ok(Self {
            stdin,
            input,
            stdout: OutputPipe::new(child.stdout.take().map(OwnedFd::from)),
            stderr: OutputPipe::new(child.stderr.take().map(OwnedFd::from)),
        })
    }

    fn is_open(&self) -> bool {
        self.stdin.is_some() || self.stdout.pipe.is_some() || self.stderr.pipe.is_some()
    }

    /// Waits until a pipe is ready, and reads or writes what is possible.
    fn exchange(&mut self, wait: Duration) -> io::Result<()> {
        let pipes = [
            (self.stdin.as_ref(), PollFlags::OUT),
            (self.stdout.pipe.as_ref(), PollFlags::IN),
            (self.stderr.pipe.as_ref(), PollFlags::IN),
        ];
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(pipes.len());
        let mut position = [None; 3];
        for (slot, (pipe, flags)) in position.iter_mut().zip(&pipes) {
            if let Some(pipe) = pipe {
                *slot = Some(polled.len());
                polled.push(PollFd::from_borrowed_fd(pipe.as_fd(), *flags));
            }
        }
        let timeout = Timespec::try_from(wait).map_err(io::Error::other)?;
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |slot: Option<usize>| {
            slot.and_then(|slot| polled.get(slot)).is_some_and(|polled| !polled.revents().is_empty())
        };
        let [stdin, stdout, stderr] = position.map(is_ready);
        if stdin {
            self.write_input()?;
        }
        if stdout {
            self.stdout.read()?;
        }
        if stderr {
            self.stderr.read()?;
        }
        Ok(())
    }

    /// Writes what the pipe takes. A process that closed its input has read as much as it wants.
    fn write_input(&mut self) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        if !self.input.is_empty() {
            match stdin.write(self.input) {
                Ok(count) => self.input = self.input.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.input = &[],
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }

    fn output(self, status: ExitStatus, is_truncated: bool) -> ChildOutput {
        ChildOutput { status, stdout: self.stdout.bytes, stderr: self.stderr.bytes, is_truncated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        command
    }

    #[test]
    fn input_and_both_outputs_are_exchanged_without_a_deadlock() {
        let input = b"0123456789abcdef".repeat(100_000);
        let output = run(&mut sh("tee /dev/stderr"), Some(&input), usize::MAX).unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, input);
        assert_eq!(output.stderr, input);
        let output = run(&mut sh("exec <&-; echo unread; exit 3"), Some(&input), usize::MAX).unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), b"unread\n".as_slice()));
    }

    #[test]
    fn endless_output_is_cut_and_its_process_killed() {
        let output = run(&mut sh("yes"), None, 1000).unwrap();
        assert!(output.is_truncated);
        assert_eq!(output.stdout.len(), 1000);
    }

    #[test]
    fn waits_longer_than_a_second_are_stops_of_the_runner_and_hardly_count() {
        let mut timer = DeadlineTimer::new();
        timer.since = Instant::now().checked_sub(Duration::from_secs(100)).unwrap();
        timer.count_wait();
        assert!(timer.left >= DEADLINE - 2 * WAIT_MAX);
        timer.left = Duration::ZERO;
        assert_eq!(timer.next_wait().unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_process_past_its_deadline_is_killed() {
        let mut child = KilledOnDrop(sh("exec sleep 1000").spawn().unwrap());
        let mut timer = DeadlineTimer::new();
        timer.left = Duration::from_millis(1);
        assert_eq!(timer.wait_for(&mut child.0).unwrap_err().kind(), ErrorKind::TimedOut);
        let pid = rustix::process::Pid::from_child(&child.0);
        drop(child);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}
