//! The supervisor process between the runner and an untrusted program: starts the program, watches it, and kills everything
//! that descends from it. Its counterpart in the runner is client.rs.
//!
//! It has a session of its own, out of reach of signals to the program's process group, and it is a sub-reaper, so the
//! program's orphans are re-parented to it. It kills all descendants when the program ends, when the time limit is reached,
//! when the runner sends a command, and when the runner dies and the socket closes. Then it waits for the next request: one
//! program after the other, never two at once.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::protocol::{self, ExitReport, ProgramStatus, SpawnRequest, StopCause, Streams};
use crate::socket_scope::{self, ScopedThread};
use crate::spec::{SignalTarget, StopSignal};
use crate::{descriptors, poll_until, process_tree};

/// Signals the supervisor ignores; the runner handles them.
const IGNORED_SIGNALS: [i32; 7] = [SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

pub(super) fn main() -> ExitCode {
    match serve_requests() {
        Ok(()) => ExitCode::SUCCESS,
        // There is no stream to report the error on; the runner sees the socket close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve_requests() -> io::Result<()> {
    descriptors::close_inherited();
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::process::setsid()?;
    process_tree::adopt_orphans()?;
    #[cfg(target_os = "linux")]
    rustix::thread::set_name(c"supervise")?;
    for signal in IGNORED_SIGNALS {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let (sigchld_rx, sigchld_tx) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGCHLD, sigchld_tx)?;
    sigchld_rx.set_nonblocking(true)?;

    let mut scoped = None;
    while let Some((request, streams)) = protocol::receive_request(&socket)? {
        let report = run(&request, streams, &socket, &sigchld_rx, &mut scoped);
        protocol::send_report(&report, &socket)?;
    }
    Ok(())
}

/// Runs a program to its end and kills what it left running.
fn run(
    request: &SpawnRequest,
    streams: Streams<OwnedFd>,
    socket: &UnixStream,
    sigchld_rx: &UnixStream,
    scoped: &mut Option<ScopedThread>,
) -> ExitReport {
    let child = match spawn(request, streams, scoped) {
        Ok(child) => child,
        Err(error) => return ExitReport::CouldNotStart(errno_of(&error)),
    };
    let mut watch = ProgramWatch::new(request, child, socket, sigchld_rx);
    let status = watch.wait_for_end();
    let active_ms = watch.active_ms();
    let leftovers = process_tree::kill_descendants(child);
    let status = status.unwrap_or(ProgramStatus::Killed);
    ExitReport::Ended { status, cause: watch.cause, leftovers, active_ms }
}

/// Errors that the standard library raises itself, such as a NUL byte in an argument, become EINVAL.
fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error())
}

/// Starts the program in a process group of its own.
fn spawn(
    request: &SpawnRequest,
    [stdout, stderr]: Streams<OwnedFd>,
    scoped: &mut Option<ScopedThread>,
) -> io::Result<Pid> {
    let thread = socket_scope::launched(&request.argv).and_then(|program| {
        let thread = scoped.take().or_else(|| ScopedThread::start().ok())?;
        Some((&*scoped.insert(thread), program))
    });
    let argv = thread.map_or(request.argv.as_slice(), |(_, program)| program);
    let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let input = Input::open(request)?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&request.working_dir)
        .stdin(input.reader)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    let child = match thread {
        Some((thread, _)) => thread.spawn(command)?,
        // Without such a thread, the launcher reports why.
        None => command.spawn()?,
    };
    if let Some(copy) = input.copy {
        // Ends with the program: nothing reads the pipe then.
        thread::spawn(copy);
    }
    Ok(Pid::from_child(&child))
}

/// The standard input of a program.
struct Input {
    reader: Stdio,
    /// Writes the file into the pipe.
    copy: Option<Box<dyn FnOnce() + Send>>,
}

impl Input {
    /// A pipe with the content of the file. A program that had the file itself could open it again for writing, through
    /// `/proc/self/fd/0`, although it may not write to its path.
    fn open(request: &SpawnRequest) -> io::Result<Self> {
        let mut file = File::open(&request.stdin)?;
        if request.stdin == NO_INPUT {
            return Ok(Self { reader: file.into(), copy: None });
        }
        let (reader, mut writer) = io::pipe()?;
        let copy = move || drop(io::copy(&mut file, &mut writer));
        Ok(Self { reader: reader.into(), copy: Some(Box::new(copy)) })
    }
}

/// The file that is always empty.
const NO_INPUT: &str = "/dev/null";

/// Why the supervisor stops watching.
enum WatchEnd {
    Exited(ProgramStatus),
    KillNow,
}

/// One program while it runs.
struct ProgramWatch<'a> {
    request: &'a SpawnRequest,
    child: Pid,
    socket: &'a UnixStream,
    /// Becomes readable when a child has exited.
    sigchld_rx: &'a UnixStream,
    /// The end of the wall limit; after a stop signal, the end of the grace period.
    deadline: Option<Instant>,
    started: Instant,
    suspended_at: Option<Instant>,
    /// The time that the program was suspended so far.
    suspended: Duration,
    /// Why the program got a stop signal, if it did.
    cause: Option<StopCause>,
}

