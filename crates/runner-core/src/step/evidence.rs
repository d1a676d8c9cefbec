//! What ran around a session, and what came of it: all that [`settle`](super::settle) decides by besides the claim.

use super::attempt::GuardRun;
use super::checks::{CheckEvidence, GreenRun};
use super::guard_place::GuardPlace;
use super::heldout::HeldoutGreen;
use super::outcome::Interruption;
use super::review::ReviewEvidence;

/// The results of everything that the runner ran itself in an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub checks: CheckEvidence,
    pub guard: GuardRun,
    pub review: ReviewEvidence,
}

impl Evidence {
    /// The evidence of an iteration in which nothing ran.
    pub fn none() -> Self {
        Self::of_guard(GuardRun::Skipped)
    }

    /// The evidence of a guard run alone.
    pub fn of_guard(guard: GuardRun) -> Self {
        Self { checks: CheckEvidence::default(), guard, review: ReviewEvidence::Skipped }
    }

    /// Where guard and checks ran, if any of them ran to its end.
    pub fn place(&self) -> Option<&GuardPlace> {
        self.guard.place().or_else(|| self.checks.green.place()).or_else(|| self.checks.heldout.place())
    }

    /// What interrupted guard, checks or review.
    pub(super) fn interruption(&self) -> Option<Interruption> {
        if let HeldoutGreen::Interrupted { by } = &self.checks.heldout {
            return Some(*by);
        }
        match (&self.guard, &self.checks.green) {
            (GuardRun::Interrupted { by }, _) | (_, GreenRun::Interrupted { by }) => Some(*by),
            (_, _) => self.review.interruption(),
        }
    }
}
