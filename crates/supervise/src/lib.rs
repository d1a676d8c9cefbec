//! Runs untrusted programs (agents, guards, hooks) and leaves no process of theirs behind.
//!
//! [`run`] does not start the program itself. It starts a *supervisor*, which is this same binary executed again with a
//! hidden argument ([`is_supervisor`]), and sends it a request over a socket:
//!
//! ```text
//!   runner (client.rs) ◀──socket──▶ supervisor (supervisor.rs) ──▶ program ──▶ its descendants
//!        ▲                                                            │
//!        └──────────── pipes, read by pump.rs into files ─────────────┘
//! ```
//!
//! The program reads a file as its standard input, and its output goes into files of bounded size. Whatever the program
//! does is a value, [`ProcessResult`]. `Err` means that the caller's own preparation failed and nothing ran.
//!
//! # What it guarantees (on Linux)
//!
//! * When [`run`] returns, every process that descends from the program is dead, whether the program exited, timed out, was
//!   stopped or crashed. Processes that could not be killed are counted in [`LeftoverProcesses::alive`]. New sessions,
//!   process groups, double forks and `nohup` do not help a process to escape: the supervisor is a sub-reaper and finds
//!   descendants through `/proc`.
//! * If the runner dies, even by SIGKILL, the supervisor's socket closes and the supervisor kills everything.
//! * If the program kills its supervisor, its processes are re-parented to the runner, which is a sub-reaper too and kills
//!   them; the result is [`ExitReason::Lost`].
//! * `run` waits for the program, not for its pipes: a surviving grandchild that holds them open does not block it.
//! * The program has no descriptor besides its standard streams, whatever this process inherited.
//! * Memory use does not depend on how much the program writes, and a log that cannot be written does not block it.
//!
//! # What it cannot do
//!
//! Without a sandbox, a program can escape by killing supervisor *and* runner at the same moment
//! ([`kill_by_env_marker`] finds such processes later), by gaining another user's rights, or by asking a system service (a
//! container daemon, a service manager, cron) to start a process for it. On other systems (macOS) only the program's
//! process group is killed.
//!
//! # Time
//!
//! All limits use the monotonic clock. It does not jump with the wall clock, and it does not advance while the machine
//! sleeps. Time during which the user suspended the runner with Ctrl-Z does not count.

mod bounded_log;
mod cancel;
mod client;
mod descriptors;
mod error;
pub mod executables;
mod output_jsonl;
pub mod parent_death;
#[cfg_attr(not(target_os = "linux"), path = "process_tree_fallback.rs")]
mod process_tree;
mod protocol;
mod pump;
mod result;
pub mod signals;
pub mod socket_scope;
mod spec;
mod supervisor;

use std::ffi::OsStr;
use std::io;
use std::process::ExitCode;
use std::time::Instant;

use rustix::event::{PollFd, Timespec};

pub use bounded_log::ByteCounts;
pub use cancel::{CancelHandle, StopRequest};
pub use client::{SupervisorSlot, run};
pub use error::IoError;
pub use protocol::LeftoverProcesses;
pub use result::{ExitReason, ProcessResult};
pub use spec::{
    OutputFilter, OutputLog, OutputSource, OutputTarget, ProcessSpec, SignalTarget, StopPolicy, StopSignal,
    TimeLimits,
};

/// The hidden first argument that makes this binary a supervisor.
const SUPERVISE_ARG: &str = "__supervise";

/// Whether this process was started as a supervisor. `main` checks this before anything else, and if so calls
/// [`run_supervisor`].
pub fn is_supervisor() -> bool {
    std::env::args_os().nth(1).is_some_and(|arg| arg == SUPERVISE_ARG)
}

/// The `main` of a supervisor process.
pub fn run_supervisor() -> ExitCode {
    supervisor::main()
}

/// Keeps programs of the same user from reading this process's memory and from taking over its descriptors. The supervisor's
/// socket decides how a program exited, so that none may write to it.
pub fn deny_inspection() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Kills every process whose environment has this variable with this value, and all of its descendants.
///
/// This is for recovery: it finds what is left of a session when both the runner and its supervisor were killed. The value
/// must identify one session, for example by the path of its output file.
pub fn kill_by_env_marker(name: &OsStr, value: &OsStr) -> LeftoverProcesses {
    process_tree::kill_by_env_marker(name, value)
}

/// Polls until a descriptor is ready or the deadline has passed.
fn poll_until(fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(fds, timeout.as_ref()) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
