//! The fallback for systems without sub-reapers and `/proc` (macOS): kills the program's process group.
//!
//! It does not reach a process that started a session or a group of its own.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::protocol::LeftoverProcesses;
use crate::spec::SignalTarget;

const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// Orphans become children of the system's first process, which cannot be changed here.
pub(super) fn adopt_orphans() -> rustix::io::Result<()> {
    Ok(())
}

/// Kills the group that `program` leads. How many other processes were in it is unknown.
pub(super) fn kill_descendants(program: Pid) -> LeftoverProcesses {
    let deadline = Instant::now() + KILL_TIMEOUT;
    loop {
        let is_gone = rustix::process::kill_process_group(program, Signal::KILL).is_err();
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        if is_gone || Instant::now() >= deadline {
            return LeftoverProcesses { killed: 0, alive: usize::from(!is_gone) };
        }
        std::thread::sleep(PAUSE);
    }
}

/// Does nothing: no process is re-parented to this one.
pub(super) fn kill_orphans() -> LeftoverProcesses {
    LeftoverProcesses::default()
}

/// Does nothing: the environment of other processes cannot be read.
pub(super) fn kill_by_env_marker(_name: &OsStr, _value: &OsStr) -> LeftoverProcesses {
    LeftoverProcesses::default()
}

/// Does nothing: there are no sandboxes on these systems.
pub(super) fn signal_inside(_sandbox: Pid, _target: SignalTarget, _signal: Signal) {}

/// Unknown: other processes cannot be inspected.
pub(super) fn cpu_time_below(_ancestor: Pid) -> Option<Duration> {
    None
}

/// Does nothing: the program continues while the runner is suspended.
pub(super) fn suspend_descendants() {}

/// Does nothing, like [`suspend_descendants`].
pub(super) fn resume_descendants() {}
