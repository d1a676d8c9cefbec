//! The lock that allows one runner per work tree. The kernel releases it when its holder dies.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::clock::boot_id;
use crate::error::Error;
use crate::fs::atomic;

/// Held until it is dropped. The lock is a `flock`; the content of the file is only for people.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    /// The folder above the file's own folder is locked too: an agent can remove the lock file, but not the repository.
    _folder: Option<File>,
    /// Exists while the lock is held. Its name is on the disk before that of anything that its holder writes.
    marker: PathBuf,
    leaves_marker: bool,
    last_holder: LastHolder,
}

/// The name of the file beside the lock that exists while the lock is held.
pub(crate) const MARKER: &str = "active";

const BOOT_ID_BYTES_MAX: u64 = 256;

/// How the last holder of the lock ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastHolder {
    Released,
    /// It was killed no earlier than at this time.
    Died(SystemTime),
    /// The machine was restarted since. What was not synced may be lost.
    LostPower(SystemTime),
}

impl Lock {
    /// Fails with [`Error::Locked`] if another process holds it.
    pub(crate) fn acquire(path: &Path) -> Result<Self, Error> {
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o666));
            if let Err(Errno::ISDIR | Errno::LOOP | Errno::NXIO) = file {
                remove_obstacle(path)?;
                continue;
            }
            if matches!(file, Err(Errno::ACCESS)) && make_writable(path) {
                continue;
            }
            let mut file = File::from(file.map_err(Error::io("open the lock", path))?);
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    return Err(Error::Locked { holder: holder_of(&mut file) });
                }
                Err(errno) => return Err(Error::io("lock", path)(errno)),
            }
            if is_same_file(&file, path) {
                let folder = lock_repository_folder(path, &mut file)?;
                let holder = format!("pid {}\n", std::process::id());
                let _ = file.set_len(0).and_then(|()| file.write_all(holder.as_bytes()));
                path.parent().map_or(Ok(()), remove_unfinished_files)?;
                let marker = path.with_file_name(MARKER);
                let last_holder = last_holder(&marker);
                if last_holder == LastHolder::Released {
                    atomic::overwrite(&marker, boot_id().unwrap_or_default().as_bytes())?;
                }
                return Ok(Self { _file: file, _folder: folder, marker, leaves_marker: false, last_holder });
            }
            // The file was removed or replaced before the lock was taken, so the lock on it protects nothing: try again.
        }
    }
}

impl Lock {
    pub(crate) fn last_holder(&self) -> LastHolder {
        self.last_holder
    }

    /// Makes the next holder look for what this one left, as if this one had died.
    pub(crate) fn leave_marker(&mut self) {
        self.leaves_marker = true;
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A marker that stays makes the next holder look for damage, and nothing else.
        if !self.leaves_marker {
            let _ = fs::remove_file(&self.marker);
        }
    }
}

/// The marker has the id of the boot in which it was written. It is not synced: after a power cut it may be empty.
fn last_holder(marker: &Path) -> LastHolder {
    let Ok(time) = fs::symlink_metadata(marker).and_then(|metadata| metadata.modified()) else {
        return LastHolder::Released;
    };
    let content = atomic::read(marker, BOOT_ID_BYTES_MAX).ok().flatten().unwrap_or_default();
    let is_same_boot = boot_id().is_none_or(|boot| boot.as_bytes() == content);
    if is_same_boot { LastHolder::Died(time) } else { LastHolder::LostPower(time) }
}

/// Whether a process holds the lock, whatever the file says about it. Only for a command that takes the lock itself
/// afterwards: for a moment no other process can take it.
pub(crate) fn is_held(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return false };
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Gives the owner access to the lock file, if an agent took it away. False if nothing was missing.
fn make_writable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    let mode = metadata.permissions().mode();
    let is_closed = metadata.is_file() && mode & 0o600 != 0o600;
    is_closed && fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o600)).is_ok()
}

