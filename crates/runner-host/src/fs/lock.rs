//! One runner per work tree: a lock that the kernel releases when its holder dies.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::error::Error;
use crate::fs::atomic;

/// Held as long as the value lives. What the file says is for people; the lock itself is the kernel's.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
    /// The folder around the file's: an agent can remove the file, but not the repository.
    _folder: Option<File>,
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub(crate) fn acquire(path: &Path) -> Result<Self, Error> {
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o666));
            let mut file = File::from(file.map_err(Error::io("open the lock", path))?);
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(Error::Locked { holder: holder_of(&mut file) });
                }
                Err(errno) => return Err(Error::io("lock", path)(errno)),
            }
            if is_same_file(&file, path) {
                let folder = lock_repository_folder(path, &mut file)?;
                let note = format!("pid {}\n", std::process::id());
                let _ = file.set_len(0).and_then(|()| file.write_all(note.as_bytes()));
                path.parent().map_or(Ok(()), remove_stale_index_locks)?;
                return Ok(Self { _file: file, _folder: folder });
            }
            // The file was removed or replaced in the meantime: a lock on it protects nothing.
        }
    }
}

/// Locks the folder that the file's own folder lies in, where its file system can lock folders.
fn lock_repository_folder(path: &Path, file: &mut File) -> Result<Option<File>, Error> {
    let folder = path.ancestors().nth(2).and_then(|folder| File::open(folder).ok());
    let Some(folder) = folder else { return Ok(None) };
    match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(folder)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked { holder: holder_of(file) }),
        Err(_) => Ok(None),
    }
}

/// Removes the locks on the runner's own indexes that git commands of a dead runner left: whoever holds the lock is
/// alone here.
fn remove_stale_index_locks(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("look at", folder))?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "lock") {
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
        (Ok(open), Ok(there)) => (open.st_dev, open.st_ino) == (there.st_dev, there.st_ino),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_runner_is_told_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/lock");
        fs::create_dir(folder.path().join("own")).unwrap();
        let first = Lock::acquire(&path).unwrap();
        let Err(Error::Locked { holder }) = Lock::acquire(&path) else { panic!("the lock was given twice") };
        assert_eq!(holder, format!("pid {}", std::process::id()));
        drop(first);
        Lock::acquire(&path).unwrap();
    }

    #[test]
    fn what_a_dead_runners_git_left_locked_is_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("work.index.lock"), "").unwrap();
        let _lock = Lock::acquire(&own.join("lock")).unwrap();
        assert!(!own.join("work.index.lock").exists());
    }

    #[test]
    fn a_lock_whose_file_was_removed_still_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/lock");
        fs::create_dir(folder.path().join("own")).unwrap();
        let _lock = Lock::acquire(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(Lock::acquire(&path), Err(Error::Locked { .. })));
    }

    #[test]
    fn a_lock_file_that_someone_left_behind_locks_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own/lock");
        fs::create_dir(folder.path().join("own")).unwrap();
        fs::write(&path, "pid 1, of another machine, with a very long story to tell").unwrap();
        Lock::acquire(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("pid {}\n", std::process::id()));
    }
}
