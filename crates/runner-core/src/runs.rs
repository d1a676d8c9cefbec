//! Operations of the user on a run: start, fork, edit, import a plan.

pub mod edit;
pub mod estimate;
pub mod fork;
pub mod identity;
pub mod import;
pub mod plan_digest;
pub mod plan_lint;
pub mod plan_stubs;
pub mod plan_text;
pub mod start;
