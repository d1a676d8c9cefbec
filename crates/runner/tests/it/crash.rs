//! The process dies at every point; the next command recovers.

pub(crate) mod iteration;
pub(crate) mod start;
