//! Tests of the `runner` binary through its command line.
#![expect(clippy::unwrap_used, reason = "here a fault is a failed test")]

mod agents;
mod behaviour;
mod commands;
mod crash;
mod documents;
mod fixtures;
mod generated;
mod security;
mod wasm_audit;

use fixtures::{GOAL, as_nobody, assert_proved, owned_by_nobody, ready, started};

const RUNNER: &str = env!("CARGO_BIN_EXE_runner");
