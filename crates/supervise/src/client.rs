//! The runner's side of a supervised program: sends the request, forwards stop requests, enforces the idle limit, reads the
//! output and waits for the supervisor's report. The other side is supervisor.rs.

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
use crate::cancel::{self, CancelHandle, StopRequest};
use crate::error::IoError;
use crate::process_tree;
use crate::protocol::{self, ExitReport, LeftoverProcesses, ProgramStatus, SpawnRequest, StopCause};
use crate::pump::{PipeWriters, Pump};
use crate::result::{ExitReason, ProcessResult};
use crate::spec::ProcessSpec;

/// How long a supervisor may take to kill everything before the client treats it as dead.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a program to its end. When this returns, none of its processes is left.
///
/// Run only one program at a time: processes that are re-parented to this process when a supervisor dies are assumed to
/// belong to that supervisor.
pub fn run(
    spec: &ProcessSpec<'_>,
    cancel: &CancelHandle,
    slot: &SupervisorSlot,
) -> Result<ProcessResult, IoError> {
    let started = Instant::now();
    if cancel.request() != StopRequest::None {
        return Ok(stopped_before_start());
    }
    let request = spawn_request(spec)?;
    let (pump, writers) = Pump::open(spec, started)?;
    let mut process = SupervisedProcess::start(&request, &writers, pump, slot.0.take())?;
    drop(writers);
    cancel.begin_handling_suspend();
    let report = process.event_loop(spec, cancel);
    cancel.end_handling_suspend();
    let SupervisedProcess { supervisor, pump, .. } = process;
    let ProgramEnd { exit, leftovers, active } = match report {
        Some(report) => {
            slot.0.set(Some(supervisor));
            ProgramEnd::of_report(&report)
        }
        None => {
            drop(supervisor);
            let leftovers = process_tree::kill_orphans();
            ProgramEnd { exit: ExitReason::Lost, leftovers, active: started.elapsed() }
        }
    };
    let output = pump.finish(spec.observers.on_output);
    Ok(ProcessResult {
        exit,
        elapsed: started.elapsed(),
        active,
        leftovers,
        stdout: output.stdout,
        stderr: output.stderr,
        log_error: output.error,
    })
}

fn stopped_before_start() -> ProcessResult {
    ProcessResult {
        exit: ExitReason::Stopped,
        elapsed: Duration::ZERO,
        active: Duration::ZERO,
        leftovers: LeftoverProcesses::default(),
        stdout: ByteCounts::default(),
        stderr: ByteCounts::default(),
        log_error: None,
    }
}

/// Checks what the caller is responsible for first (folder and input file), so that a failed start is the program's fault.
fn spawn_request(spec: &ProcessSpec<'_>) -> Result<SpawnRequest, IoError> {
    let stdin = spec.stdin.as_deref().unwrap_or(Path::new("/dev/null"));
    File::open(stdin).map_err(IoError::wrap("open", stdin))?;
    fs::metadata(spec.working_dir.join(".")).map_err(IoError::wrap("enter", &spec.working_dir))?;
    Ok(SpawnRequest {
        argv: spec.argv.clone(),
        working_dir: absolute(&spec.working_dir)?.into(),
        env: spec.env.clone(),
        stdin: absolute(stdin)?.into(),
        wall_ms: whole_ms(spec.limits.wall),
        grace_ms: whole_ms(spec.stop_policy.grace),
        stop_signal: spec.stop_policy.signal,
        stop_target: spec.stop_policy.target,
        is_sandboxed: spec.stop_policy.is_sandboxed,
    })
}

fn absolute(path: &Path) -> Result<PathBuf, IoError> {
    std::path::absolute(path).map_err(IoError::wrap("find", path))
}

/// Keeps the last supervisor for the next program, because starting one costs a fork and an exec. The supervisor ends with
/// the slot.
#[derive(Default)]
pub struct SupervisorSlot(Cell<Option<SupervisorHandle>>);

/// A supervisor process, idle or with a program.
#[derive(Debug)]
struct SupervisorHandle {
    process: Child,
    socket: UnixStream,
}

impl SupervisorHandle {
    fn start() -> Result<Self, IoError> {
        let binary = own_binary()?;
        let wrap = || IoError::wrap::<io::Error>("start", &binary);
        process_tree::adopt_orphans().map_err(|errno| wrap()(errno.into()))?;
        let (socket, supervisor_socket) = UnixStream::pair().map_err(wrap())?;
        // Its name does not contain "runner": a `pkill runner` must leave the supervisor alive to clean up.
        let process = Command::new(&binary)
            .arg0("supervise")
            .arg(crate::SUPERVISE_ARG)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(supervisor_socket)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(wrap())?;
        Ok(Self { process, socket })
    }

    /// Whether it can run another program. It may have been killed, or stopped by a signal, since the last one.
    fn is_ready(&mut self) -> bool {
        let _ = rustix::process::kill_process(Pid::from_child(&self.process), Signal::CONT);
        matches!(self.process.try_wait(), Ok(None)) && self.socket.set_nonblocking(false).is_ok()
    }
}

