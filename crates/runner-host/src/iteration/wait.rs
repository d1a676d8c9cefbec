//! Between two iterations: waits, pauses, and whether the user wants to stop.

use std::time::{Duration, Instant};

use runner_core::step::{Event, Interruption, LoopWorld, StopReason, Wait, World};

use super::{RepoWorld, allow_filters, recover};
use crate::error::Error;
use crate::fs::lock::Lock;
use crate::iteration::iteration_dir::now_ms;
use crate::ops::pause;
use supervise::StopRequest;

/// How often a wait looks up.
const TICK: Duration = Duration::from_millis(100);
/// How long a run that goes on waits for a command that is just at work.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);

impl LoopWorld for RepoWorld<'_> {
    fn end_of(&mut self, wait: &Wait) -> Result<u64, Error> {
        Ok(wait.end_ms(self.git.last_iteration_time()?.saturating_mul(1000)))
    }

    fn pause(&mut self, wait: Option<&Wait>) -> Result<Option<StopReason>, Error> {
        // The clock on the wall decides, since a machine may sleep. It may be turned back, too: the time that has
        // passed here ends the wait then.
        if wait.is_some() {
            self.left = None;
        }
        let begun = Instant::now();
        let over = wait.map(|wait| {
            let since_ms = self.git.last_iteration_time()?.saturating_mul(1000);
            let left = Duration::from_millis(wait.left_ms(since_ms, now_ms()));
            Ok::<_, Error>((wait.end_ms(since_ms), left))
        });
        let over = over.transpose()?;
        loop {
            if let Some(stop) = self.wanted_stop() {
                return Ok(Some(stop));
            }
            if pause::is_paused(self.git.paths()) {
                self.stand_by()?;
                continue;
            }
            match over {
                Some((end_ms, left)) if now_ms() < end_ms && begun.elapsed() < left => {
                    std::thread::sleep(TICK);
                }
                Some(_) | None => return Ok(None),
            }
        }
    }
}

impl RepoWorld<'_> {
    fn wanted_stop(&self) -> Option<StopReason> {
        if let Some(by) = self.interruption() {
            return Some(StopReason::Interrupted { by });
        }
        if self.control.request() != StopRequest::None {
            return Some(StopReason::Interrupted { by: Interruption::Int });
        }
        (self.wants_stop)().then_some(StopReason::UserStop)
    }

    /// Waits while the run is paused, without the lock, so that other commands can work here. What they changed is read
    /// anew afterwards, and what they left unfinished is finished.
    fn stand_by(&mut self) -> Result<(), Error> {
        self.announce(&Event::Paused);
        self.lock = None;
        while pause::is_paused(self.git.paths()) {
            if self.wanted_stop().is_some() {
                return Ok(());
            }
            std::thread::sleep(TICK);
        }
        let since = Instant::now();
        while self.lock.is_none() {
            match Lock::acquire(&self.git.paths().lock()) {
                Ok(lock) => self.lock = Some(lock),
                Err(Error::Locked { .. }) if since.elapsed() < LOCK_WAIT_MAX => {
                    if self.wanted_stop().is_some() {
                        return Ok(());
                    }
                    std::thread::sleep(TICK);
                }
                Err(error) => return Err(error),
            }
        }
        (self.left, self.at_start, self.at_head) = (None, None, None);
        allow_filters(&mut self.git)?;
        recover(self)?;
        self.announce(&Event::Resumed);
        Ok(())
    }
}
