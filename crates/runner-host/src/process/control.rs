//! How the rest of the runner ends a program that is running: from another thread, or on a signal.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Error;

/// What is wished for the program. A wish only ever grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Wish {
    /// That it goes on.
    GoOn,
    /// That it ends politely: it is asked, and killed after a grace period.
    Stop,
    /// That it ends at once.
    Kill,
}

/// A handle that many may hold. A wish once made holds for everything that is run with the same handle.
#[derive(Clone, Debug)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    wish: AtomicU8,
    bell: UnixStream,
    ear: UnixStream,
}

impl Control {
    /// A handle without a wish.
    pub fn new() -> Result<Self, Error> {
        let fail = || Error::io("open a pair of", Path::new("sockets"));
        let (bell, ear) = UnixStream::pair().map_err(fail())?;
        bell.set_nonblocking(true).map_err(fail())?;
        ear.set_nonblocking(true).map_err(fail())?;
        Ok(Self { shared: Arc::new(Shared { wish: AtomicU8::new(Wish::GoOn as u8), bell, ear }) })
    }

    /// Asks for a polite end.
    pub fn stop(&self) {
        self.ask(Wish::Stop);
    }

    /// Asks for an end at once.
    pub fn kill(&self) {
        self.ask(Wish::Kill);
    }

    /// What was asked for so far.
    pub fn wish(&self) -> Wish {
        match self.shared.wish.load(Ordering::SeqCst) {
            0 => Wish::GoOn,
            1 => Wish::Stop,
            _ => Wish::Kill,
        }
    }

    fn ask(&self, wish: Wish) {
        self.shared.wish.fetch_max(wish as u8, Ordering::SeqCst);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_only_grows() {
        let control = Control::new().unwrap();
        assert_eq!(control.wish(), Wish::GoOn);
        control.stop();
        assert_eq!(control.wish(), Wish::Stop);
        control.clone().kill();
        control.stop();
        assert_eq!(control.wish(), Wish::Kill);
    }

    #[test]
    fn a_bell_that_nobody_hears_does_no_harm() {
        let control = Control::new().unwrap();
        (0..100_000).for_each(|_| control.stop());
        control.hear();
        assert_eq!(control.wish(), Wish::Stop);
    }
}
