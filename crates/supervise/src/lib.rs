//! The one door to programs that are not trusted: an agent, the guard.
//!
//! A program runs under a small supervisor (this binary, started again), which lets nothing of it live on: not
//! when it ends, not when its time is up, not when the user stops it, and not when the runner is killed. Its input
//! is a file, its output goes into files of limited size, and what it does is a value ([`Ended`]), never an error.
//!
//! On Linux every descendant is found by descent. If the program kills its supervisor, everything falls to the
//! runner, which ends it then. What remains possible without a sandbox: a program that kills supervisor *and* runner
//! at once, one that gains another user's rights, and one that has a service of the system (a container daemon, a
//! service manager, cron) start something for it. Elsewhere (macOS) only the program's process group is ended.
//!
//! Time is the monotonic clock: it does not jump with the clock on the wall and stands still while the machine
//! sleeps, or the runner was stopped by Ctrl-Z.

mod bounded_log;
mod cancel;
mod error;
pub mod executables;
mod output_jsonl;
#[cfg_attr(not(target_os = "linux"), path = "process_tree_fallback.rs")]
mod process_tree;
mod protocol;
mod pump;
pub mod signals;
mod supervised;
mod supervisor;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};
use serde::{Deserialize, Serialize};

pub use bounded_log::ByteCounts;
pub use cancel::{CancelHandle, StopRequest};
pub use error::IoError;
pub use protocol::LeftoverProcesses;
pub use supervised::{SupervisorSlot, run};

/// The word after the program's name that makes this binary a supervisor.
const SUPERVISE: &str = "__supervise";

/// Whether this process was started as a supervisor. To be asked before anything else is done.
pub fn is_supervisor() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == SUPERVISE)
}

/// Runs this process as a supervisor.
pub fn supervise() -> ExitCode {
    supervisor::main()
}

/// A program about to be run.
pub struct ProcessSpec<'a> {
    /// The program, by its absolute path, and its arguments.
    pub argv: Vec<OsString>,
    /// Where it runs.
    pub working_dir: PathBuf,
    /// All variables that it sees.
    pub environment: Vec<(OsString, OsString)>,
    /// What it can read.
    pub input: ProcessInput,
    /// Where its output goes.
    pub output: OutputTarget,
    /// A copy of its standard output line by line, with times. Of both streams, if they go together.
    pub stream: Option<OutputLog>,
    /// How long it may run.
    pub limits: TimeLimits,
    /// How it is asked to end.
    pub stop_policy: StopPolicy,
    /// Whether files changed since this was last asked. Asked only when the program seems idle.
    pub has_changed_files: &'a dyn Fn() -> bool,
    /// Who hears what it writes, as it writes it.
    pub on_output: &'a dyn Fn(OutputSource, &[u8]),
}

/// Where something was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSource {
    /// Standard output, or both streams if they go together.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A program's standard input.
#[derive(Clone, Debug)]
pub enum ProcessInput {
    /// Nothing.
    Empty,
    /// A file, read by the program itself, when and if it likes.
    File(PathBuf),
}

/// A file that takes what a program writes.
#[derive(Clone, Debug)]
pub struct OutputLog {
    /// Where it is; what was there is overwritten.
    pub path: PathBuf,
    /// Its size at most. Of more, the beginning and the end are kept.
    pub bytes_max: u64,
}

/// Where standard output and standard error go.
#[derive(Clone, Debug)]
pub enum OutputTarget {
    /// Into one log, in the order in which they were written.
    Combined(OutputLog),
    /// Each into its own.
    Separate {
        /// Standard output.
        stdout: OutputLog,
        /// Standard error.
        stderr: OutputLog,
    },
}

/// How long a program may run.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// From its start.
    pub wall: Duration,
    /// Without output and without a change to files. It is never taken for idle earlier, but, if files changed
    /// meanwhile, up to twice as late. Zero means without limit.
    pub idle: Duration,
}

/// How a program is asked to end before it is killed.
#[derive(Clone, Copy, Debug)]
pub struct StopPolicy {
    /// By which signal.
    pub signal: StopSignal,
    /// Who gets it.
    pub target: SignalTarget,
    /// How long it may take then.
    pub grace: Duration,
    /// Whether the program is a sandbox around the one that is meant. A sandbox that is asked to end takes the other
    /// with it at once, so only what is inside is asked.
    pub is_sandboxed: bool,
}

impl Default for StopPolicy {
    fn default() -> Self {
        Self {
            signal: StopSignal::Terminate,
            target: SignalTarget::Group,
            grace: Duration::from_secs(5),
            is_sandboxed: false,
        }
    }
}

/// A signal that a program can catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopSignal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalTarget {
    /// The program alone: for one that ends its own commands when it is asked.
    Program,
    /// Its process group.
    Group,
}

/// How it went.
#[derive(Debug)]
pub struct ProcessResult {
    /// How the program ended.
    pub exit: ExitReason,
    /// From start to end, clean-up included.
    pub elapsed: Duration,
    /// What it left behind.
    pub leftovers: LeftoverProcesses,
    /// What it wrote to standard output, or to both streams if they go together.
    pub stdout: ByteCounts,
    /// What it wrote to standard error.
    pub stderr: ByteCounts,
    /// Why a log is not complete, if one could not be written.
    pub log_error: Option<IoError>,
}

/// How a program ended.
#[derive(Debug)]
pub enum ExitReason {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which the runner did not send.
    Signalled(i32),
    /// It never ran, for this reason.
    CouldNotStart(io::Error),
    /// Its time was up.
    TimedOut,
    /// Nothing happened for too long.
    Idle,
    /// It was stopped through [`Control`], or not even started.
    Stopped,
    /// Its supervisor died or did not answer any more. Everything that fell to the runner was ended.
    Lost,
}

/// Ends every process that has this variable with this value, and what descends from it.
///
/// For what a killed runner left behind when its supervisor was killed, too. The variable must name one session
/// only, such as the path of the file that it answers to.
pub fn kill_by_env_marker(name: &OsStr, value: &OsStr) -> LeftoverProcesses {
    process_tree::end_marked(name, value)
}

/// Waits until something is there, or time is up.
fn wait_until(watched: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<()> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(watched, left.as_ref()) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
