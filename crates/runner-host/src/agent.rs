//! Agents as programs: command lines, the sandbox, the file hook for Claude Code, and the scripted agent.

pub mod claude_file_hook;
pub mod command;
pub mod login;
mod podman;
pub(crate) mod sandbox;
pub(crate) mod sandbox_program;
pub mod scripted_agent;
mod seatbelt;
mod user_sockets;
