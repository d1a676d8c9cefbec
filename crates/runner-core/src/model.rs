//! The values of a run: ids, goal, task tree, run state, costs. They are parsed once and valid from then on.

pub mod agent_output;
pub mod agent_report;
pub mod checks;
pub mod cost;
pub mod digest;
pub mod environment;
pub mod goal;
pub mod heldout;
pub mod id;
pub mod instructions;
pub mod object_id;
pub mod progress;
pub mod protection;
pub mod ratchet;
pub mod repo_path;
pub mod review;
pub mod run_state;
pub mod slug;
pub mod tools;
pub mod tree;
pub mod user_notes;
