//! The process dies at every point; the next command recovers.

pub(crate) mod iteration;
mod partial_checkouts;
mod recovery;
mod reflogs;
pub(crate) mod start;