/// Removes what an agent put in the place of the lock file: a folder, a link or a socket. A runner that held the lock before
/// still holds the lock on the repository's folder.
fn remove_obstacle(path: &Path) -> Result<(), Error> {
    if let Some(folder) = path.ancestors().nth(2).and_then(|folder| File::open(folder).ok())
        && rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
    {
        return Err(Error::Locked { holder: String::new() });
    }
    atomic::remove_any(path)
}

/// Locks the folder above the file's own folder, if the file system can lock folders.
fn lock_repository_folder(path: &Path, file: &mut File) -> Result<Option<File>, Error> {
    let folder = path.ancestors().nth(2).and_then(|folder| File::open(folder).ok());
    let Some(folder) = folder else { return Ok(None) };
    match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(folder)),
        Err(Errno::WOULDBLOCK) => Err(Error::Locked { holder: holder_of(file) }),
        Err(_) => Ok(None),
    }
}

/// Removes what a dead runner left in its own folder: git's locks on its indexes, and files that it had not finished writing.
/// The caller holds the lock, so no other runner uses them.
pub(crate) fn remove_unfinished_files(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))?.flatten() {
        let path = entry.path();
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        if is_lock || atomic::is_temporary_name(&entry.file_name()) {
            atomic::remove_file(&path)?;
        }
    }
    Ok(())
}

fn holder_of(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.rewind().and_then(|()| file.take(64).read_to_string(&mut text));
    text.trim().to_owned()
}

fn is_same_file(file: &File, path: &Path) -> bool {
    match (rustix::fs::fstat(file), rustix::fs::lstat(path)) {
        (Ok(open), Ok(on_disk)) => (open.st_dev, open.st_ino) == (on_disk.st_dev, on_disk.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_runner_gets_the_holder_of_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/lock");
        fs::create_dir(folder.path().join("own")).unwrap();
        let first = Lock::acquire(&path).unwrap();
        let Err(Error::Locked { holder }) = Lock::acquire(&path) else {
            panic!("the lock was acquired twice")
        };
        assert_eq!(holder, format!("pid {}", std::process::id()));
        drop(first);
        Lock::acquire(&path).unwrap();
    }

    #[test]
    fn a_process_holds_the_lock_or_not_whatever_the_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/lock");
        fs::create_dir(folder.path().join("own")).unwrap();
        assert!(!is_held(&path), "there is no file");
        fs::write(&path, format!("pid {}", std::process::id())).unwrap();
        assert!(!is_held(&path), "its process lives, but holds no lock");
        let lock = Lock::acquire(&path).unwrap();
        assert!(is_held(&path));
        drop(lock);
        assert!(!is_held(&path));
    }

    #[test]
    fn index_locks_of_a_dead_runner_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("work.index.lock"), "").unwrap();
        let _lock = Lock::acquire(&own.join("lock")).unwrap();
        assert!(!own.join("work.index.lock").exists());
    }

    #[test]
    fn a_lock_whose_file_was_removed_is_still_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/lock");
        fs::create_dir(folder.path().join("own")).unwrap();
        let _lock = Lock::acquire(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(Lock::acquire(&path), Err(Error::Locked { .. })));
    }

    #[test]
    fn a_restart_of_the_machine_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        let holder = || Lock::acquire(&own.join("lock")).unwrap().last_holder();
        assert_eq!(holder(), LastHolder::Released);
        fs::write(own.join(MARKER), boot_id().unwrap_or_default()).unwrap();
        assert!(matches!(holder(), LastHolder::Died(_)), "killed in this boot");
        for content in ["", "of another boot"] {
            fs::write(own.join(MARKER), content).unwrap();
            let is_noticed = matches!(holder(), LastHolder::LostPower(_));
            assert_eq!(is_noticed, boot_id().is_some(), "`{content}`");
        }
    }

    #[test]
    fn a_lock_file_without_a_lock_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/lock");
        fs::create_dir(folder.path().join("own")).unwrap();
        fs::write(&path, "pid 1, left by a process on another machine, longer than the new content").unwrap();
        Lock::acquire(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("pid {}\n", std::process::id()));
    }
}
