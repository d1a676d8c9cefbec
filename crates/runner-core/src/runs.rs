//! What a user does to a run as a whole: start it, fork it, edit it, import a plan into it.

pub mod edit;
pub mod fork;
pub mod identity;
pub mod import;
pub mod start;
