//! Signals to the runner itself, turned into requests on a [`CancelHandle`].
//!
//! The first signal requests a graceful stop, the second an immediate kill; Ctrl-Z suspends the runner and the program.
//! Signals that were ignored when the runner started stay ignored, so `nohup` works.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};

use crate::error::IoError;
use crate::{CancelHandle, StopRequest};

/// How long the runner may take to exit on its own after the second signal.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A signal that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownSignal {
    Interrupt,
    /// SIGTERM, from `kill` or a system shutdown.
    Terminate,
    /// SIGHUP: the terminal was closed.
    HangUp,
}

impl ShutdownSignal {
    const ALL: [Self; 3] = [Self::Interrupt, Self::Terminate, Self::HangUp];

    /// 128 plus the signal's number, as shells report it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
            Self::HangUp => 129,
        }
    }

    fn number(self) -> i32 {
        match self {
            Self::Interrupt => SIGINT,
            Self::Terminate => SIGTERM,
            Self::HangUp => SIGHUP,
        }
    }
}

/// Turns signals into requests on a handle until it is dropped.
#[derive(Debug)]
pub struct SignalListener {
    first: Arc<AtomicI32>,
    handle: Handle,
}

impl SignalListener {
    pub fn install(cancel: &CancelHandle) -> Result<Self, IoError> {
        let wrap = || IoError::wrap::<io::Error>("listen to", Path::new("signals"));
        let ignored = ignored_signals();
        let all = ShutdownSignal::ALL.map(ShutdownSignal::number).into_iter().chain([SIGTSTP]);
        let mut signals = Signals::new(all.filter(|signal| !ignored.contains(*signal))).map_err(wrap())?;
        let handle = signals.handle();
        let first = Arc::new(AtomicI32::new(0));
        let thread_first = Arc::clone(&first);
        let thread_cancel = cancel.clone();
        let listen = move || {
            for signal in signals.forever() {
                handle_signal(signal, &thread_first, &thread_cancel);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(wrap())?;
        Ok(Self { first, handle })
    }

    /// The first shutdown signal that arrived.
    pub fn received(&self) -> Option<ShutdownSignal> {
        shutdown_signal(&self.first)
    }
}

impl Drop for SignalListener {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Calls back on a thread of its own for every shutdown signal, which then no longer ends this process.
pub fn on_shutdown_signal(callback: impl Fn(ShutdownSignal) + Send + 'static) -> Result<(), IoError> {
    let wrap = || IoError::wrap::<io::Error>("listen to", Path::new("signals"));
    let mut signals = Signals::new(ShutdownSignal::ALL.map(ShutdownSignal::number)).map_err(wrap())?;
    let listen = move || {
        for signal in signals.forever() {
            ShutdownSignal::ALL
                .into_iter()
                .filter(|shutdown| shutdown.number() == signal)
                .for_each(&callback);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map(|_| ()).map_err(wrap())
}

fn shutdown_signal(first: &AtomicI32) -> Option<ShutdownSignal> {
    let number = first.load(Ordering::SeqCst);
    ShutdownSignal::ALL.into_iter().find(|shutdown| shutdown.number() == number)
}

fn handle_signal(signal: i32, first: &AtomicI32, cancel: &CancelHandle) {
    if signal == SIGTSTP {
        cancel.suspend();
        return;
    }
    let is_first = first.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    if is_first && cancel.request() == StopRequest::None {
        cancel.stop();
        return;
    }
    cancel.kill();
    // The user will not wait any longer. Recovery in the next command finishes what this exit interrupts.
    std::thread::sleep(EXIT_TIMEOUT);
    let code = shutdown_signal(first).map_or(1, ShutdownSignal::exit_code);
    std::process::exit(code.into());
}

/// Ignores SIGXFSZ, so that a write beyond the file size limit fails with an error and does not kill the runner. Every Rust
/// program already ignores SIGPIPE in the same way.
pub fn survive_file_size_limit() -> Result<(), IoError> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, flag)
        .map(|_| ())
        .map_err(IoError::wrap("listen to", Path::new("signals")))
}

/// A signal mask as in `/proc`: one bit per signal.
#[derive(Clone, Copy, Debug, Default)]
struct SignalSet(u64);

impl SignalSet {
    fn contains(self, signal: i32) -> bool {
        let bit = u32::try_from(signal - 1).ok().and_then(|shift| 1_u64.checked_shl(shift));
        bit.is_some_and(|bit| self.0 & bit != 0)
    }
}

/// The signals that this process ignores; none if the system has no `/proc`.
fn ignored_signals() -> SignalSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).map(SignalSet).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_mask_has_one_bit_per_signal() {
        let set = SignalSet(0x1001);
        assert!(set.contains(SIGHUP) && set.contains(13));
        assert!(!set.contains(SIGINT) && !set.contains(0) && !set.contains(-5) && !set.contains(99));
    }

    #[test]
    fn sigpipe_is_ignored() {
        #[cfg(target_os = "linux")]
        assert!(ignored_signals().contains(13));
    }
}
