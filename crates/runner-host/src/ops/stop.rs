//! `runner stop`: ends a loop from another terminal, after its current iteration or at once.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::Git;
use crate::repo::locked_repo::UnrecoveredRepo;
use crate::repo::readonly_repo::lock_holder;

/// When a loop stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopTime {
    /// After its current iteration, like the key `q`.
    AfterIteration,
    /// Now: the session ends and its work so far is committed, like Ctrl-C.
    Now,
}

/// The request that a loop looks for between two iterations.
#[derive(Clone, Debug)]
pub struct StopRequest(PathBuf);

impl StopRequest {
    /// For a loop that begins: a request that is older than the loop does not count.
    pub fn forget(repo: &UnrecoveredRepo) -> Result<Self, Error> {
        let request = Self::of(repo.git());
        atomic::remove_any(&request.0)?;
        Ok(request)
    }

    fn of(git: &Git) -> Self {
        Self(git.paths().stop_request())
    }

    pub fn is_made(&self) -> bool {
        self.0.symlink_metadata().is_ok()
    }

    /// For a loop that ends: the runner that works next is not the one that was asked to stop.
    pub fn remove(&self) -> Result<(), Error> {
        if self.is_made() { atomic::remove_any(&self.0) } else { Ok(()) }
    }
}

/// Asks the loop in this work tree to stop, and returns its process. A paused loop has none that can be found.
pub fn stop(dir: &Path, time: StopTime) -> Result<Option<u32>, Error> {
    let git = Git::open(dir)?;
    let holder = lock_holder(&git);
    if holder.is_none() && !git.paths().is_paused() {
        return Err(UserError::NothingRuns.into());
    }
    let request = StopRequest::of(&git);
    atomic::write(&request.0, b"stop\n")?;
    let holder_now = holder.filter(|pid| has_open(*pid, &git.paths().lock()));
    let pid = holder_now.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let (StopTime::Now, Some(pid)) = (time, pid) {
        kill_process(pid, Signal::INT).map_err(Error::io("stop", git.root()))?;
    }
    Ok(holder)
}

/// Whether a process has the lock open. The number in the lock may belong to another process by now, which must not get a
/// signal. Where the system does not show open files, the number counts.
fn has_open(pid: u32, lock: &Path) -> bool {
    let Ok(lock) = lock.canonicalize() else { return false };
    match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(open) => open.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|path| path == lock)),
        Err(_) => !Path::new("/proc/self/fd").exists(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_with_the_lock_open_gets_a_signal() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        assert!(!has_open(std::process::id(), &lock));
        let file = fs::File::create(&lock).unwrap();
        assert!(has_open(std::process::id(), &lock));
        drop(file);
        assert!(!has_open(std::process::id(), &lock));
    }
}
