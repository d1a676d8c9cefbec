//! The process dies at every point; the next command recovers.

pub(crate) mod iteration;
mod recovery;
mod reflogs;
pub(crate) mod start;