impl<'a> ProgramWatch<'a> {
    fn new(
        request: &'a SpawnRequest,
        child: Pid,
        socket: &'a UnixStream,
        sigchld_rx: &'a UnixStream,
    ) -> Self {
        let started = Instant::now();
        let deadline = started.checked_add(Duration::from_millis(request.wall_ms));
        Self {
            request,
            child,
            socket,
            sigchld_rx,
            deadline,
            started,
            suspended_at: None,
            suspended: Duration::ZERO,
            cause: None,
        }
    }

    /// How long the program has run, without the time in which it was suspended.
    fn active_ms(&self) -> u64 {
        let pending = self.suspended_at.map_or(Duration::ZERO, |since| since.elapsed());
        let active = self.started.elapsed().saturating_sub(self.suspended + pending);
        u64::try_from(active.as_millis()).unwrap_or(u64::MAX)
    }

    /// Watches until the program has exited or must be killed. `None` if it must be killed.
    fn wait_for_end(&mut self) -> Option<ProgramStatus> {
        loop {
            match self.handle_next_event() {
                Ok(None) => {}
                Ok(Some(WatchEnd::Exited(status))) => return Some(status),
                // Without a working watch the program would run unsupervised.
                Ok(Some(WatchEnd::KillNow)) | Err(_) => return None,
            }
        }
    }

    fn handle_next_event(&mut self) -> io::Result<Option<WatchEnd>> {
        let mut fds = [PollFd::new(self.socket, PollFlags::IN), PollFd::new(self.sigchld_rx, PollFlags::IN)];
        let deadline = if self.suspended_at.is_some() { None } else { self.deadline };
        poll_until(&mut fds, deadline)?;
        let [has_command, has_child_exit] = fds.map(|fd| !fd.revents().is_empty());
        if has_child_exit && let Some(status) = self.reap() {
            return Ok(Some(WatchEnd::Exited(status)));
        }
        if has_command && self.handle_commands()? {
            return Ok(Some(WatchEnd::KillNow));
        }
        if self.suspended_at.is_none() && self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            if self.cause.is_some() {
                return Ok(Some(WatchEnd::KillNow));
            }
            self.send_stop_signal(StopCause::Deadline);
        }
        Ok(None)
    }

    /// Carries out the runner's commands; true if everything must be killed now.
    fn handle_commands(&mut self) -> io::Result<bool> {
        let mut commands = [0; 16];
        let count = self.socket.read(&mut commands)?;
        for command in commands.iter().take(count) {
            match *command {
                protocol::STOP if self.cause.is_none() => self.send_stop_signal(StopCause::Requested),
                protocol::STOP_IDLE if self.cause.is_none() => self.send_stop_signal(StopCause::Idle),
                protocol::STOP_LIMIT if self.cause.is_none() => self.send_stop_signal(StopCause::Limit),
                protocol::KILL => {
                    self.cause = self.cause.or(Some(StopCause::Requested));
                    return Ok(true);
                }
                protocol::SUSPEND => self.suspend(),
                protocol::RESUME => self.resume(),
                _ => {}
            }
        }
        // A closed socket means that the runner is dead.
        Ok(count == 0)
    }

    /// Sends the stop signal and starts the grace period.
    fn send_stop_signal(&mut self, cause: StopCause) {
        self.cause = Some(cause);
        self.deadline = Instant::now().checked_add(Duration::from_millis(self.request.grace_ms));
        let signal = match self.request.stop_signal {
            StopSignal::Interrupt => Signal::INT,
            StopSignal::Terminate => Signal::TERM,
        };
        if self.request.is_sandboxed {
            return process_tree::signal_inside(self.child, self.request.stop_target, signal);
        }
        // Errors are ignored: the program may have exited already.
        let _ = match self.request.stop_target {
            SignalTarget::Program => rustix::process::kill_process(self.child, signal),
            SignalTarget::Group => rustix::process::kill_process_group(self.child, signal),
        };
    }

    fn suspend(&mut self) {
        self.suspended_at = self.suspended_at.or_else(|| Some(Instant::now()));
        process_tree::suspend_descendants();
    }

    fn resume(&mut self) {
        let Some(since) = self.suspended_at.take() else { return };
        let suspended = since.elapsed();
        self.suspended += suspended;
        self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(suspended));
        process_tree::resume_descendants();
    }

    /// Reaps all exited children, orphans included; returns the program's own status if it is among them.
    fn reap(&mut self) -> Option<ProgramStatus> {
        let mut bytes = [0; 64];
        while self.sigchld_rx.read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
        let mut own = None;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == self.child {
                own = Some(program_status(status));
            }
        }
        own
    }
}

fn program_status(status: WaitStatus) -> ProgramStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProgramStatus::Exited(code),
        (None, Some(signal)) => ProgramStatus::Signalled(signal),
        (None, None) => ProgramStatus::Killed,
    }
}
