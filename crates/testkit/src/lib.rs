//! Support for the tests of all crates. It uses no type of the product, so that it checks libraries and binaries
//! independently.
#![expect(clippy::expect_used, clippy::panic, reason = "an error here is a failed test")]

pub mod agents;
pub mod bad_trees;
pub mod detached_processes;
pub mod generated;
pub mod oracle;
pub mod processes;
pub mod run_builder;
pub mod test_repo;
pub mod trees;