impl Drop for SupervisorHandle {
    /// SIGKILL is safe: it is idle, or it hangs and `run` kills its program's processes afterwards.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A program that is running.
struct SupervisedProcess {
    supervisor: SupervisorHandle,
    /// The bytes of the report that have arrived.
    report: Vec<u8>,
    pump: Pump,
    /// When the client treats the supervisor as dead.
    report_deadline: Option<Instant>,
    /// The highest stop request that was sent to the supervisor.
    forwarded: StopRequest,
}

impl SupervisedProcess {
    /// Sends the request to the idle supervisor, or to a new one.
    fn start(
        request: &SpawnRequest,
        writers: &PipeWriters,
        pump: Pump,
        mut idle: Option<SupervisorHandle>,
    ) -> Result<Self, IoError> {
        let supervisor = match idle.take_if(SupervisorHandle::is_ready) {
            Some(supervisor) => supervisor,
            None => SupervisorHandle::start()?,
        };
        let limit = Duration::from_millis(request.wall_ms.saturating_add(request.grace_ms));
        let report_deadline =
            limit.checked_add(REPORT_TIMEOUT).and_then(|limit| Instant::now().checked_add(limit));
        // Errors are ignored: if the supervisor has died already, the event loop finds its socket closed.
        let streams = [writers.stdout.as_fd(), writers.stderr.as_fd()];
        let _ = protocol::send_request(request, streams, &supervisor.socket);
        let _ = supervisor.socket.set_nonblocking(true);
        Ok(Self { supervisor, report: Vec::new(), pump, report_deadline, forwarded: StopRequest::None })
    }

    /// Reads output, forwards stop requests and enforces the idle limit until the supervisor reports. `None` if the
    /// supervisor died or missed its deadline.
    fn event_loop(&mut self, spec: &ProcessSpec<'_>, cancel: &CancelHandle) -> Option<ExitReport> {
        let mut idle = IdleTimer::new(spec, Pid::from_child(&self.supervisor.process));
        let grace = spec.stop_policy.grace;
        let mut is_over_limit = false;
        loop {
            if cancel.take_suspend_request() {
                idle.extend(self.suspend());
            }
            let now = Instant::now();
            self.forward_stop(cancel.request(), grace, now);
            if idle.has_expired(now) {
                self.send_stop(protocol::STOP_IDLE, grace, now);
            }
            if self.report_deadline.is_some_and(|deadline| now >= deadline) {
                return None;
            }
            let deadline = idle.deadline.into_iter().chain(self.report_deadline).min();
            let others = [
                PollFd::new(&self.supervisor.socket, PollFlags::IN),
                PollFd::from_borrowed_fd(cancel.wake_fd(), PollFlags::IN),
            ];
            self.pump.wait(others, deadline).ok()?;
            cancel.drain();
            if self.pump.read(spec.observers.on_output) {
                idle.restart();
                if !is_over_limit && (spec.observers.is_over_limit)() {
                    is_over_limit = true;
                    self.send_stop(protocol::STOP_LIMIT, grace, Instant::now());
                }
            }
            match self.read_report() {
                SupervisorMessage::Incomplete => {}
                SupervisorMessage::Report(report) => return Some(report),
                SupervisorMessage::Closed => return None,
            }
        }
    }

    /// Suspends the program and then this process; returns for how long.
    fn suspend(&mut self) -> Duration {
        let since = Instant::now();
        let _ = self.supervisor.socket.write_all(&[protocol::SUSPEND]);
        cancel::suspend_self();
        let _ = self.supervisor.socket.write_all(&[protocol::RESUME]);
        let suspended = since.elapsed();
        self.report_deadline = self.report_deadline.and_then(|deadline| deadline.checked_add(suspended));
        suspended
    }

    /// Sends a stop request to the supervisor if it is higher than the last one.
    fn forward_stop(&mut self, request: StopRequest, grace: Duration, now: Instant) {
        if request <= self.forwarded {
            return;
        }
        self.forwarded = request;
        match request {
            StopRequest::None => {}
            StopRequest::Stop => self.send_stop(protocol::STOP, grace, now),
            StopRequest::Kill => self.send_stop(protocol::KILL, Duration::ZERO, now),
        }
    }

    /// Sends a command that ends the program, and shortens the deadline for the report accordingly.
    fn send_stop(&mut self, command: u8, grace: Duration, now: Instant) {
        let _ = self.supervisor.socket.write_all(&[command]);
        let deadline = grace.checked_add(REPORT_TIMEOUT).and_then(|limit| now.checked_add(limit));
        self.report_deadline = self.report_deadline.into_iter().chain(deadline).min();
    }

