//! The part of an iteration that the footer names.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisplayPhase {
    Agent,
    Guard,
    Review,
    Commit,
    /// The guard in a clean checkout, after all tasks passed.
    FinalCheck,
    /// Checks of passed tasks.
    Recheck,
}

impl DisplayPhase {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Guard => "guard",
            Self::Review => "review",
            Self::Commit => "commit",
            Self::FinalCheck => "final check",
            Self::Recheck => "checks of passed tasks",
        }
    }
}
