//! What runs do, whichever command is used.

pub(crate) mod baseline;
pub(crate) mod checks;
pub(crate) mod desktop;
pub(crate) mod determinism;
pub(crate) mod final_check;
mod guard_time;
mod heldout;
pub(crate) mod hooks;
pub(crate) mod invalid_trees;
pub(crate) mod known_pitfalls;
pub(crate) mod long_runs;
pub(crate) mod loop_limits;
pub(crate) mod notifications;
pub(crate) mod odd_files;
pub(crate) mod output;
pub(crate) mod output_limits;
pub(crate) mod planning;
pub(crate) mod progress;
pub(crate) mod ratchet;
pub(crate) mod recorded_runs;
pub(crate) mod records;
mod releases;
pub(crate) mod repo_kinds;
pub(crate) mod review;
mod telemetry;
pub(crate) mod user_files;
pub(crate) mod waits_and_budgets;