    fn read_report(&mut self) -> SupervisorMessage {
        let mut bytes = [0; 512];
        match self.supervisor.socket.read(&mut bytes) {
            Ok(0) => SupervisorMessage::Closed,
            Ok(count) => {
                self.report.extend(bytes.iter().take(count));
                protocol::parse_report(&self.report)
                    .map_or(SupervisorMessage::Incomplete, SupervisorMessage::Report)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                SupervisorMessage::Incomplete
            }
            Err(_) => SupervisorMessage::Closed,
        }
    }
}

/// What one read from the supervisor's socket gave.
enum SupervisorMessage {
    Incomplete,
    Report(ExitReport),
    /// The supervisor is dead.
    Closed,
}

/// How a program ended, as its supervisor reported it.
struct ProgramEnd {
    exit: ExitReason,
    leftovers: LeftoverProcesses,
    active: Duration,
}

impl ProgramEnd {
    fn of_report(report: &ExitReport) -> Self {
        match report {
            ExitReport::CouldNotStart(errno) => Self {
                exit: ExitReason::CouldNotStart(io::Error::from_raw_os_error(*errno)),
                leftovers: LeftoverProcesses::default(),
                active: Duration::ZERO,
            },
            ExitReport::Ended { status, cause, leftovers, active_ms } => Self {
                exit: exit_reason(*status, *cause),
                leftovers: *leftovers,
                active: Duration::from_millis(*active_ms),
            },
        }
    }
}

fn exit_reason(status: ProgramStatus, cause: Option<StopCause>) -> ExitReason {
    match (cause, status) {
        (Some(StopCause::Deadline), _) => ExitReason::TimedOut,
        (Some(StopCause::Idle), _) => ExitReason::Idle,
        (Some(StopCause::Limit), _) => ExitReason::OverLimit,
        (Some(StopCause::Requested), _) => ExitReason::Stopped,
        (None, ProgramStatus::Exited(code)) => ExitReason::Exited(code),
        (None, ProgramStatus::Signalled(signal)) => ExitReason::Signalled(signal),
        // The supervisor gave up because a system call of its own failed.
        (None, ProgramStatus::Killed) => ExitReason::Lost,
    }
}

/// A program is busy if its processes used at least this share of the time, in percent of one CPU. A program that only waits
/// for a connection or a timer stays far below.
const BUSY_PERCENT: u32 = 5;

/// The CPU time of a program's processes since the last look.
struct CpuMeter {
    supervisor: Pid,
    since: Instant,
    used: Duration,
}

impl CpuMeter {
    fn new(supervisor: Pid) -> Self {
        let used = process_tree::cpu_time_below(supervisor).unwrap_or_default();
        Self { supervisor, since: Instant::now(), used }
    }

    /// Whether the processes were busy since the last look. Never where their CPU time is unknown.
    fn was_busy(&mut self, now: Instant) -> bool {
        let Some(used) = process_tree::cpu_time_below(self.supervisor) else { return false };
        let more = used.saturating_sub(self.used);
        let is_busy = more * 100 >= now.saturating_duration_since(self.since) * BUSY_PERCENT;
        (self.since, self.used) = (now, used);
        is_busy && !more.is_zero()
    }
}

/// The limit on time without output, without changed files and without use of the CPU.
struct IdleTimer<'a> {
    limit: Duration,
    /// `None` if there is no limit, or it has expired.
    deadline: Option<Instant>,
    has_changed_files: &'a dyn Fn() -> bool,
    cpu: CpuMeter,
}

impl<'a> IdleTimer<'a> {
    fn new(spec: &ProcessSpec<'a>, supervisor: Pid) -> Self {
        let limit = spec.limits.idle;
        let deadline = if limit.is_zero() { None } else { Instant::now().checked_add(limit) };
        Self {
            limit,
            deadline,
            has_changed_files: spec.observers.has_changed_files,
            cpu: CpuMeter::new(supervisor),
        }
    }

    fn restart(&mut self) {
        if self.deadline.is_some() {
            let now = Instant::now();
            self.deadline = now.checked_add(self.limit);
            // What was used before this output says nothing about the time after it. Looking takes a while, so not every time.
            if now.saturating_duration_since(self.cpu.since) > self.limit / 10 {
                self.cpu.was_busy(now);
            }
        }
    }

    /// Moves the deadline by time that does not count.
    fn extend(&mut self, suspended: Duration) {
        self.deadline = self.deadline.and_then(|deadline| deadline.checked_add(suspended));
        self.cpu.since = self.cpu.since.checked_add(suspended).unwrap_or(self.cpu.since);
    }

    /// Whether the limit has been reached. True only once.
    fn has_expired(&mut self, now: Instant) -> bool {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return false;
        }
        let has_changed_files = (self.has_changed_files)();
        if self.cpu.was_busy(now) || has_changed_files {
            self.restart();
            return false;
        }
        self.deadline = None;
        true
    }
}

/// This program, even if its file has been replaced since it was started.
#[cfg(target_os = "linux")]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
fn own_binary() -> Result<PathBuf, IoError> {
    Ok(PathBuf::from("/proc/self/exe"))
}

#[cfg(not(target_os = "linux"))]
fn own_binary() -> Result<PathBuf, IoError> {
    std::env::current_exe().map_err(IoError::wrap("find", "runner"))
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
