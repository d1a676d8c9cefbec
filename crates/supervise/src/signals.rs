//! What the user or the system sends to the runner itself.
//!
//! The first signal asks for a polite end, the second for one at once; Ctrl-Z lets the program stand still, too.
//! Signals that were ignored when the runner
//! was started stay ignored: `nohup` means what it says.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};

use crate::error::IoError;
use crate::{CancelHandle, StopRequest};

/// How long the runner may take to end by itself after the second signal.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A signal that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownSignal {
    /// Ctrl-C.
    Interrupt,
    /// Asked to end, by `kill` or the system.
    Terminate,
    /// The terminal is gone.
    HangUp,
}

impl ShutdownSignal {
    const ALL: [Self; 3] = [Self::Interrupt, Self::Terminate, Self::HangUp];

    /// The exit code that tells of it.
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

/// Turns signals into wishes as long as it lives.
#[derive(Debug)]
pub struct SignalListener {
    first: Arc<AtomicI32>,
    handle: Handle,
}

impl SignalListener {
    /// Begins to listen.
    pub fn install(control: &CancelHandle) -> Result<Self, IoError> {
        let fail = || IoError::wrap::<io::Error>("listen to", Path::new("signals"));
        let ignored = ignored_signals();
        let known = ShutdownSignal::ALL.map(ShutdownSignal::number).into_iter().chain([SIGTSTP]);
        let wanted = known.filter(|signal| !ignored.contains(*signal));
        let mut signals = Signals::new(wanted).map_err(fail())?;
        let handle = signals.handle();
        let first = Arc::new(AtomicI32::new(0));
        let (noted, control) = (Arc::clone(&first), control.clone());
        let thread = std::thread::Builder::new().name("signals".to_owned());
        let listen = move || signals.forever().for_each(|signal| hear(signal, &noted, &control));
        thread.spawn(listen).map_err(fail())?;
        Ok(Self { first, handle })
    }

    /// The first signal that came, if any did.
    pub fn received(&self) -> Option<ShutdownSignal> {
        caught(&self.first)
    }
}

impl Drop for SignalListener {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Tells of every signal that would end this program, on a thread of its own, instead of letting it end it.
pub fn on_shutdown_signal(told: impl Fn(ShutdownSignal) + Send + 'static) -> Result<(), IoError> {
    let fail = || IoError::wrap::<io::Error>("listen to", Path::new("signals"));
    let mut signals = Signals::new(ShutdownSignal::ALL.map(ShutdownSignal::number)).map_err(fail())?;
    let listen = move || {
        for signal in signals.forever() {
            ShutdownSignal::ALL.into_iter().filter(|caught| caught.number() == signal).for_each(&told);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map(|_| ()).map_err(fail())
}

fn caught(first: &AtomicI32) -> Option<ShutdownSignal> {
    let number = first.load(Ordering::SeqCst);
    ShutdownSignal::ALL.into_iter().find(|caught| caught.number() == number)
}

fn hear(signal: i32, first: &AtomicI32, control: &CancelHandle) {
    if signal == SIGTSTP {
        control.pause();
        return;
    }
    let is_first = first.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    if is_first && control.request() == StopRequest::None {
        control.stop();
        return;
    }
    control.kill();
    // Whatever the runner is at, the user will not wait any longer. What is begun, the next command finishes.
    std::thread::sleep(END_WITHIN);
    let code = caught(first).map_or(1, ShutdownSignal::exit_code);
    std::process::exit(code.into());
}

/// Lets a write beyond the size that the system allows for files fail, instead of killing the runner.
///
/// The same for writes to a pipe that nobody reads is the default of every Rust program.
pub fn survive_file_size_limit() -> Result<(), IoError> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, flag)
        .map(|_| ())
        .map_err(IoError::wrap("listen to", Path::new("signals")))
}

/// A set of signals, as the system writes it: one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct SignalSet(u64);

impl SignalSet {
    fn contains(self, signal: i32) -> bool {
        let bit = u32::try_from(signal - 1).ok().and_then(|place| 1_u64.checked_shl(place));
        bit.is_some_and(|bit| self.0 & bit != 0)
    }
}

/// What this process ignores. Where the system does not say, nothing.
fn ignored_signals() -> SignalSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).map(SignalSet).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_signals_is_read_bit_by_bit() {
        let set = SignalSet(0x1001);
        assert!(set.contains(SIGHUP) && set.contains(13));
        assert!(!set.contains(SIGINT) && !set.contains(0) && !set.contains(-5) && !set.contains(99));
    }

    #[test]
    fn every_rust_program_ignores_broken_pipes() {
        #[cfg(target_os = "linux")]
        assert!(ignored_signals().contains(13));
    }
}
