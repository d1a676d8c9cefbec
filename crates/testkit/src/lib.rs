//! What only tests use.
#![expect(clippy::expect_used, clippy::panic, reason = "here a fault is a failed test")]

pub mod processes;
pub mod repo;
pub mod seven;
