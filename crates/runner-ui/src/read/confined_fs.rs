//! Reads files below one folder and nowhere else.
//!
//! An agent may create anything under `.runner/`: links, pipes, sockets, devices. Every component of a path is opened
//! relative to the folder before it, no link is followed, no open blocks, and only regular files are read.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

/// A document of this size is read into a buffer of [`MAPPED_BYTES`].
const LARGE_BYTES: usize = 1 << 20;
/// glibc gives a buffer of this size back to the system as soon as it is freed. From each smaller one that is freed, it learns
/// to keep buffers up to that size, and one large plan would make the server keep twice its size.
const MAPPED_BYTES: usize = 33 << 20;

/// A folder whose files are read through its handle.
#[derive(Debug)]
pub(crate) struct ConfinedDir {
    handle: OwnedFd,
}

/// Distinguishes the versions of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    inode: u64,
    pub(crate) bytes: u64,
    modified: (i64, i64),
}

impl FileVersion {
    #[expect(clippy::useless_conversion, reason = "the types differ between systems")]
    fn of_regular_file(stat: &rustix::fs::Stat) -> Option<Self> {
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_regular.then(|| Self {
            inode: stat.st_ino,
            bytes: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: (i64::from(stat.st_mtime), i64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
        })
    }

    /// When its content last changed, in seconds since 1970.
    pub(crate) fn modified_secs(&self) -> u64 {
        u64::try_from(self.modified.0).unwrap_or_default()
    }

    /// Whether this may be the earlier version with bytes appended.
    pub(crate) fn continues(&self, earlier: &Self) -> bool {
        self.inode == earlier.inode && self.bytes >= earlier.bytes
    }
}

/// Distinguishes the versions of a folder's list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FolderVersion {
    inode: u64,
    modified: (i64, i64),
}

impl FolderVersion {
    /// Whether every change since has another version: a change within the clock's precision of the last one may not.
    pub(crate) fn is_settled(&self, unix_secs: u64) -> bool {
        u64::try_from(self.modified.0).is_ok_and(|modified| modified + 1 < unix_secs)
    }
}

/// An open regular file.
#[derive(Debug)]
pub(crate) struct RegularFile {
    file: File,
    pub(crate) stamp: FileVersion,
}

const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

