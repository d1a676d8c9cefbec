//! The rules of a run, as pure functions over values.
//!
//! Everything here depends only on its arguments: no files, no processes, no clock, no environment, no randomness.
//! `runner-host` reads and writes; `runner` is the command line.

pub mod agents;
pub mod attest;
pub mod bisect;
pub mod checks;
pub mod commit_message;
pub mod config;
pub mod conformance_cases;
pub mod detect;
pub mod format;
pub mod guard_files;
pub mod labels;
pub mod layout;
pub mod model;
pub mod prompt;
pub mod redact;
pub mod replay;
pub mod run_status;
pub mod runs;
pub mod schema;
pub mod step;
pub mod strict;
pub mod telemetry;
pub mod text;
pub mod verify;
