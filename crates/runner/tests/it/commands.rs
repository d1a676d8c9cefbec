//! One file per command, or per group of commands that belong together.

pub(crate) mod attest;
pub(crate) mod blame;
pub(crate) mod config;
pub(crate) mod conformance;
pub(crate) mod demo;
pub(crate) mod detach;
pub(crate) mod edit;
pub(crate) mod fork;
pub(crate) mod inspect;
pub(crate) mod land;
pub(crate) mod log_show_diff;
pub(crate) mod loop_output;
pub(crate) mod pause;
pub(crate) mod plan;
pub(crate) mod preflight;
pub(crate) mod queued_notes;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sibling_programs;
pub(crate) mod signing;
pub(crate) mod start;
pub(crate) mod start_safety;
pub(crate) mod step_and_loop;
pub(crate) mod verify;