impl ConfinedDir {
    /// Opens the folder that everything else is read below. Links in `path` are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { handle: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// A folder below it.
    pub(crate) fn folder(&self, path: &str) -> io::Result<Self> {
        let mut names = path.split('/');
        let open = |folder: BorrowedFd<'_>, name: &str| -> io::Result<OwnedFd> {
            Ok(rustix::fs::openat(folder, component(name)?, FOLDER_FLAGS, Mode::empty())?)
        };
        let mut handle = open(self.handle.as_fd(), names.next().unwrap_or_default())?;
        for name in names {
            handle = open(handle.as_fd(), name)?;
        }
        Ok(Self { handle })
    }

    /// A regular file below it.
    pub(crate) fn file(&self, path: &str) -> io::Result<RegularFile> {
        let not_regular = || io::Error::new(io::ErrorKind::PermissionDenied, "it is not a regular file");
        let parent = self.parent(path)?;
        let (folder, name) = (parent.handle(self), parent.name);
        // Checked before it is opened: opening a device or a pipe can have side effects.
        FileVersion::of_regular_file(&rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
            .ok_or_else(not_regular)?;
        let file = File::from(rustix::fs::openat(folder, name, FILE_FLAGS, Mode::empty())?);
        let stamp = FileVersion::of_regular_file(&rustix::fs::fstat(&file)?).ok_or_else(not_regular)?;
        Ok(RegularFile { file, stamp })
    }

    /// The version of a regular file; `None` for anything else.
    pub(crate) fn stamp(&self, path: &str) -> Option<FileVersion> {
        let parent = self.parent(path).ok()?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        FileVersion::of_regular_file(&rustix::fs::statat(parent.handle(self), parent.name, flags).ok()?)
    }

    /// The folder of a file, and the file's name in it.
    fn parent<'p>(&self, path: &'p str) -> io::Result<ParentFolder<'p>> {
        Ok(match path.rsplit_once('/') {
            Some((folder, name)) => {
                ParentFolder { below: Some(self.folder(folder)?), name: component(name)? }
            }
            None => ParentFolder { below: None, name: component(path)? },
        })
    }

    /// The content of a file of at most `bytes_max` bytes.
    pub(crate) fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.file(path)?.read_all(bytes_max)
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

    /// The names in it with their inodes.
    pub(crate) fn inodes(&self) -> io::Result<Vec<(String, u64)>> {
        let mut inodes = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.handle.as_fd())? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().to_str() {
                inodes.push((name.to_owned(), entry.ino()));
            }
        }
        Ok(inodes)
    }

    #[expect(clippy::useless_conversion, reason = "the types differ between systems")]
    pub(crate) fn version(&self) -> io::Result<FolderVersion> {
        let stat = rustix::fs::fstat(&self.handle)?;
        let modified = (i64::from(stat.st_mtime), i64::try_from(stat.st_mtime_nsec).unwrap_or_default());
        Ok(FolderVersion { inode: stat.st_ino, modified })
    }

    pub(crate) fn inode(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.handle)?.st_ino)
    }

    /// The target of a symbolic link in it. The link is not followed.
    pub(crate) fn link(&self, name: &str) -> io::Result<String> {
        let target = rustix::fs::readlinkat(&self.handle, component(name)?, Vec::new())?;
        target.into_string().map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

/// The folder of a file. A file of the folder itself needs no handle of its own.
struct ParentFolder<'p> {
    below: Option<ConfinedDir>,
    name: &'p str,
}

impl ParentFolder<'_> {
    fn handle<'h>(&'h self, folder: &'h ConfinedDir) -> BorrowedFd<'h> {
        self.below.as_ref().unwrap_or(folder).handle.as_fd()
    }
}

/// Checks that a name is one component of a path, and not `.` or `..`.
fn component(name: &str) -> io::Result<&str> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file name"));
    }
    Ok(name)
}

impl RegularFile {
    /// The whole content, if it has at most `bytes_max` bytes.
    pub(crate) fn read_all(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        if self.stamp.bytes > bytes_max {
            let message = format!("it has {} bytes, more than the limit of {bytes_max}", self.stamp.bytes);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let bytes = usize::try_from(self.stamp.bytes).unwrap_or_default();
        let mut buffer = Vec::new();
        if bytes >= LARGE_BYTES {
            buffer.reserve_exact(bytes.max(MAPPED_BYTES));
        }
        self.fill(buffer, 0, bytes)
    }

    /// Up to `bytes_max` bytes from an offset on; fewer at the end that the file had when it was opened.
    pub(crate) fn piece(&self, from: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.stamp.bytes.saturating_sub(from)).unwrap_or(usize::MAX);
        self.fill(Vec::new(), from, bytes_max.min(left))
    }

    /// Reads `len` bytes from an offset on into an empty buffer.
    fn fill(&self, mut bytes: Vec<u8>, from: u64, len: usize) -> io::Result<Vec<u8>> {
        bytes.resize(len, 0);
        let mut filled = 0;
        while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
            let offset = from.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
            match self.file.read_at(room, offset) {
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
    fn only_regular_files_below_the_folder_are_read() {
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("inside");
        std::fs::create_dir_all(inside.join("a/b")).unwrap();
        std::fs::write(around.path().join("secret"), "s").unwrap();
        std::fs::write(inside.join("a/b/c"), "hello").unwrap();
        symlink("../secret", inside.join("link")).unwrap();
        symlink(around.path(), inside.join("a/out")).unwrap();
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
