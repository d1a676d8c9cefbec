//! Starts a program of the runner's own that ends with the runner, even if the runner is killed.
//!
//! Only a process itself can ask the kernel for that, so this binary is also a *launcher*: started with a hidden argument, it asks
//! and becomes the program. On systems without such a request, the program starts directly.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

/// The hidden first argument that makes this binary the launcher.
const LAUNCH_ARG: &str = "__end-with-parent";
/// The exit code of a launcher that could not start its program, as shells have it.
const EXIT_NOT_STARTED: u8 = 126;

/// Whether the `main` of this binary calls [`launch_if_requested`].
static IS_LAUNCHER: AtomicBool = AtomicBool::new(false);

/// Becomes the program of the arguments if this process was started as the launcher. `main` calls this before anything else.
/// Returns if it was not, or with an exit code if the program cannot start.
pub fn launch_if_requested() -> Option<ExitCode> {
    IS_LAUNCHER.store(true, Ordering::Relaxed);
    let mut args = env::args_os().skip(1);
    if args.next()? != LAUNCH_ARG {
        return None;
    }
    let parent = args.next()?;
    let mut program = Command::new(args.next()?);
    program.args(args);
    let why = match end_with_parent(&parent) {
        Ok(()) => program.exec().to_string(),
        Err(why) => why,
    };
    let _ = writeln!(std::io::stderr(), "could not start {}: {why}", program.get_program().display());
    Some(ExitCode::from(EXIT_NOT_STARTED))
}

/// A command for a program that ends with this process. The thread that starts it must wait for it: the program ends with that
/// thread.
pub fn command(program: &Path) -> Command {
    let own = env::current_exe().ok().filter(|own| own.is_file());
    match own.filter(|_| cfg!(target_os = "linux") && IS_LAUNCHER.load(Ordering::Relaxed)) {
        Some(own) => {
            let mut command = Command::new(own);
            command.arg(LAUNCH_ARG).arg(std::process::id().to_string()).arg(program);
            command
        }
        None => Command::new(program),
    }
}

#[cfg(target_os = "linux")]
fn end_with_parent(parent: &OsString) -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|errno| errno.to_string())?;
    // The parent may have ended before the request.
    let is_alive = rustix::process::getppid().is_some_and(|pid| pid.to_string().as_str() == parent);
    if is_alive { Ok(()) } else { Err("the runner has ended".to_owned()) }
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent(_: &OsString) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_cannot_launch_starts_the_program_directly() {
        assert_eq!(command(Path::new("/usr/bin/true")).get_program(), "/usr/bin/true");
    }
}
