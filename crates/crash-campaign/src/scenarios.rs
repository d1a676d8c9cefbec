//! What is interrupted: a repository just before one command, and what must work after it.

mod formats;
mod iterations;
mod plans;
mod starts;
mod workspace;

pub(crate) use iterations::WORK;
pub(crate) use workspace::{Workspace, populate};

use testkit::test_repo::TestRepo;

/// A repository before the command that a fault interrupts.
pub(crate) struct FaultScenario {
    pub(crate) name: &'static str,
    /// Builds the repository with this `runner` binary.
    pub(crate) prepare: fn(&str) -> TestRepo,
    /// The arguments of the interrupted command.
    pub(crate) command: &'static [&'static str],
    /// The commands that must succeed afterwards, without any help.
    pub(crate) resume: &'static [&'static [&'static str]],
    /// The run that must be checked out at the end. A fork may end on either of two.
    pub(crate) runs: &'static [&'static str],
}

const LOOP: &[&[&str]] = &[&["loop"]];
/// `start` twice, because the second one must find nothing to do.
const START_TWICE: &[&[&str]] = &[&["start"], &["start"], &["loop"]];
const DEMO: &[&str] = &["demo"];

/// All scenarios, in the order in which the campaign runs them.
pub(crate) fn all() -> Vec<FaultScenario> {
    let mut all = iterations::scenarios();
    all.extend(starts::scenarios());
    all.extend(plans::scenarios());
    all.extend(formats::scenarios());
    all
}

pub(crate) fn find(name: &str) -> Option<FaultScenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}
