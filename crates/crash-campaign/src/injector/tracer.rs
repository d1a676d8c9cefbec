//! The tracer: follows every process of the tree and applies the fault at the chosen call.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::call_table::{CallClass, TracedCall};
use super::tracee::StoppedCall;
use super::{Fault, traced_child};

/// The names of the programs whose calls count.
const COUNTED_PROGRAMS: [&str; 2] = ["runner", "git"];

/// A counted call.
#[derive(Clone, Debug)]
pub(crate) struct CallRecord {
    pub(crate) program: String,
    pub(crate) name: &'static str,
    pub(crate) paths: Vec<PathBuf>,
    /// Whether the runner was the only process, but for readers of objects: then a kill of the runner is a kill of everything.
    pub(crate) is_alone: bool,
}

/// Sees every counted call and its number while the process is stopped.
pub(crate) type CallObserver<'a> = &'a mut dyn FnMut(usize, &CallRecord);

/// Which calls count, and the fault at one of them.
pub(crate) struct Injection<'a> {
    pub(crate) class: CallClass,
    /// Only calls on files below this folder count.
    pub(crate) root: &'a Path,
    /// The call's number, from 1.
    pub(crate) at: usize,
    /// Without a fault, calls are only counted.
    pub(crate) fault: Option<Fault>,
    /// Called before every counted call, while its process is stopped.
    pub(crate) observer: Option<CallObserver<'a>>,
}

#[derive(Debug, Default)]
pub(crate) struct TraceOutcome {
    pub(crate) calls: Vec<CallRecord>,
    /// None if a signal ended the runner.
    pub(crate) exit_code: Option<i32>,
    pub(crate) was_injected: bool,
    /// The exit code of the command of [`Fault::HoldCaller`].
    pub(crate) hook_code: Option<i32>,
}

struct Tracer<'a> {
    injection: Injection<'a>,
    runner: Pid,
    tracees: BTreeSet<Pid>,
    held: Option<HeldProcess>,
    outcome: TraceOutcome,
    /// What the command of [`Fault::HoldCaller`] runs with.
    environment: &'a Command,
}

/// A process that is stopped until a command has ended.
struct HeldProcess {
    process: Pid,
    hook: Pid,
}

/// Runs a command to its end and injects the fault. Standard output and error are discarded.
pub(crate) fn trace<'a>(command: &'a Command, injection: Injection<'a>) -> TraceOutcome {
    let mut traced = traced_child::traced_command(command, injection.class);
    traced.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let runner = spawn(&mut traced);
    let stopped = waitpid(runner, None).expect("a traced process");
    assert!(matches!(stopped, WaitStatus::Stopped(..)), "the traced process did not start: {stopped:?}");
    let options = Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(runner, options).expect("ptrace options");
    ptrace::cont(runner, None).expect("a stopped process");
    let mut tracer = Tracer {
        injection,
        runner,
        tracees: BTreeSet::from([runner]),
        held: None,
        outcome: TraceOutcome::default(),
        environment: command,
    };
    tracer.run();
    tracer.outcome
}

