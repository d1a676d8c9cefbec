//! [`ProcessSpec`]: which program [`crate::run`] runs, how long, and where its output goes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A program to run. Build it with [`ProcessSpec::new`] and the methods that follow.
///
/// By default the environment and the standard input are empty, [`TimeLimits`] and [`StopPolicy`] have their own
/// defaults, and nothing observes the output.
pub struct ProcessSpec<'a> {
    pub(crate) argv: Vec<OsString>,
    pub(crate) working_dir: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) stdin: Option<PathBuf>,
    pub(crate) output: OutputTarget,
    pub(crate) jsonl_copy: Option<OutputLog>,
    pub(crate) limits: TimeLimits,
    pub(crate) stop_policy: StopPolicy,
    pub(crate) observers: ProcessObservers<'a>,
}

/// What the caller's own code sees of a program, and does to its output.
pub(crate) struct ProcessObservers<'a> {
    pub(crate) has_changed_files: &'a dyn Fn() -> bool,
    pub(crate) on_output: &'a dyn Fn(OutputSource, &[u8]),
    pub(crate) is_over_limit: &'a dyn Fn() -> bool,
    pub(crate) filter: Option<&'a dyn Fn() -> Box<dyn OutputFilter>>,
}

/// Changes the output of a program, one stream of it, before anything is written or observed.
pub trait OutputFilter {
    /// Takes a piece of output, and appends what can be passed on to `out`.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>);

    /// Appends the rest to `out`: the output has ended.
    fn finish(&mut self, out: &mut Vec<u8>);
}

impl<'a> ProcessSpec<'a> {
    /// `argv` starts with the absolute path of the program.
    pub fn new(argv: Vec<OsString>, working_dir: impl Into<PathBuf>, output: OutputTarget) -> Self {
        Self {
            argv,
            working_dir: working_dir.into(),
            env: Vec::new(),
            stdin: None,
            output,
            jsonl_copy: None,
            limits: TimeLimits::default(),
            stop_policy: StopPolicy::default(),
            observers: ProcessObservers {
                has_changed_files: &|| false,
                on_output: &|_, _| (),
                is_over_limit: &|| false,
                filter: None,
            },
        }
    }

    /// Sets the whole environment. The program does not inherit the caller's.
    #[must_use]
    pub fn env(mut self, env: Vec<(OsString, OsString)>) -> Self {
        self.env = env;
        self
    }

    #[must_use]
    pub fn stdin_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.stdin = Some(path.into());
        self
    }

    /// Also writes standard output (or both streams, if they are combined) to this file, as one JSON record per line with
    /// the time at which the line arrived.
    #[must_use]
    pub fn jsonl_copy(mut self, log: OutputLog) -> Self {
        self.jsonl_copy = Some(log);
        self
    }

    #[must_use]
    pub fn time_limits(mut self, limits: TimeLimits) -> Self {
        self.limits = limits;
        self
    }

    #[must_use]
    pub fn stop_policy(mut self, policy: StopPolicy) -> Self {
        self.stop_policy = policy;
        self
    }

    /// Sets the check that keeps a silent program from being stopped as idle: whether files changed since the last call.
    /// It runs only when the idle limit is reached.
    #[must_use]
    pub fn file_activity(mut self, has_changed_files: &'a dyn Fn() -> bool) -> Self {
        self.observers.has_changed_files = has_changed_files;
        self
    }

    /// Sets the check that stops the program: whether it has used too much of something that the caller measures. It runs
    /// whenever output has arrived.
    #[must_use]
    pub fn stop_when(mut self, is_over_limit: &'a dyn Fn() -> bool) -> Self {
        self.observers.is_over_limit = is_over_limit;
        self
    }

    /// Passes the output through a filter, one for each stream. Logs and the observer get only what it passes on.
    #[must_use]
    pub fn output_filter(mut self, filter: &'a dyn Fn() -> Box<dyn OutputFilter>) -> Self {
        self.observers.filter = Some(filter);
        self
    }

    /// Sets an observer that gets the output as it arrives, in addition to the logs.
    #[must_use]
    pub fn on_output(mut self, observer: &'a dyn Fn(OutputSource, &[u8])) -> Self {
        self.observers.on_output = observer;
        self
    }
}

/// Which stream some output was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSource {
    /// Standard output, or both streams if they are combined.
    Stdout,
    Stderr,
}

/// A file for a program's output. An existing file is replaced.
#[derive(Clone, Debug)]
pub struct OutputLog {
    pub path: PathBuf,
    /// Of more output than this, the log keeps the beginning and the end.
    pub bytes_max: u64,
}

/// Where standard output and standard error go.
#[derive(Clone, Debug)]
pub enum OutputTarget {
    /// Into one log, in the order in which the program wrote them.
    Combined(OutputLog),
    Separate {
        stdout: OutputLog,
        stderr: OutputLog,
    },
}

impl OutputTarget {
    /// One log for both streams.
    pub fn combined(path: impl Into<PathBuf>, bytes_max: u64) -> Self {
        Self::Combined(OutputLog { path: path.into(), bytes_max })
    }
}

/// How long a program may run.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// From the start of the program.
    pub wall: Duration,
    /// Without output, without changes to files, and without use of the CPU by any of its processes (where the system tells).
    /// The program is never stopped earlier than this, but up to twice as late if it was active meanwhile. Zero disables the
    /// limit.
    pub idle: Duration,
}

impl TimeLimits {
    /// A limit on the whole time, and none on idle time.
    pub fn wall(wall: Duration) -> Self {
        Self { wall, idle: Duration::ZERO }
    }
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self::wall(Duration::from_secs(600))
    }
}

/// How a program is stopped: a signal first, SIGKILL after the grace period.
#[derive(Clone, Copy, Debug)]
pub struct StopPolicy {
    pub signal: StopSignal,
    pub target: SignalTarget,
    pub grace: Duration,
    /// Whether the program is a sandbox around the actual program. A sandbox that gets a signal kills its content at once,
    /// so only the processes inside get it.
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

/// The signal that comes before SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopSignal {
    Interrupt,
    Terminate,
}

/// Which processes get the stop signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalTarget {
    /// Only the program: for one that stops its own child processes when it gets the signal.
    Program,
    /// The program's process group.
    Group,
}
