//! The runner's side of a program that runs: the supervisor, the wishes, the idle limit, the output.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal};

use crate::bounded_log::ByteCounts;
use crate::error::IoError;
use crate::protocol::{self, ExitReport, LeftoverProcesses, ProgramStatus, SpawnRequest, StopCause};
use crate::pump::{PipeWriters, Pump};
use crate::{
    CancelHandle, ExitReason, ProcessInput, ProcessResult, ProcessSpec, StopRequest, cancel, process_tree,
};

/// How long a supervisor may take to end everything before it is taken for dead.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Runs a program to its end. Afterwards nothing of it is left.
///
/// One program at a time: what falls to this process when a supervisor dies is taken for that supervisor's.
pub fn run(
    launch: &ProcessSpec<'_>,
    control: &CancelHandle,
    supervision: &SupervisorSlot,
) -> Result<ProcessResult, IoError> {
    let started = Instant::now();
    if control.request() != StopRequest::None {
        return Ok(never_ran());
    }
    let order = order_of(launch)?;
    let (pump, writers) = Pump::open(&launch.output, launch.stream.as_ref(), started)?;
    let mut session = SupervisedProcess::begin(&order, &writers, pump, supervision.0.take())?;
    drop(writers);
    control.attend_pauses();
    let report = session.attend(launch, control);
    control.leave_pauses();
    let SupervisedProcess { supervisor, pump, .. } = session;
    let (how, leftovers) = match report {
        Some(report) => {
            supervision.0.set(Some(supervisor));
            told(&report)
        }
        None => {
            drop(supervisor);
            (ExitReason::Lost, process_tree::end_foreign_sessions())
        }
    };
    let pumped = pump.finish(launch.on_output);
    Ok(ProcessResult {
        exit: how,
        elapsed: started.elapsed(),
        leftovers,
        stdout: pumped.stdout,
        stderr: pumped.stderr,
        log_error: pumped.fault,
    })
}

fn never_ran() -> ProcessResult {
    ProcessResult {
        exit: ExitReason::Stopped,
        elapsed: Duration::ZERO,
        leftovers: LeftoverProcesses::default(),
        stdout: ByteCounts::default(),
        stderr: ByteCounts::default(),
        log_error: None,
    }
}

/// The order, after a check of what is the caller's business, so that a failed start is the program's.
fn order_of(launch: &ProcessSpec<'_>) -> Result<SpawnRequest, IoError> {
    let input = match &launch.input {
        ProcessInput::Empty => Path::new("/dev/null"),
        ProcessInput::File(path) => path,
    };
    let absolute = |path: &Path| std::path::absolute(path).map_err(IoError::wrap("find", path));
    File::open(input).map_err(IoError::wrap("open", input))?;
    fs::metadata(launch.working_dir.join(".")).map_err(IoError::wrap("enter", &launch.working_dir))?;
    Ok(SpawnRequest {
        argv: launch.argv.clone(),
        folder: absolute(&launch.working_dir)?.into(),
        environment: launch.environment.clone(),
        input: absolute(input)?.into(),
        wall_ms: whole_ms(launch.limits.wall),
        grace_ms: whole_ms(launch.stop_policy.grace),
        polite: launch.stop_policy.signal,
        reach: launch.stop_policy.target,
        is_wrapped: launch.stop_policy.is_sandboxed,
    })
}

/// What programs are run under, one after the other: the supervisor of the last waits for the next. It ends with this.
#[derive(Default)]
pub struct SupervisorSlot(Cell<Option<SupervisorHandle>>);

/// A supervisor, with or without a program.
#[derive(Debug)]
struct SupervisorHandle {
    process: Child,
    socket: UnixStream,
}

impl SupervisorHandle {
    /// Starts one.
    fn start() -> Result<Self, IoError> {
        let binary = own_binary()?;
        let fail = || IoError::wrap::<io::Error>("start", &binary);
        process_tree::adopt_orphans().map_err(|errno| fail()(errno.into()))?;
        let (socket, other) = UnixStream::pair().map_err(fail())?;
        // Its name does not hold the runner's: who kills that by name leaves the supervisor to clean up.
        let process = Command::new(&binary)
            .arg0("supervise")
            .arg(super::SUPERVISE)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(fail())?;
        Ok(Self { process, socket })
    }

