//! What only tests use. Nothing here knows the product's types, so that it can judge the library and the command
//! alike.
#![expect(clippy::expect_used, clippy::panic, reason = "here a fault is a failed test")]

pub mod agents;
pub mod bad_trees;
pub mod detached_processes;
pub mod generated;
pub mod oracle;
pub mod processes;
pub mod run_builder;
pub mod test_repo;
pub mod trees;
