//! Rules about this repository that no lint can check: dependencies between crates, single points of access, sizes, names,
//! wording and documents.
//!
//! Every test reads the tracked files and prints the path, the line and the reason of each violation. The rules are tables; to
//! change a rule, change its row and document why.

#![expect(clippy::expect_used, reason = "a test that cannot read the repository fails")]

mod access;
mod book;
mod definitions;
mod dependencies;
mod dependency_policy;
mod documents;
mod error_codes;
mod packages;
mod repository;
mod rust_source;
mod sizes;
mod wording;