    /// Whether it can be given another program. Someone may have ended it, or stopped it, meanwhile.
    fn is_ready(&mut self) -> bool {
        let _ = rustix::process::kill_process(Pid::from_child(&self.process), Signal::CONT);
        matches!(self.process.try_wait(), Ok(None)) && self.socket.set_nonblocking(false).is_ok()
    }
}

impl Drop for SupervisorHandle {
    /// It has nothing left to do; one that does not end by itself is stopped by someone, or stuck.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program under way.
struct SupervisedProcess {
    supervisor: SupervisorHandle,
    answer: Vec<u8>,
    pump: Pump,
    /// When the supervisor must have answered.
    overdue: Option<Instant>,
    wished: StopRequest,
}

impl SupervisedProcess {
    /// Gives a supervisor its order: the one that waits, or a new one.
    fn begin(
        order: &SpawnRequest,
        writers: &PipeWriters,
        pump: Pump,
        waiting: Option<SupervisorHandle>,
    ) -> Result<Self, IoError> {
        let mut waiting = waiting;
        let supervisor = match waiting.take_if(SupervisorHandle::is_ready) {
            Some(waiting) => waiting,
            None => SupervisorHandle::start()?,
        };
        let limit = Duration::from_millis(order.wall_ms.saturating_add(order.grace_ms));
        let overdue = limit.checked_add(ANSWER_WITHIN).and_then(|limit| Instant::now().checked_add(limit));
        // A supervisor that dies this early is found dead by the watch that follows.
        let streams = [writers.stdout.as_fd(), writers.stderr.as_fd()];
        let _ = protocol::send(order, streams, &supervisor.socket);
        let _ = supervisor.socket.set_nonblocking(true);
        Ok(Self { supervisor, answer: Vec::new(), pump, overdue, wished: StopRequest::None })
    }

    /// Reads the program's output, passes wishes on and watches for idleness, until the supervisor has answered.
    /// None if it died, or is overdue.
    fn attend(&mut self, launch: &ProcessSpec<'_>, control: &CancelHandle) -> Option<ExitReport> {
        let mut idle = IdleTimer::new(launch);
        loop {
            if control.is_pause_wanted() {
                idle.delay(self.pause());
            }
            let now = Instant::now();
            self.pass_on(control.request(), launch.stop_policy.grace, now);
            if idle.is_over(now) {
                self.tell(protocol::STOP_IDLE, launch.stop_policy.grace, now);
            }
            if self.overdue.is_some_and(|overdue| now >= overdue) {
                return None;
            }
            let until = idle.until.into_iter().chain(self.overdue).min();
            let others = [
                PollFd::new(&self.supervisor.socket, PollFlags::IN),
                PollFd::from_borrowed_fd(control.ear(), PollFlags::IN),
            ];
            self.pump.wait(others, until).ok()?;
            control.hear();
            if self.pump.read(launch.on_output) {
                idle.restart();
            }
            match self.listen() {
                SupervisorMessage::Nothing => {}
                SupervisorMessage::Answer(report) => return Some(report),
                SupervisorMessage::Death => return None,
            }
        }
    }

    /// Stands still, and the program with it; says for how long it did.
    fn pause(&mut self) -> Duration {
        let since = Instant::now();
        let _ = self.supervisor.socket.write_all(&[protocol::PAUSE]);
        cancel::stand_still();
        let _ = self.supervisor.socket.write_all(&[protocol::CONTINUE]);
        let paused = since.elapsed();
        self.overdue = self.overdue.and_then(|overdue| overdue.checked_add(paused));
        paused
    }

