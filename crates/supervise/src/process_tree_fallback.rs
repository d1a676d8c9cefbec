//! What can be ended where the system tells nothing of descent: the program's process group.
//!
//! Used where there are no sub-reapers and no `/proc` (macOS). A process that began a session or a group of its own
//! is not reached here.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use crate::Reach;
use crate::wire::Leftovers;

const GONE_WITHIN: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// Orphans go to the system's first process; nothing can be done about it.
pub(super) fn adopt_orphans() -> rustix::io::Result<()> {
    Ok(())
}

/// Ends the group that `itself` leads. How many others were in it is not known.
pub(super) fn end_all(itself: Pid) -> Leftovers {
    let until = Instant::now() + GONE_WITHIN;
    loop {
        let is_gone = rustix::process::kill_process_group(itself, Signal::KILL).is_err();
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        if is_gone || Instant::now() >= until {
            return Leftovers { killed: 0, alive: usize::from(!is_gone) };
        }
        std::thread::sleep(PAUSE);
    }
}

/// Nothing falls to this process here.
pub(super) fn end_foreign_sessions() -> Leftovers {
    Leftovers::default()
}

/// Other processes' variables are not told here.
pub(super) fn end_marked(_name: &OsStr, _value: &OsStr) -> Leftovers {
    Leftovers::default()
}

/// There are no sandboxes here.
pub(super) fn signal_inside(_sandbox: Pid, _reach: Reach, _signal: Signal) {}

/// A program goes on while the runner stands still.
pub(super) fn pause_all() {}

/// See above.
pub(super) fn continue_all() {}
