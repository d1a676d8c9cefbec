//! The rules of a run, as pure functions over values.
//!
//! Everything here is a function of its arguments: no files, no processes, no clock, no environment, no
//! randomness. What reads and writes lives in `runner-host`; what talks to people lives in `runner`.

pub mod agent_output;
pub mod agent_report;
pub mod agents;
pub mod bisect;
pub mod config;
pub mod conformance_cases;
pub mod cost;
pub mod digest;
pub mod edit;
pub mod fork;
pub mod goal;
pub mod id;
pub mod identity;
pub mod import;
pub mod layout;
pub mod prompt;
pub mod replay;
pub mod repo_path;
pub mod run_state;
pub mod scenario;
pub mod schema;
pub mod slug;
pub mod start;
pub mod step;
pub mod strict;
pub mod text;
pub mod tools;
pub mod tree;
pub mod verify;