impl Tracer<'_> {
    /// Handles events until no process is left.
    fn run(&mut self) {
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::__WALL)) {
                Ok(status) => self.handle(status),
                Err(Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    }

    fn handle(&mut self, status: WaitStatus) {
        match status {
            WaitStatus::Exited(process, code) => self.remove(process, Some(code)),
            WaitStatus::Signaled(process, _, _) => self.remove(process, None),
            WaitStatus::PtraceEvent(process, _, event) => {
                self.tracees.insert(process);
                if event == nix::libc::PTRACE_EVENT_SECCOMP && self.handle_call(process) == CallAction::Hold {
                    return;
                }
                resume(process, None);
            }
            WaitStatus::Stopped(process, signal) => {
                // A new process stops with SIGSTOP before its first instruction.
                self.tracees.insert(process);
                let is_delivered = !matches!(signal, Signal::SIGSTOP | Signal::SIGTRAP);
                resume(process, is_delivered.then_some(signal));
            }
            WaitStatus::PtraceSyscall(process) => resume(process, None),
            WaitStatus::Continued(_) | WaitStatus::StillAlive => {}
        }
    }

    fn remove(&mut self, process: Pid, code: Option<i32>) {
        self.tracees.remove(&process);
        if process == self.runner {
            self.outcome.exit_code = code;
        }
        if let Some(held) = self.held.take_if(|held| held.hook == process) {
            self.outcome.hook_code = code;
            resume(held.process, None);
        }
    }

    fn handle_call(&mut self, process: Pid) -> CallAction {
        let Ok(stopped) = StoppedCall::read(process) else { return CallAction::Resume };
        let class = self.injection.class;
        let Some(call) = class.calls().find(|call| call.number == stopped.number()) else {
            return CallAction::Resume;
        };
        let Some(record) = self.count(&stopped, call) else { return CallAction::Resume };
        let number = self.outcome.calls.len() + 1;
        if let Some(observer) = &mut self.injection.observer {
            observer(number, &record);
        }
        self.outcome.calls.push(record);
        let is_later =
            matches!(self.injection.fault, Some(Fault::FailAlways(_))) && number > self.injection.at;
        if number == self.injection.at || is_later {
            self.inject(process, &stopped)
        } else {
            CallAction::Resume
        }
    }

    /// The record of a call that counts.
    fn count(&self, stopped: &StoppedCall, call: &TracedCall) -> Option<CallRecord> {
        let paths = stopped.paths(call, self.injection.class)?;
        let is_inside = paths.is_empty() || paths.iter().any(|path| path.starts_with(self.injection.root));
        if !is_inside {
            return None;
        }
        let program = stopped.program();
        let is_counted = COUNTED_PROGRAMS.contains(&program.as_str());
        is_counted.then_some(CallRecord { program, name: call.name, paths, is_alone: self.is_alone() })
    }

    /// Whether every traced process is a thread of the runner or only reads. Only counted while there is no fault to inject.
    fn is_alone(&self) -> bool {
        let folder = format!("/proc/{}/task", self.runner);
        let is_thread = |process: &Pid| Path::new(&folder).join(process.to_string()).exists();
        self.injection.fault.is_none()
            && self.tracees.iter().all(|process| is_thread(process) || is_object_reader(*process))
    }

    fn inject(&mut self, process: Pid, stopped: &StoppedCall) -> CallAction {
        let Some(fault) = self.injection.fault.clone() else { return CallAction::Resume };
        self.outcome.was_injected = true;
        match fault {
            Fault::KillAll => self.tracees.iter().for_each(|process| send_kill(*process)),
            Fault::KillRunner => send_kill(self.runner),
            Fault::FailOnce(errno) | Fault::FailAlways(errno) => {
                // The process may have been killed meanwhile.
                let _ = stopped.fail(errno);
            }
            Fault::HoldCaller(hook) => {
                send_kill(self.runner);
                let hook = self.start_hook(&hook);
                self.held = Some(HeldProcess { process, hook });
                return CallAction::Hold;
            }
        }
        CallAction::Resume
    }

    fn start_hook(&self, hook: &[String]) -> Pid {
        let mut command = Command::new(self.environment.get_program());
        command.args(hook).env_clear();
        for (name, value) in self.environment.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.current_dir(self.environment.get_current_dir().unwrap_or(Path::new("/")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        spawn(&mut command)
    }
}

/// Whether a process is a `git cat-file`, which changes no file whatever happens to the runner. A new process has the command
/// line of the runner until it executes its own program.
fn is_object_reader(process: Pid) -> bool {
    let program = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    program.ends_with("git") && line.split(|byte| *byte == 0).any(|word| word == b"cat-file")
}

#[expect(clippy::zombie_processes, reason = "the tracer waits for every process")]
fn spawn(command: &mut Command) -> Pid {
    let child = command.spawn().expect("a process");
    Pid::from_raw(child.id().cast_signed())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallAction {
    Resume,
    Hold,
}

/// Lets a stopped process continue. It may have been killed meanwhile, which its next event reports.
fn resume(process: Pid, signal: Option<Signal>) {
    let _ = ptrace::cont(process, signal);
}

fn send_kill(process: Pid) {
    let _ = kill(process, Signal::SIGKILL);
}