    /// Passes a new wish on, once.
    fn pass_on(&mut self, wish: StopRequest, grace: Duration, now: Instant) {
        if wish <= self.wished {
            return;
        }
        self.wished = wish;
        match wish {
            StopRequest::None => {}
            StopRequest::Stop => self.tell(protocol::STOP, grace, now),
            StopRequest::Kill => self.tell(protocol::KILL, Duration::ZERO, now),
        }
    }

    /// Tells the supervisor to end the program, and expects it to have done so.
    fn tell(&mut self, word: u8, grace: Duration, now: Instant) {
        let _ = self.supervisor.socket.write_all(&[word]);
        let by = grace.checked_add(ANSWER_WITHIN).and_then(|limit| now.checked_add(limit));
        self.overdue = self.overdue.into_iter().chain(by).min();
    }

    fn listen(&mut self) -> SupervisorMessage {
        let mut bytes = [0; 512];
        match self.supervisor.socket.read(&mut bytes) {
            Ok(0) => SupervisorMessage::Death,
            Ok(count) => {
                self.answer.extend(bytes.iter().take(count));
                protocol::understood(&self.answer)
                    .map_or(SupervisorMessage::Nothing, SupervisorMessage::Answer)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                SupervisorMessage::Nothing
            }
            Err(_) => SupervisorMessage::Death,
        }
    }
}

/// What a supervisor's report means.
fn told(report: &ExitReport) -> (ExitReason, LeftoverProcesses) {
    match report {
        ExitReport::CouldNotStart(errno) => {
            (ExitReason::CouldNotStart(io::Error::from_raw_os_error(*errno)), LeftoverProcesses::default())
        }
        ExitReport::Ended { status, cause, leftovers } => (how(*status, *cause), *leftovers),
    }
}

fn how(status: ProgramStatus, cause: Option<StopCause>) -> ExitReason {
    match (cause, status) {
        (Some(StopCause::Deadline), _) => ExitReason::TimedOut,
        (Some(StopCause::Idle), _) => ExitReason::Idle,
        (Some(StopCause::Asked), _) => ExitReason::Stopped,
        (None, ProgramStatus::Exited(code)) => ExitReason::Exited(code),
        (None, ProgramStatus::Signalled(signal)) => ExitReason::Signalled(signal),
        // The supervisor could not watch any longer.
        (None, ProgramStatus::Killed) => ExitReason::Lost,
    }
}

/// What came from the supervisor.
enum SupervisorMessage {
    Nothing,
    Answer(ExitReport),
    Death,
}

/// The limit on doing nothing.
struct IdleTimer<'a> {
    limit: Duration,
    /// When it is reached; none when it is off, or has been reached.
    until: Option<Instant>,
    has_changed_files: &'a dyn Fn() -> bool,
}

impl<'a> IdleTimer<'a> {
    fn new(launch: &ProcessSpec<'a>) -> Self {
        let mut idle =
            Self { limit: launch.limits.idle, until: None, has_changed_files: launch.has_changed_files };
        if !idle.limit.is_zero() {
            idle.until = Instant::now().checked_add(idle.limit);
        }
        idle
    }

    /// Something happened.
    fn restart(&mut self) {
        if self.until.is_some() {
            self.until = Instant::now().checked_add(self.limit);
        }
    }

    /// Time passed that does not count.
    fn delay(&mut self, paused: Duration) {
        self.until = self.until.and_then(|until| until.checked_add(paused));
    }

    /// Whether nothing happened for too long. True only once.
    fn is_over(&mut self, now: Instant) -> bool {
        if self.until.is_none_or(|until| now < until) {
            return false;
        }
        if (self.has_changed_files)() {
            self.restart();
            return false;
        }
        self.until = None;
        true
    }
}

/// This very program, also after its file was replaced.
#[cfg(target_os = "linux")]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn own_binary() -> Result<PathBuf, IoError> {
    Ok(PathBuf::from("/proc/self/exe"))
}

/// This program's file.
#[cfg(not(target_os = "linux"))]
fn own_binary() -> Result<PathBuf, IoError> {
    std::env::current_exe().map_err(IoError::wrap("find", "runner"))
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
