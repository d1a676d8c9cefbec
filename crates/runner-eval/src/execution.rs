//! Executes trials: a pool of worker processes, each of which makes one attempt at one trial, runs the checks and
//! classifies the outcome. Reads [`crate::plan`], writes [`crate::result`].

pub(crate) mod case_plan;
mod configured_agents;
mod disk_share;
pub(crate) mod grade;
mod judge_output;
mod junit_counts;
mod loop_log;
mod metrics;
pub(crate) mod pool;
pub(crate) mod process;
pub(crate) mod progress;
mod quota;
pub(crate) mod rootfs;
pub(crate) mod runner_under_test;
pub(crate) mod sandbox;
pub(crate) mod trial;
mod trial_home;
pub(crate) mod verdict;
pub mod worker;
pub(crate) mod workspace;
