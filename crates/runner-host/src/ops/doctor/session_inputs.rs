//! What the configuration gives to sessions: each thing must be there.

use std::path::Path;

use runner_core::config::{Executor, McpServer, McpTransport};
use runner_core::layout::Doc;
use runner_core::text::one_line;
use supervise::executables;

use super::DoctorCheck;
use crate::agent::sandbox::expand_home;

/// Missing things are warnings: a session works without them, but not as the user wants it.
pub(super) fn checks(root: &Path, executor: &Executor) -> Vec<DoctorCheck> {
    let mut checks: Vec<DoctorCheck> = executor.base_url.iter().map(|url| provider_check(url)).collect();
    checks.extend(executor.mcp.iter().filter_map(|entry| mcp_check(root, entry)));
    checks.extend(executor.writable.iter().filter_map(|folder| writable_check(folder)));
    checks.extend(instructions_check(root, executor));
    checks
}

fn provider_check(url: &str) -> DoctorCheck {
    DoctorCheck::ok("provider", format!("{}: not tried", one_line(url)))
}

fn mcp_check(root: &Path, entry: &str) -> Option<DoctorCheck> {
    let McpServer { name, transport } = McpServer::parse(entry)?;
    let McpTransport::Program { program, .. } = transport else { return None };
    if executables::find(program, Some(root)).is_some() {
        return None;
    }
    let found =
        format!("{name}: `{program}` does not exist or is not executable: sessions do not have its tools");
    let fix = format!("install it, or change [executor] mcp in {}", Doc::Config.path());
    Some(DoctorCheck::warning("mcp", found, fix))
}

fn writable_check(folder: &str) -> Option<DoctorCheck> {
    if expand_home(folder)?.exists() {
        return None;
    }
    let found = format!("{}: does not exist, and sessions cannot create it", one_line(folder));
    let fix = format!("mkdir -p {folder}, or remove it from [executor] writable in {}", Doc::Config.path());
    Some(DoctorCheck::warning("writable", found, fix))
}

/// The default names of instructions are those that a project may have; others are files that the user wants.
fn instructions_check(root: &Path, executor: &Executor) -> Option<DoctorCheck> {
    let files = &executor.instructions;
    let is_default = *files == Executor::default().instructions;
    if is_default || files.is_empty() || files.iter().any(|file| root.join(file).is_file()) {
        return None;
    }
    let found = format!("there is no {}: prompts have no instructions", one_line(&files.join(", ")));
    let fix = format!("create it, or change [executor] instructions in {}", Doc::Config.path());
    Some(DoctorCheck::warning("instructions", found, fix))
}
