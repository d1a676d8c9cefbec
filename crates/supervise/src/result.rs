//! [`ProcessResult`]: how a program ended, what it wrote and what it left running.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::bounded_log::ByteCounts;
use crate::error::IoError;
use crate::protocol::LeftoverProcesses;

/// The result of [`crate::run`].
#[derive(Debug)]
pub struct ProcessResult {
    pub exit: ExitReason,
    /// From start to end, including the time to kill leftover processes.
    pub elapsed: Duration,
    /// How long the program itself ran: without the time in which it was suspended, and without waiting for a runner that
    /// was stopped.
    pub active: Duration,
    /// Processes that were still running when the program had ended.
    pub leftovers: LeftoverProcesses,
    /// Standard output, or both streams if they are combined.
    pub stdout: ByteCounts,
    pub stderr: ByteCounts,
    /// Why a log is incomplete, if it could not be written.
    pub log_error: Option<IoError>,
}

/// How a program ended. `Display` gives a predicate for a sentence: "`just ci` *exited with code 3*".
#[derive(Debug)]
pub enum ExitReason {
    /// The program exited on its own.
    Exited(i32),
    /// A signal that the runner did not send killed the program.
    Signalled(i32),
    CouldNotStart(io::Error),
    /// The wall limit was reached.
    TimedOut,
    /// The idle limit was reached.
    Idle,
    /// The caller's own limit was reached.
    OverLimit,
    /// A [`crate::CancelHandle`] stopped it, or kept it from starting.
    Stopped,
    /// The supervisor died or stopped responding. The runner killed the processes that were re-parented to it.
    Lost,
}

impl ExitReason {
    /// Whether the program exited with code 0.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exited(0))
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => write!(f, "was killed by signal {signal}"),
            Self::CouldNotStart(error) => write!(f, "could not start: {error}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Idle => f.write_str("was idle for too long"),
            Self::OverLimit => f.write_str("used too much"),
            Self::Stopped => f.write_str("was stopped"),
            Self::Lost => f.write_str("was lost: its supervisor died"),
        }
    }
}
