//! Reading files beneath one folder and nowhere else.
//!
//! An agent may have put anything under `.runner/`: links, pipes, sockets, devices. Every name on the way is opened
//! relative to the folder before it, no link is followed, nothing that could block is waited for, and only plain
//! files are read.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

/// A folder to read in.
#[derive(Debug)]
pub(crate) struct ConfinedDir {
    handle: OwnedFd,
}

/// What tells one version of a file from the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileVersion {
    inode: u64,
    pub(crate) bytes: u64,
    modified: (i64, i64),
}

impl FileVersion {
    #[expect(clippy::useless_conversion, reason = "the types differ between systems")]
    fn of_plain(found: &rustix::fs::Stat) -> Option<Self> {
        let is_plain = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        is_plain.then(|| Self {
            inode: found.st_ino,
            bytes: u64::try_from(found.st_size).unwrap_or_default(),
            modified: (i64::from(found.st_mtime), i64::try_from(found.st_mtime_nsec).unwrap_or_default()),
        })
    }

    /// Whether this may be the earlier version with more at its end.
    pub(crate) fn continues(&self, earlier: &Self) -> bool {
        self.inode == earlier.inode && self.bytes >= earlier.bytes
    }
}

/// A plain file that is open.
#[derive(Debug)]
pub(crate) struct RegularFile {
    file: File,
    pub(crate) stamp: FileVersion,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PLAIN: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

impl ConfinedDir {
    /// Opens the folder that everything else is read beneath.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { handle: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// A folder in it, by names that are each one step down.
    pub(crate) fn folder(&self, path: &str) -> io::Result<Self> {
        let mut handle = self.handle.try_clone()?;
        for name in path.split('/') {
            handle = rustix::fs::openat(&handle, step(name)?, FOLDER, Mode::empty())?;
        }
        Ok(Self { handle })
    }

    /// A plain file in it.
    pub(crate) fn file(&self, path: &str) -> io::Result<RegularFile> {
        let not_plain = || io::Error::new(io::ErrorKind::PermissionDenied, "it is not a plain file");
        let (folder, name) = self.place(path)?;
        // Looked at before it is opened: opening a device or a pipe can already do something.
        FileVersion::of_plain(&rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
            .ok_or_else(not_plain)?;
        let file = File::from(rustix::fs::openat(&folder, name, PLAIN, Mode::empty())?);
        let stamp = FileVersion::of_plain(&rustix::fs::fstat(&file)?).ok_or_else(not_plain)?;
        Ok(RegularFile { file, stamp })
    }

    /// The version of a plain file, if it is there. What stands there and is none counts as nothing.
    pub(crate) fn stamp(&self, path: &str) -> Option<FileVersion> {
        let (folder, name) = self.place(path).ok()?;
        FileVersion::of_plain(&rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?)
    }

    /// The folder that a path leads to, and the last name on it.
    fn place<'p>(&self, path: &'p str) -> io::Result<(OwnedFd, &'p str)> {
        match path.rsplit_once('/') {
            Some((folder, name)) => Ok((self.folder(folder)?.handle, step(name)?)),
            None => Ok((self.handle.try_clone()?, step(path)?)),
        }
    }

    /// A small file, whole.
    pub(crate) fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.file(path)?.whole(bytes_max)
    }

    /// The names in it, sorted.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.handle.as_fd())? {
            match entry?.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The names in it, with what tells one file from any other.
    pub(crate) fn inodes(&self) -> io::Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.handle.as_fd())? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str() {
                found.push((name.to_owned(), entry.ino()));
            }
        }
        Ok(found)
    }

    /// What tells this folder from any other.
    pub(crate) fn inode(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.handle)?.st_ino)
    }

    /// Where a link in it leads, as a text. The link is not followed.
    pub(crate) fn link(&self, name: &str) -> io::Result<String> {
        let target = rustix::fs::readlinkat(&self.handle, step(name)?, Vec::new())?;
        target.into_string().map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

/// A name that leads one step down.
fn step(name: &str) -> io::Result<&str> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file"));
    }
    Ok(name)
}

impl RegularFile {
    /// Everything in it, unless that is too much.
    pub(crate) fn whole(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        if self.stamp.bytes > bytes_max {
            let says = format!("it has {} bytes, and no more than {bytes_max} are read", self.stamp.bytes);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, says));
        }
        self.piece(0, usize::try_from(self.stamp.bytes).unwrap_or_default())
    }

    /// Some bytes from a place on; fewer where the file ends.
    pub(crate) fn piece(&self, from: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; bytes_max];
        let mut filled = 0;
        while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
            let place = from.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
            match self.file.read_at(room, place) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_plain_files_beneath_the_folder_are_read() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("inside");
        std::fs::create_dir_all(inside.join("a/b")).unwrap();
        std::fs::write(place.path().join("secret"), "s").unwrap();
        std::fs::write(inside.join("a/b/c"), "hello").unwrap();
        symlink("../secret", inside.join("link")).unwrap();
        symlink(place.path(), inside.join("a/out")).unwrap();
        symlink("b", inside.join("a/also")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, inside.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let folder = ConfinedDir::open(&inside).unwrap();
        assert_eq!(folder.read("a/b/c", 5).unwrap(), b"hello");
        assert_eq!(folder.file("a/b/c").unwrap().piece(1, 3).unwrap(), b"ell");
        assert_eq!(folder.read("a/b/c", 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        for bad in [
            "link",
            "a/out/secret",
            "a/also/c",
            "../secret",
            "a/../a/b/c",
            "/etc/passwd",
            "",
            "a",
            "pipe",
            "a//b/c",
            "a/./b/c",
        ] {
            assert!(folder.read(bad, 99).is_err(), "{bad}");
        }
        assert_eq!(folder.folder("a").unwrap().names().unwrap(), ["also", "b", "out"]);
    }
}
