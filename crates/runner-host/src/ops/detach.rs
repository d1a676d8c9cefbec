//! A loop in the background: this binary once more, in a session of its own, with its output in a log.
//!
//! Until its first session begins, the loop belongs to the terminal: what goes wrong is printed there, and Ctrl-C ends it.
//! It reports how far it is through a pipe, which it gets as its standard input.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};

use crate::error::Error;
use crate::fs::atomic;
use crate::fs::lock;
use crate::git::Git;
use crate::repo::git_dir_repair;
use crate::repo::readonly_repo::ReadonlyRepo;

const BASELINE: u8 = b'b';
const WORKING: u8 = b'w';

/// A loop that was started in the background.
#[derive(Debug)]
pub struct DetachedLoop {
    child: Child,
    reports: File,
    /// Where its output goes.
    pub log: PathBuf,
}

/// How far a loop in the background is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetachReport {
    /// The guard runs before the first session.
    Baseline,
    /// It works on its own from now on.
    Working,
    /// It ended before that, with this exit code.
    Ended(u8),
}

impl DetachedLoop {
    /// Starts this binary with these arguments. The log of the loop before it is kept beside its own.
    pub fn spawn(dir: &Path, arguments: &[OsString]) -> Result<Self, Error> {
        git_dir_repair::repair(dir)?;
        let git = Git::open(dir)?;
        let holder = ReadonlyRepo::open(dir)?.lock_holder();
        if let Some(pid) = holder.filter(|_| lock::is_held(&git.paths().lock())) {
            // Its log must stay where it is.
            return Err(Error::Locked { holder: format!("pid {pid}") });
        }
        let log = git.paths().loop_log();
        atomic::create_folders(git.paths().git_dir(), &git.paths().private())?;
        if log.symlink_metadata().is_ok() {
            let old = git.paths().old_loop_log();
            atomic::remove_any(&old)?;
            std::fs::rename(&log, &old).map_err(Error::io("rename", &log))?;
        }
        let output = File::options().create_new(true).append(true).open(&log);
        let output = output.map_err(Error::io("create", &log))?;
        let failed = |error: io::Error| Error::io("start the loop in", git.root())(error);
        let (reports, report_to) = io::pipe().map_err(failed)?;
        let child = std::env::current_exe()
            .and_then(|binary| {
                Command::new(binary)
                    .args(arguments)
                    .stdin(Stdio::from(std::os::fd::OwnedFd::from(report_to)))
                    .stdout(output)
                    .spawn()
            })
            .map_err(failed)?;
        let reports = File::from(std::os::fd::OwnedFd::from(reports));
        Ok(Self { child, reports, log })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next report.
    pub fn next_report(&mut self) -> DetachReport {
        let mut report = [0];
        match self.reports.read_exact(&mut report).map(|()| report) {
            Ok([BASELINE]) => DetachReport::Baseline,
            Ok([WORKING]) => DetachReport::Working,
            Ok(_) | Err(_) => {
                let code = self.child.wait().ok().and_then(|status| status.code());
                DetachReport::Ended(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
            }
        }
    }
}

/// The side of the loop that was started.
#[derive(Debug)]
pub struct Detachment(File);

impl Detachment {
    /// Takes the pipe from standard input, so that no program of the loop inherits it.
    pub fn take() -> Result<Self, Error> {
        let failed =
            |errno: rustix::io::Errno| Error::io("use standard input of", Path::new("/dev/stdin"))(errno);
        let report_to = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map_err(failed)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        rustix::stdio::dup2_stdin(null.map_err(failed)?).map_err(failed)?;
        Ok(Self(File::from(report_to)))
    }

    /// Reports that the guard runs before the first session.
    pub fn report_baseline(&mut self) {
        let _ = self.0.write_all(&[BASELINE]);
    }

    /// Leaves the terminal: a session of its own, and errors go to the log from now on.
    pub fn detach(mut self) {
        let _ = rustix::process::setsid();
        let _ = rustix::stdio::dup2_stderr(rustix::stdio::stdout());
        let _ = self.0.write_all(&[WORKING]);
    }
}
