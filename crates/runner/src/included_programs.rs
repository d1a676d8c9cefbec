//! The programs that `runner` contains, so that one file is enough to install everything: `runner-ui` and `runner-eval`.
//!
//! Each stays a process of its own. `runner ui` executes this file again under the name `runner-ui`, and a link of that name does
//! the same.

use std::path::Path;
use std::process::ExitCode;

use supervise::executables::include_programs;

const PROGRAMS: &[&str] = &[
    "runner",
    #[cfg(feature = "eval")]
    "runner-eval",
    #[cfg(feature = "ui")]
    "runner-ui",
];

/// Runs the program that the process was started as, unless that is `runner` itself.
pub fn run() -> Option<ExitCode> {
    include_programs(PROGRAMS);
    #[cfg(feature = "eval")]
    if runner_eval::worker::is_worker() {
        return Some(runner_eval::worker::main());
    }
    let program = std::env::args_os().next()?;
    match Path::new(&program).file_name()?.to_str()? {
        #[cfg(feature = "eval")]
        "runner-eval" => Some(runner_eval::main()),
        #[cfg(feature = "ui")]
        "runner-ui" => Some(runner_ui::main()),
        _ => None,
    }
}
