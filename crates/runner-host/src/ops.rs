//! One module per operation on a run that a command carries out.

pub mod blame;
pub mod conformance;
pub mod demo_repo;
pub mod doctor;
pub mod edit;
pub mod fork;
pub mod guard_rerun;
pub mod init;
pub mod pause;
pub mod replay;
pub mod start;
pub mod verify;
