//! A repository held for writing: its lock, and the recovery of whatever a crash left unfinished.

use std::path::Path;
use std::time::SystemTime;

use runner_core::config::Config;
use runner_core::layout::Doc;

use super::documents::read_doc;
use super::git_dir_repair;
use super::leftovers;
use super::recovery::{self, Recovered, RecoveryNote};
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::lock::{LastHolder, Lock};
use crate::git::Git;
use crate::iteration::event_log::EventLog;
use crate::iteration::program_runner::ProgramRunner;
use crate::repo::repo_guard::{is_closed, make_folders_writable};
use crate::repo::worktree::remove_blocking_files;

/// A repository whose lock is held, but in which a crash may have left something unfinished.
#[derive(Debug)]
pub struct UnrecoveredRepo {
    git: Git,
    lock: Lock,
    private_folder: PrivateFolder,
}

/// Whether the runner's folder in the git directory was there. After a session in progress it is missing only if the session
/// removed it, and the journal with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrivateFolder {
    Existed,
    Created,
}

impl PrivateFolder {
    fn create(git: &Git) -> Result<Self, Error> {
        let folder = git.paths().private();
        let exists = folder.symlink_metadata().is_ok();
        atomic::create_folders(git.paths().git_dir(), &folder)?;
        atomic::make_private(&folder);
        Ok(if exists { Self::Existed } else { Self::Created })
    }
}

impl UnrecoveredRepo {
    /// Locks the repository that contains `dir`.
    pub fn lock(dir: &Path) -> Result<Self, Error> {
        git_dir_repair::repair(dir)?;
        let mut git = Git::open(dir)?;
        git.mark_as_writer();
        // A session without a sandbox may have taken the owner's rights away, and died with the runner.
        let has_journal = || git.paths().journal().exists();
        if is_closed(&git.paths().private()) || is_closed(git.paths().git_dir()) && has_journal() {
            make_folders_writable(&git);
        }
        let private_folder = PrivateFolder::create(&git)?;
        let lock = Lock::acquire(&git.paths().lock())?;
        if git.paths().journal().exists() {
            // A session that a crash interrupted may have left what blocks every git command.
            remove_blocking_files(git.root());
        }
        // An index that cannot be read is replaced by the recovery.
        let _ = git.check_out_runner_folder();
        allow_configured_filters(&mut git)?;
        Ok(Self { git, lock, private_folder })
    }

    /// How the last runner ended. A folder that had to be created tells nothing.
    fn last_holder(&self) -> LastHolder {
        match self.private_folder {
            PrivateFolder::Existed => self.lock.last_holder(),
            PrivateFolder::Created => LastHolder::Died(SystemTime::UNIX_EPOCH),
        }
    }

    /// The root of the work tree.
    pub fn root(&self) -> &Path {
        self.git.root()
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// Finishes whatever a crash left.
    pub(crate) fn recover(
        self,
        programs: &ProgramRunner,
        events: &mut EventLog<'_>,
    ) -> Result<LockedRepo, Error> {
        let last_holder = self.last_holder();
        let mut repo = LockedRepo { git: self.git, lock: Some(self.lock), recovered: None };
        leftovers::remove(&repo.git, last_holder)?;
        if self.private_folder == PrivateFolder::Created {
            repo.recovered = recovery::recover_removed_journal(&repo.git)?;
        }
        if repo.recovered.is_none() && last_holder != LastHolder::Released {
            repo.recovered = recovery::reject_unrecorded(&repo.git)?;
        }
        if repo.recovered.is_none() {
            repo.recover(programs, events)?;
        }
        Ok(repo)
    }
}

/// A repository held for writing, in which nothing is unfinished.
#[derive(Debug)]
pub struct LockedRepo {
    git: Git,
    /// Held, except while the run is paused.
    lock: Option<Lock>,
    recovered: Option<Recovered>,
}

impl LockedRepo {
    /// Locks the repository that contains `dir` and finishes whatever a crash left.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let programs = ProgramRunner::new()?;
        UnrecoveredRepo::lock(dir)?.recover(&programs, &mut EventLog::without_sink())
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// Refuses to run another session if the last ones all ended with the runner. Running the command again goes on.
    pub(crate) fn refuse_crash_loop(&self) -> Result<(), Error> {
        let note = self.recovered.as_ref().and_then(|_| RecoveryNote::read(&self.git));
        note.map_or(Ok(()), |note| note.refuse_crash_loop())
    }

    /// What a crash had left, for the report of the command that finished it.
    pub(crate) fn take_recovered(&mut self) -> Option<Recovered> {
        self.recovered.take()
    }

    /// Releases the lock, so that other commands can use the repository.
    pub(crate) fn unlock(&mut self) {
        self.lock = None;
    }

    /// Takes the lock again after [`unlock`](Self::unlock). Fails with [`Error::Locked`] while another runner holds it.
    pub(crate) fn relock(&mut self) -> Result<(), Error> {
        let lock = Lock::acquire(&self.git.paths().lock())?;
        let last_holder = lock.last_holder();
        self.lock = Some(lock);
        leftovers::remove(&self.git, last_holder)?;
        allow_configured_filters(&mut self.git)
    }

    /// Finishes whatever a crash left, of this runner or of another one while the lock was released.
    pub(crate) fn recover(
        &mut self,
        programs: &ProgramRunner,
        events: &mut EventLog<'_>,
    ) -> Result<(), Error> {
        self.recovered = recovery::recover(&self.git, programs, events)?;
        if self.recovered.is_some() {
            // Recovery may have restored another configuration.
            allow_configured_filters(&mut self.git)?;
        }
        Ok(())
    }
}

impl Drop for LockedRepo {
    /// A git command that failed may have left its lock, which the next runner removes.
    fn drop(&mut self) {
        if let Some(lock) = self.lock.as_mut().filter(|_| leftovers::has_ref_locks(&self.git)) {
            lock.leave_marker();
        }
    }
}

/// Allows the git filters that the configuration lists. Reads nothing if the repository defines no filter; an invalid
/// configuration is reported later, when the state is loaded.
fn allow_configured_filters(git: &mut Git) -> Result<(), Error> {
    if !git.defines_filters() {
        return Ok(());
    }
    let bytes = read_doc(git, Doc::Config).ok().flatten();
    let config = bytes.and_then(|bytes| Config::decode(&bytes).ok()).unwrap_or_default();
    git.allow_filters(&config.git.filters)
}
