//! The host's process layer against programs that misbehave, through a runner of their own.

mod process_end;
mod process_output;
mod signals;

const LAUNCH: &str = env!("CARGO_BIN_EXE_launch");
