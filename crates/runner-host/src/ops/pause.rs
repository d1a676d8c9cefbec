//! Pausing a run between two iterations: a mark in the git folder, which a loop looks for and waits at.

use std::path::Path;
use std::time::Duration;

use runner_core::layout::RUNNER_DIR;

use crate::clock::now_ms;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::Git;
use crate::repo::paths::RepoPaths;
use crate::repo::readonly_repo::ReadonlyRepo;

/// What became of a wish to pause or to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseStatus {
    /// Whether the run was paused before.
    pub was_paused: bool,
    /// The process of a runner that is at work, and goes on until its iteration is over.
    pub lock_holder: Option<u32>,
}

/// How often somebody who waits looks up.
const TICK: Duration = Duration::from_millis(50);

/// Asks for a pause. A loop takes it after the iteration that it is making.
pub fn pause(dir: &Path) -> Result<PauseStatus, Error> {
    let git = opened(dir)?;
    let was_paused = is_paused(git.paths());
    if !was_paused {
        atomic::ensure_folder(&git.paths().private())?;
        atomic::write(&git.paths().pause(), format!("{}\n", now_ms()).as_bytes())?;
    }
    Ok(PauseStatus { was_paused, lock_holder: ReadonlyRepo::open(dir)?.lock_holder() })
}

/// Ends a pause.
pub fn resume(dir: &Path) -> Result<PauseStatus, Error> {
    let git = opened(dir)?;
    let was_paused = is_paused(git.paths());
    // Asked first: a loop that waits is at work as soon as the mark is gone.
    let at_work = ReadonlyRepo::open(dir)?.lock_holder();
    atomic::clear(&git.paths().pause())?;
    Ok(PauseStatus { was_paused, lock_holder: at_work })
}

/// Waits until no runner is at work.
pub fn wait_until_free(dir: &Path) -> Result<(), Error> {
    let reading = ReadonlyRepo::open(dir)?;
    while reading.lock_holder().is_some() {
        std::thread::sleep(TICK);
    }
    Ok(())
}

pub(crate) fn is_paused(paths: &RepoPaths) -> bool {
    paths.pause().symlink_metadata().is_ok()
}

fn opened(dir: &Path) -> Result<Git, Error> {
    let git = Git::open(dir)?;
    if git.root().join(RUNNER_DIR).symlink_metadata().is_err() {
        return Err(UserError::NotSetUp(git.root().to_owned()).into());
    }
    Ok(git)
}
