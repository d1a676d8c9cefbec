//! [`CancelHandle`]: stops or suspends a running program from another thread or from a signal handler thread.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::IoError;

/// How urgently the program must end. A request can be raised, never lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum StopRequest {
    None,
    /// The stop signal first, SIGKILL after the grace period.
    Stop,
    Kill,
}

/// A shared handle. A request stays in force for everything that runs with the same handle later.
#[derive(Clone, Debug)]
pub struct CancelHandle {
    state: Arc<CancelState>,
}

#[derive(Debug)]
struct CancelState {
    request: AtomicU8,
    suspend: Mutex<SuspendState>,
    wake_tx: UnixStream,
    wake_rx: UnixStream,
}

/// Who suspends this process. A thread that runs a program must send it to its supervisor first, so it does it itself.
#[derive(Debug, Default)]
struct SuspendState {
    is_handled_by_client: bool,
    is_requested: bool,
}

impl CancelHandle {
    pub fn new() -> Result<Self, IoError> {
        let wrap = || IoError::wrap("open a pair of", Path::new("sockets"));
        let (wake_tx, wake_rx) = UnixStream::pair().map_err(wrap())?;
        wake_tx.set_nonblocking(true).map_err(wrap())?;
        wake_rx.set_nonblocking(true).map_err(wrap())?;
        let request = AtomicU8::new(StopRequest::None as u8);
        Ok(Self { state: Arc::new(CancelState { request, suspend: Mutex::default(), wake_tx, wake_rx }) })
    }

    /// Requests a graceful stop.
    pub fn stop(&self) {
        self.raise(StopRequest::Stop);
    }

    /// Requests an immediate kill.
    pub fn kill(&self) {
        self.raise(StopRequest::Kill);
    }

    /// The highest request so far.
    pub fn request(&self) -> StopRequest {
        match self.state.request.load(Ordering::SeqCst) {
            0 => StopRequest::None,
            1 => StopRequest::Stop,
            _ => StopRequest::Kill,
        }
    }

    /// Suspends the runner and the program until SIGCONT arrives (Ctrl-Z, then `fg`).
    pub fn suspend(&self) {
        let is_handled_by_client = self.with_suspend(|suspend| {
            suspend.is_requested = suspend.is_handled_by_client;
            suspend.is_handled_by_client
        });
        if is_handled_by_client {
            self.wake();
        } else {
            suspend_self();
        }
    }

    /// From now on the caller polls [`Self::take_suspend_request`] and suspends this process.
    pub(super) fn begin_handling_suspend(&self) {
        self.with_suspend(|suspend| suspend.is_handled_by_client = true);
    }

    /// Ends [`Self::begin_handling_suspend`], and carries out a request that came in between.
    pub(super) fn end_handling_suspend(&self) {
        let is_requested = self.with_suspend(|suspend| std::mem::take(suspend).is_requested);
        if is_requested {
            suspend_self();
        }
    }

    /// Whether to suspend now. Clears the request.
    pub(super) fn take_suspend_request(&self) -> bool {
        self.with_suspend(|suspend| std::mem::take(&mut suspend.is_requested))
    }

    fn with_suspend<T>(&self, change: impl FnOnce(&mut SuspendState) -> T) -> T {
        change(&mut self.state.suspend.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn raise(&self, request: StopRequest) {
        self.state.request.fetch_max(request as u8, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        // EAGAIN means that a wake-up is already pending.
        let _ = (&self.state.wake_tx).write(&[1]);
    }

    /// Becomes readable with every new request.
    pub(super) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.state.wake_rx.as_fd()
    }

    /// Empties the self-pipe, so that the next request makes it readable again.
    pub(super) fn drain(&self) {
        let mut bytes = [0; 16];
        while (&self.state.wake_rx).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }
}

/// Stops this process; returns when it is continued.
pub(super) fn suspend_self() {
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_can_only_be_raised() {
        let cancel = CancelHandle::new().unwrap();
        assert_eq!(cancel.request(), StopRequest::None);
        cancel.stop();
        assert_eq!(cancel.request(), StopRequest::Stop);
        cancel.clone().kill();
        cancel.stop();
        assert_eq!(cancel.request(), StopRequest::Kill);
    }

    #[test]
    fn a_full_self_pipe_does_not_block_requests() {
        let cancel = CancelHandle::new().unwrap();
        (0..100_000).for_each(|_| cancel.stop());
        cancel.drain();
        assert_eq!(cancel.request(), StopRequest::Stop);
    }
}
