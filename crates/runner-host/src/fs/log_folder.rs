//! A folder of logs, opened without following a link on the way: an agent may have replaced any part of its path.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// An open folder. What it does to files can only concern files in it.
#[derive(Debug)]
pub(crate) struct LogFolder(OwnedFd);

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl LogFolder {
    /// Opens a folder below `root`; none if any part of its path is not a folder.
    pub(crate) fn open(root: &Path, parts: &[&str]) -> Option<Self> {
        let mut folder = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        for part in parts {
            folder = rustix::fs::openat(&folder, *part, FOLDER, Mode::empty()).ok()?;
        }
        Some(Self(folder))
    }

    /// The regular files in it, with their sizes.
    pub(crate) fn files(&self) -> Vec<(String, u64)> {
        let mut files = Vec::new();
        let Ok(entries) = Dir::read_from(&self.0) else { return files };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().to_str() else { continue };
            let Ok(stat) = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                files.push((name.to_owned(), u64::try_from(stat.st_size).unwrap_or_default()));
            }
        }
        files.sort();
        files
    }

    /// The first bytes of a file, at most `bytes_max`; none if it cannot be read.
    pub(crate) fn read(&self, name: &str, bytes_max: u64) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty()).ok()?);
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Removes a file. One that does not exist is fine.
    pub(crate) fn remove(&self, name: &str) -> std::io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes a file so that it appears whole.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let aside = format!(".{name}.tmp");
        self.remove(&aside)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, &*aside, flags, Mode::from_raw_mode(0o666))?;
        let written = File::from(file).write_all(bytes);
        let renamed = written.and_then(|()| Ok(rustix::fs::renameat(&self.0, &*aside, &self.0, name)?));
        if renamed.is_err() {
            let _ = self.remove(&aside);
        }
        renamed
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_on_the_way_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("precious"), "x").unwrap();
        fs::create_dir(root.path().join("real")).unwrap();
        symlink(outside.path(), root.path().join("link")).unwrap();
        symlink(outside.path().join("precious"), root.path().join("real/file")).unwrap();
        assert!(LogFolder::open(root.path(), &["link"]).is_none());
        assert!(LogFolder::open(root.path(), &["none"]).is_none());
        let folder = LogFolder::open(root.path(), &["real"]).unwrap();
        assert_eq!(folder.files(), []);
        assert_eq!(folder.read("file", 10), None);
        folder.write("file", b"new").unwrap();
        assert_eq!(folder.files(), [("file".to_owned(), 3)]);
        folder.remove("file").unwrap();
        folder.remove("file").unwrap();
        assert_eq!(fs::read_to_string(outside.path().join("precious")).unwrap(), "x");
    }
}
