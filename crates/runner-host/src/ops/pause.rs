//! `runner pause` and `runner resume`: a marker file in the git folder, which a loop checks between two iterations.

use std::path::Path;
use std::time::Duration;

use runner_core::layout::RUNNER_DIR;

use crate::clock::now_ms;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::Git;
use crate::repo::readonly_repo::ReadonlyRepo;

/// The result of [`pause`] or [`resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseStatus {
    pub was_paused: bool,
    /// The process of a runner that is in the middle of an iteration, and finishes it first.
    pub lock_holder: Option<u32>,
}

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Pauses a loop after its current iteration.
pub fn pause(dir: &Path) -> Result<PauseStatus, Error> {
    let git = open_initialized(dir)?;
    let was_paused = git.paths().is_paused();
    if !was_paused {
        atomic::ensure_folder(&git.paths().private())?;
        atomic::write(&git.paths().pause(), format!("{}\n", now_ms()).as_bytes())?;
    }
    Ok(PauseStatus { was_paused, lock_holder: ReadonlyRepo::open(dir)?.lock_holder() })
}

pub fn resume(dir: &Path) -> Result<PauseStatus, Error> {
    let git = open_initialized(dir)?;
    let was_paused = git.paths().is_paused();
    // Read before the marker goes: a waiting loop takes the lock as soon as it is gone.
    let lock_holder = ReadonlyRepo::open(dir)?.lock_holder();
    atomic::remove_any(&git.paths().pause())?;
    Ok(PauseStatus { was_paused, lock_holder })
}

/// Waits until no runner holds the lock.
pub fn wait_until_free(dir: &Path) -> Result<(), Error> {
    let repo = ReadonlyRepo::open(dir)?;
    while repo.lock_holder().is_some() {
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn open_initialized(dir: &Path) -> Result<Git, Error> {
    let git = Git::open(dir)?;
    if git.root().join(RUNNER_DIR).symlink_metadata().is_err() {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    Ok(git)
}
