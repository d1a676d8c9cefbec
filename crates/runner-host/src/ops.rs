//! One module per operation on a run that a command carries out.

pub mod attest;
mod base_branch;
pub mod blame;
pub mod checks;
pub mod config_file;
pub mod conformance;
pub mod demo_repo;
pub mod detach;
pub mod detect;
pub mod doctor;
pub mod edit;
pub mod edit_queue;
pub mod fork;
pub mod guard_rerun;
pub mod init;
pub mod land;
pub mod new_run;
pub mod pass_rerun;
pub mod pause;
pub mod preflight;
pub mod replay;
pub mod run_list;
pub mod signed_tip;
pub mod signing;
pub mod start;
pub mod stop;
pub mod verify;
