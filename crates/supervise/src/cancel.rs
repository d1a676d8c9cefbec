//! How the rest of the runner ends a program that is running: from another thread, or on a signal.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::IoError;

/// What is wished for the program. A wish only ever grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StopRequest {
    /// That it goes on.
    None,
    /// That it ends politely: it is asked, and killed after a grace period.
    Stop,
    /// That it ends at once.
    Kill,
}

/// A handle that many may hold. A wish once made holds for everything that is run with the same handle.
#[derive(Clone, Debug)]
pub struct CancelHandle {
    shared: Arc<CancelState>,
}

#[derive(Debug)]
struct CancelState {
    wish: AtomicU8,
    pause: Mutex<SuspendState>,
    bell: UnixStream,
    ear: UnixStream,
}

/// Who lets the runner itself stand still: whoever runs a program must tell its supervisor first.
#[derive(Debug, Default)]
struct SuspendState {
    is_attended: bool,
    is_wanted: bool,
}

impl CancelHandle {
    /// A handle without a wish.
    pub fn new() -> Result<Self, IoError> {
        let fail = || IoError::wrap("open a pair of", Path::new("sockets"));
        let (bell, ear) = UnixStream::pair().map_err(fail())?;
        bell.set_nonblocking(true).map_err(fail())?;
        ear.set_nonblocking(true).map_err(fail())?;
        Ok(Self {
            shared: Arc::new(CancelState {
                wish: AtomicU8::new(StopRequest::None as u8),
                pause: Mutex::default(),
                bell,
                ear,
            }),
        })
    }

    /// Asks for a polite end.
    pub fn stop(&self) {
        self.ask(StopRequest::Stop);
    }

    /// Asks for an end at once.
    pub fn kill(&self) {
        self.ask(StopRequest::Kill);
    }

    /// What was asked for so far.
    pub fn request(&self) -> StopRequest {
        match self.shared.wish.load(Ordering::SeqCst) {
            0 => StopRequest::None,
            1 => StopRequest::Stop,
            _ => StopRequest::Kill,
        }
    }

    /// Lets the runner stand still, and the program with it, until it is continued (Ctrl-Z, `fg`).
    pub fn pause(&self) {
        let is_attended = self.with_pause(|pause| {
            pause.is_wanted = pause.is_attended;
            pause.is_attended
        });
        if is_attended {
            self.ring();
        } else {
            stand_still();
        }
    }

    /// From now on the caller asks for pauses.
    pub(super) fn attend_pauses(&self) {
        self.with_pause(|pause| pause.is_attended = true);
    }

    /// And now no longer.
    pub(super) fn leave_pauses(&self) {
        let is_wanted = self.with_pause(|pause| std::mem::take(pause).is_wanted);
        if is_wanted {
            stand_still();
        }
    }

    /// Whether to stand still now.
    pub(super) fn is_pause_wanted(&self) -> bool {
        self.with_pause(|pause| std::mem::take(&mut pause.is_wanted))
    }

    fn with_pause<T>(&self, change: impl FnOnce(&mut SuspendState) -> T) -> T {
        change(&mut self.shared.pause.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ask(&self, wish: StopRequest) {
        self.shared.wish.fetch_max(wish as u8, Ordering::SeqCst);
        self.ring();
    }

    fn ring(&self) {
        // A bell that cannot be rung is one that nobody has answered yet: it still rings.
        let _ = (&self.shared.bell).write(&[1]);
    }

    /// Becomes readable with every new wish.
    pub(super) fn ear(&self) -> BorrowedFd<'_> {
        self.shared.ear.as_fd()
    }

    /// Hears the bell out, so that it can ring again.
    pub(super) fn hear(&self) {
        let mut rung = [0; 16];
        while (&self.shared.ear).read(&mut rung).is_ok_and(|count| count == rung.len()) {}
    }
}

/// Stops this process here and now; returns when it is continued.
pub(super) fn stand_still() {
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_only_grows() {
        let control = CancelHandle::new().unwrap();
        assert_eq!(control.request(), StopRequest::None);
        control.stop();
        assert_eq!(control.request(), StopRequest::Stop);
        control.clone().kill();
        control.stop();
        assert_eq!(control.request(), StopRequest::Kill);
    }

    #[test]
    fn a_bell_that_nobody_hears_does_no_harm() {
        let control = CancelHandle::new().unwrap();
        (0..100_000).for_each(|_| control.stop());
        control.hear();
        assert_eq!(control.request(), StopRequest::Stop);
    }
}
