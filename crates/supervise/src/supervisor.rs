//! The small process between the runner and a program: it starts the program, watches it, and lets nothing of it
//! live on.
//!
//! It is the runner's own binary, started again with a hidden word. It stands in a session of its own, out of reach
//! of signals to the program's group, and orphans of the program fall to it. It ends everything when the program
//! ends, when time is up, when it is told to, and when the runner dies: then its socket closes. When nothing of a program
//! is left, it waits for the next: one program after the other, never two.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::protocol::{self, ExitReport, ProgramStatus, SpawnRequest, StopCause, Streams};
use crate::{SignalTarget, StopSignal, process_tree, wait_until};

/// What ends other programs and is none of this one's business: whoever means the runner signals the runner.
const SHRUGGED_OFF: [i32; 7] = [SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Runs this process as a supervisor, to its end.
pub(super) fn main() -> ExitCode {
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody is there to be told: its standard streams are the program's.
        Err(_) => ExitCode::FAILURE,
    }
}

fn supervise() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::process::setsid()?;
    process_tree::adopt_orphans()?;
    #[cfg(target_os = "linux")]
    rustix::thread::set_name(c"supervise")?;
    for signal in SHRUGGED_OFF {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let (deaths, bell) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGCHLD, bell)?;
    deaths.set_nonblocking(true)?;

    while let Some((order, streams)) = protocol::receive(&socket)? {
        let report = run(&order, streams, &socket, &deaths);
        protocol::answer(&report, &socket)?;
    }
    Ok(())
}

/// Runs a program to its end, and ends what it left.
fn run(
    order: &SpawnRequest,
    streams: Streams<OwnedFd>,
    socket: &UnixStream,
    deaths: &UnixStream,
) -> ExitReport {
    let child = match start(order, streams) {
        Ok(child) => child,
        Err(error) => return ExitReport::CouldNotStart(number_of(&error)),
    };
    let mut watch = ProgramWatch::new(order, child, socket, deaths);
    let status = watch.until_the_end();
    let leftovers = process_tree::end_all(child);
    let status = status.unwrap_or(ProgramStatus::Killed);
    ExitReport::Ended { status, cause: watch.cause, leftovers }
}

/// The system's number for an error. What the standard library refuses by itself is an invalid argument.
fn number_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error())
}

/// Starts the program in a group of its own.
fn start(order: &SpawnRequest, [stdout, stderr]: Streams<OwnedFd>) -> io::Result<Pid> {
    let (program, args) = order.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&order.folder)
        .stdin(File::open(&order.input)?)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

/// Why the watch is over.
enum WatchEnd {
    /// The program has ended.
    Ended(ProgramStatus),
    /// It has to, now.
    KillNow,
}

/// The watch over a program.
struct ProgramWatch<'a> {
    order: &'a SpawnRequest,
    child: Pid,
    socket: &'a UnixStream,
    /// Becomes readable when a child has died.
    deaths: &'a UnixStream,
    /// When time is up: for the program at first, then for its grace.
    until: Option<Instant>,
    /// Since when the program stands still, if it does.
    paused: Option<Instant>,
    /// Why the program was told to end, if it was.
    cause: Option<StopCause>,
}

impl<'a> ProgramWatch<'a> {
    fn new(order: &'a SpawnRequest, child: Pid, socket: &'a UnixStream, deaths: &'a UnixStream) -> Self {
        let until = Instant::now().checked_add(Duration::from_millis(order.wall_ms));
        Self { order, child, socket, deaths, until, paused: None, cause: None }
    }

    /// Watches until everything has to end; gives how the program did, if it did by itself.
    fn until_the_end(&mut self) -> Option<ProgramStatus> {
        loop {
            match self.look() {
                Ok(None) => {}
                Ok(Some(WatchEnd::Ended(status))) => return Some(status),
                // A watch that cannot go on would let the program do as it likes.
                Ok(Some(WatchEnd::KillNow)) | Err(_) => return None,
            }
        }
    }

    /// Waits until something happens, and sees to it.
    fn look(&mut self) -> io::Result<Option<WatchEnd>> {
        let readable = {
            let mut watched =
                [PollFd::new(self.socket, PollFlags::IN), PollFd::new(self.deaths, PollFlags::IN)];
            let until = if self.paused.is_some() { None } else { self.until };
            wait_until(&mut watched, until)?;
            watched.map(|one| !one.revents().is_empty())
        };
        let [is_told, is_death] = readable;
        if is_death && let Some(status) = self.reap() {
            return Ok(Some(WatchEnd::Ended(status)));
        }
        if is_told && self.listen()? {
            return Ok(Some(WatchEnd::KillNow));
        }
        if self.paused.is_none() && self.until.is_some_and(|until| Instant::now() >= until) {
            if self.cause.is_some() {
                return Ok(Some(WatchEnd::KillNow));
            }
            self.ask_to_end(StopCause::Deadline);
        }
        Ok(None)
    }

    /// Hears what the runner says; true if everything has to end now.
    fn listen(&mut self) -> io::Result<bool> {
        let mut words = [0; 16];
        let count = self.socket.read(&mut words)?;
        for word in words.iter().take(count) {
            match *word {
                protocol::STOP if self.cause.is_none() => self.ask_to_end(StopCause::Asked),
                protocol::STOP_IDLE if self.cause.is_none() => self.ask_to_end(StopCause::Idle),
                protocol::KILL => {
                    self.cause = self.cause.or(Some(StopCause::Asked));
                    return Ok(true);
                }
                protocol::PAUSE => self.pause(),
                protocol::CONTINUE => self.go_on(),
                _ => {}
            }
        }
        // Nothing at all means that the runner is dead.
        Ok(count == 0)
    }

    /// The polite way: the signal, and some time.
    fn ask_to_end(&mut self, cause: StopCause) {
        self.cause = Some(cause);
        self.until = Instant::now().checked_add(Duration::from_millis(self.order.grace_ms));
        let signal = match self.order.polite {
            StopSignal::Interrupt => Signal::INT,
            StopSignal::Terminate => Signal::TERM,
        };
        if self.order.is_wrapped {
            return process_tree::signal_inside(self.child, self.order.reach, signal);
        }
        // A program that is gone already needs no signal.
        let _ = match self.order.reach {
            SignalTarget::Program => rustix::process::kill_process(self.child, signal),
            SignalTarget::Group => rustix::process::kill_process_group(self.child, signal),
        };
    }

    fn pause(&mut self) {
        self.paused = self.paused.or_else(|| Some(Instant::now()));
        process_tree::pause_all();
    }

    fn go_on(&mut self) {
        let Some(since) = self.paused.take() else { return };
        self.until = self.until.and_then(|until| until.checked_add(since.elapsed()));
        process_tree::continue_all();
    }

    /// Takes note of all deaths, also of orphans; gives the program's own.
    fn reap(&mut self) -> Option<ProgramStatus> {
        let mut rung = [0; 64];
        while self.deaths.read(&mut rung).is_ok_and(|count| count == rung.len()) {}
        let mut own = None;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == self.child {
                own = Some(status_of(status));
            }
        }
        own
    }
}

fn status_of(status: WaitStatus) -> ProgramStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProgramStatus::Exited(code),
        (None, Some(signal)) => ProgramStatus::Signalled(signal),
        (None, None) => ProgramStatus::Killed,
    }
}
