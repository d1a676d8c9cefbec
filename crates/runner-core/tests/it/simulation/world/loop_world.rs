//! Waits between the sessions of a simulated loop.

use runner_core::step::{LoopWait, LoopWorld, StopReason, WaitResult, WaitSince};

use super::{Broken, Sim};

impl LoopWorld for Sim {
    fn end_of(&mut self, wait: &LoopWait) -> Result<u64, Broken> {
        Ok(wait.wait.end_ms(0))
    }

    fn wait_for_next(&mut self, wait: Option<&LoopWait>) -> Result<WaitResult, Broken> {
        if let Some(LoopWait { wait, since }) = wait {
            let state = self.state();
            match since {
                WaitSince::LastCommit => assert_eq!(state.wait.as_ref(), Some(wait), "the wait is recorded"),
                WaitSince::Now => {
                    assert!(state.wait.is_some(), "the outage is recorded");
                    assert!((10..=3600).contains(&wait.secs.get()), "its waits grow within bounds");
                    self.oracle.seen.branches.insert("outage continued");
                }
            }
            if self.is_fresh {
                self.oracle.seen.branches.insert("wait continued");
            }
        }
        self.is_fresh = false;
        self.may_crash()?;
        if self.random.percent(1) {
            return Ok(WaitResult::Stop(StopReason::UserStop));
        }
        Ok(if wait.is_some() { WaitResult::Waited } else { WaitResult::Immediate })
    }
}
