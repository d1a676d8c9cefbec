//! Agents as programs: command lines, the sandbox, the file hook for Claude Code, the client for agents that speak ACP, and the
//! scripted agent.

pub mod acp_client;
mod acp_text;
pub mod claude_file_hook;
pub mod command;
mod hidden_paths;
pub mod login;
pub(crate) mod own_sandbox;
mod podman;
pub(crate) mod sandbox;
pub(crate) mod sandbox_argv;
pub(crate) mod sandbox_kind;
pub(crate) mod sandbox_program;
pub mod scripted_agent;
mod seatbelt;
mod session_folders;
mod session_keys;
pub(crate) mod user_sockets;
