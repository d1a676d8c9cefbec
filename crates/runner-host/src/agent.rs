//! Agents as programs: command lines, the sandbox, the file hook for Claude Code, and the scripted agent.

pub mod claude_file_hook;
pub mod command;
pub mod login;
pub(crate) mod sandbox;
pub mod scripted_agent;
mod user_sockets;
