//! Runs the user's hooks: outside the repository, for a short time, and without effect on the run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::config::{CommandArgv, HooksConfig};
use runner_core::step::HookCall;
use runner_core::strict::canonical_json;
use supervise::{ExitReason, OutputTarget, ProcessSpec, TimeLimits};

use super::program_runner::ProgramRunner;
use crate::agent::command::{self, PreparedCommand};
use crate::fs::atomic;
use crate::paths::RepoPaths;

/// How much of a hook's output is kept.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;

/// Runs a hook with its payload on standard input; returns why it failed.
pub(super) fn run(
    call: &HookCall,
    hooks: &HooksConfig,
    paths: &RepoPaths,
    programs: &ProgramRunner,
) -> Result<(), String> {
    let PreparedCommand { argv, environment, .. } = program(&call.argv, paths.root())?;
    atomic::write_no_sync(&paths.hook_input(), &canonical_json(&call.payload))
        .map_err(|error| error.to_string())?;
    let wall = Duration::from_secs(hooks.timeout_secs.as_u64());
    let output = OutputTarget::combined(paths.hook_log(), OUTPUT_BYTES_MAX);
    let spec = ProcessSpec::new(argv, home(), output)
        .env(environment)
        .stdin_file(paths.hook_input())
        .time_limits(TimeLimits::wall(wall));
    // A user who stops the run still wants the hook that reports the stop.
    let result = programs.run_uncancelled(spec).map_err(|error| error.to_string())?;
    atomic::remove_any(&paths.hook_input()).map_err(|error| error.to_string())?;
    if result.exit.is_success() {
        return Ok(());
    }
    if matches!(result.exit, ExitReason::TimedOut) {
        return Err(format!("it took longer than {} seconds", wall.as_secs()));
    }
    Err(format!("it {}", result.exit))
}

/// The program of a hook. Refuses one inside the repository, which an agent can have written.
pub(crate) fn program(argv: &CommandArgv, root: &Path) -> Result<PreparedCommand, String> {
    let name = argv.program();
    if name.contains('/') {
        let path = Path::new(name);
        if !path.is_absolute() {
            return Err(format!("`{name}` is not an absolute path"));
        }
        if path.canonicalize().is_ok_and(|path| path.starts_with(root)) {
            return Err(format!("`{name}` is inside the repository, where agents can change it"));
        }
    }
    command::resolve_command(argv.words(), root)
}

/// The working directory of hooks.
pub(super) fn home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/"))
}
