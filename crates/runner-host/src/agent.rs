//! Agent programs: their command lines, their sandbox, and the scripted agent.

pub mod claude_file_hook;
pub mod command;
pub(crate) mod sandbox;
pub mod scripted_agent;
