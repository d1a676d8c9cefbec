//! The host's process layer against programs that misbehave, through a runner of their own.

mod ending;
mod output;
mod signals;

const LAUNCH: &str = env!("CARGO_BIN_EXE_launch");
