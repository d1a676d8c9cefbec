//! Keeps a program from abstract sockets outside of it, such as the one of X11. No mount hides them: they have a name and no
//! path.
//!
//! Linux scopes them with Landlock, from 6.12 on. A scope holds for the thread that sets it and for all that it starts, so
//! this binary is also a *launcher*: started with a hidden argument, it scopes itself and becomes the program. The supervisor
//! needs no process for that: it starts such programs from a thread that has a scope.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// The hidden first argument that makes this binary the launcher.
const LAUNCH_ARG: &str = "__scope-sockets";
/// The exit code of a launcher that could not start its program, as shells have it.
const EXIT_NOT_STARTED: u8 = 126;

/// Whether the `main` of this binary calls [`launch_if_requested`].
static IS_LAUNCHER: AtomicBool = AtomicBool::new(false);

/// Becomes the program of the arguments, with a scope, if this process was started as the launcher. `main` calls this before
/// anything else. Returns if it was not, or with an exit code if the program cannot start.
pub fn launch_if_requested() -> Option<ExitCode> {
    IS_LAUNCHER.store(true, Ordering::Relaxed);
    let mut args = env::args_os().skip(1);
    if args.next()? != LAUNCH_ARG {
        return None;
    }
    let mut program = Command::new(args.next()?);
    program.args(args);
    let why = match system::restrict() {
        Ok(()) => program.exec().to_string(),
        Err(why) => why,
    };
    let _ = writeln!(io::stderr(), "could not start {}: {why}", program.get_program().display());
    Some(ExitCode::from(EXIT_NOT_STARTED))
}

/// The words to put before a command line so that the program cannot reach abstract sockets outside of it; none on a system
/// without such sockets. `Err` has why this system cannot do it.
pub fn launcher() -> Result<Vec<OsString>, String> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    system::check()?;
    if !IS_LAUNCHER.load(Ordering::Relaxed) {
        return Err("this program has no launcher".to_owned());
    }
    let own = env::current_exe().map_err(|error| error.to_string())?;
    Ok(vec![existing(own).ok_or("the program `runner` was removed")?.into(), LAUNCH_ARG.into()])
}

/// The program and its arguments behind the words of [`launcher`], if a command line begins with them.
pub(crate) fn launched(argv: &[OsString]) -> Option<&[OsString]> {
    let [own, marker, program @ ..] = argv else { return None };
    let is_own = env::current_exe().ok().and_then(existing).is_some_and(|path| path == *own);
    (is_own && marker == LAUNCH_ARG && !program.is_empty()).then_some(program)
}

/// A thread with a scope, which starts programs. It stays: a sandbox that ends with its parent ends with the thread that
/// started it.
pub(crate) struct ScopedThread {
    commands: Sender<Command>,
    started: Receiver<io::Result<Child>>,
}

impl ScopedThread {
    /// `Err` has why this system cannot do it.
    pub(crate) fn start() -> Result<Self, String> {
        let (commands, received) = mpsc::channel::<Command>();
        let (results, started) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let work = move || {
            let scope = system::restrict();
            let is_scoped = scope.is_ok();
            if ready.send(scope).is_err() || !is_scoped {
                return;
            }
            for mut command in received {
                let child = command.spawn();
                // With the command go its ends of the program's pipes.
                drop(command);
                if results.send(child).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("scoped".to_owned());
        thread.spawn(work).map_err(|error| error.to_string())?;
        is_ready.recv().map_err(|error| error.to_string())??;
        Ok(Self { commands, started })
    }

    pub(crate) fn spawn(&self, command: Command) -> io::Result<Child> {
        self.commands.send(command).map_err(io::Error::other)?;
        self.started.recv().map_err(io::Error::other)?
    }
}

/// The path of this binary, or of the one that replaced it: the kernel marks the path of a replaced file.
fn existing(own: PathBuf) -> Option<PathBuf> {
    let replaced = own.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    std::iter::once(own).chain(replaced).find(|path| path.is_file())
}

#[cfg(target_os = "linux")]
mod system {
    use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetStatus, Scope};

    /// Whether the kernel has scopes.
    pub(super) fn check() -> Result<(), String> {
        scope().map(drop)
    }

    /// Scopes this process and all that it starts. Files and the network are not restricted.
    pub(super) fn restrict() -> Result<(), String> {
        let status = scope()?.restrict_self().map_err(|error| error.to_string())?;
        match status.ruleset {
            RulesetStatus::FullyEnforced => Ok(()),
            RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => Err(MISSING.to_owned()),
        }
    }

    const MISSING: &str = "the kernel has no Landlock scopes (Linux 6.12)";

    fn scope() -> Result<RulesetCreated, String> {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let ruleset = ruleset.scope(Scope::AbstractUnixSocket).map_err(|_| MISSING)?;
        ruleset.create().map_err(|_| MISSING.to_owned())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn check() -> Result<(), String> {
        Err("only Linux has abstract sockets".to_owned())
    }

    pub(super) fn restrict() -> Result<(), String> {
        check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_binary_is_found_under_its_own_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runner");
        let deleted = folder.path().join("runner (deleted)");
        assert_eq!(existing(deleted.clone()), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(existing(deleted), Some(path.clone()));
        assert_eq!(existing(path.clone()), Some(path));
    }

    #[test]
    fn a_binary_that_cannot_launch_does_not_claim_it() {
        assert!(launcher().is_err(), "this test program does not call launch_if_requested");
    }
}
