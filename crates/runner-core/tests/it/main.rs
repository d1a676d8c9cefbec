//! The core as other crates see it.

mod simulation;
