//! The core as other crates see it.

mod pipeline;
mod simulation;
