//! Executes trials: a pool of worker processes, each of which makes one attempt at one trial, runs the checks and
//! classifies the outcome. Reads [`crate::plan`], writes [`crate::result`].

pub(crate) mod grade;
mod junit_counts;
mod loop_log;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod runner_under_test;
pub(crate) mod trial;
pub(crate) mod verdict;
pub mod worker;
pub(crate) mod workspace;
