//! Between two iterations: waits, pauses, and whether the user wants to stop.

use std::time::{Duration, Instant};

use runner_core::step::{Event, IterationWorld, LoopWait, LoopWorld, StopReason, WaitResult, WaitSince};

use super::repo_world::RepoWorld;
use crate::clock::now_ms;
use crate::error::Error;
use crate::ops::edit_queue;

/// How often a wait checks whether it is over.
const TICK: Duration = Duration::from_millis(100);
/// How long a resumed run waits for another command to release the lock.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);

/// The end of a wait. The wall clock decides, because the machine may sleep. If the clock is turned back, the time that
/// passed here ends the wait.
struct WaitEnd {
    end_ms: u64,
    since: Instant,
    longest: Duration,
}

impl WaitEnd {
    fn is_over(&self) -> bool {
        now_ms() >= self.end_ms || self.since.elapsed() >= self.longest
    }
}

impl LoopWorld for RepoWorld<'_> {
    fn end_of(&mut self, wait: &LoopWait) -> Result<u64, Error> {
        Ok(wait.wait.end_ms(self.began_ms(wait.since)?))
    }

    fn wait_for_next(&mut self, wait: Option<&LoopWait>) -> Result<WaitResult, Error> {
        let end = match wait {
            Some(wait) => Some(self.wait_end(wait)?),
            None => None,
        };
        let mut result = WaitResult::Immediate;
        // What could not be committed: changes of the user's may be in the way, which only matter when the wait is over.
        let mut refused_edits = 0;
        if end.is_some() {
            self.known = None;
            result = WaitResult::Waited;
        }
        loop {
            if let Some(stop) = self.requested_stop() {
                return Ok(WaitResult::Stop(stop));
            }
            let waiting = edit_queue::count(self.repo.git().paths());
            if waiting > refused_edits {
                self.commit_queued_edits();
                refused_edits = edit_queue::count(self.repo.git().paths());
                result = WaitResult::Waited;
            }
            if self.repo.git().paths().is_paused() {
                self.wait_while_paused()?;
                result = WaitResult::Waited;
            } else if end.as_ref().is_some_and(|end| !end.is_over()) {
                std::thread::sleep(TICK);
            } else {
                return Ok(result);
            }
        }
    }
}

impl RepoWorld<'_> {
    /// When a wait began, in milliseconds since 1970.
    fn began_ms(&self, since: WaitSince) -> Result<u64, Error> {
        match since {
            WaitSince::LastCommit => Ok(self.repo.git().last_iteration_time()?.saturating_mul(1000)),
            WaitSince::Now => Ok(now_ms()),
        }
    }

    fn wait_end(&self, wait: &LoopWait) -> Result<WaitEnd, Error> {
        let since_ms = self.began_ms(wait.since)?;
        let wait = &wait.wait;
        Ok(WaitEnd {
            end_ms: wait.end_ms(since_ms),
            since: Instant::now(),
            longest: Duration::from_millis(wait.left_ms(since_ms, now_ms())),
        })
    }

    fn requested_stop(&self) -> Option<StopReason> {
        if let Some(by) = self.programs.interruption() {
            return Some(StopReason::Interrupted { by });
        }
        (self.choices.requested_stop)()
    }

    /// Waits while the run is paused, without the lock, so that other commands can use the repository. Afterwards finishes
    /// what they may have left unfinished. Returns early if the user wants to stop.
    fn wait_while_paused(&mut self) -> Result<(), Error> {
        self.announce(&Event::Paused);
        self.known = None;
        self.repo.unlock();
        while self.repo.git().paths().is_paused() {
            if self.requested_stop().is_some() {
                return Ok(());
            }
            std::thread::sleep(TICK);
        }
        let since = Instant::now();
        loop {
            match self.repo.relock() {
                Ok(()) => break,
                Err(Error::Locked { .. }) if since.elapsed() < LOCK_WAIT_MAX => {}
                Err(error) => return Err(error),
            }
            if self.requested_stop().is_some() {
                return Ok(());
            }
            std::thread::sleep(TICK);
        }
        self.repo.recover(&self.programs, &mut self.events)?;
        self.announce(&Event::Resumed);
        Ok(())
    }
}
