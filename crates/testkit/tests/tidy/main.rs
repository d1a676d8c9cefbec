//! What a lint cannot hold: the edges between the crates, the doors that there is one of, the sizes and the
//! documents. Every test reads the tracked files of the repository as they are and names file, line and reason of
//! whatever breaks its rule. The rules are tables; to change a rule, change its row and say why.

#![expect(clippy::expect_used, reason = "a test that cannot read the repository has failed")]

mod documents;
mod edges;
mod repository;
mod rust_source;
mod sizes;
mod words;
