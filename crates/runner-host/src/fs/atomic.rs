//! Files that appear whole or not at all, and reading that nothing can hang or fill.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::{Error, UserError};

/// Reads a plain file of at most `bytes_max` bytes. Links are not followed; a pipe in its place does not block.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => return Err(not_a_file(path, "a symbolic link")),
        Err(rustix::io::Errno::NXIO) => return Err(not_a_file(path, "a socket")),
        Err(errno) => return Err(Error::io("read", path)(errno)),
    };
    let stat = rustix::fs::fstat(&file).map_err(Error::io("read", path))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        return Err(not_a_file(path, kind_name(kind)));
    }
    let mut bytes = Vec::new();
    let size = usize::try_from(stat.st_size).unwrap_or_default();
    // One byte more than allowed is enough to know, even if the file grows while it is read.
    if u64::try_from(stat.st_size).is_ok_and(|size| size <= bytes_max) {
        bytes.reserve_exact(size + 1);
        let mut file = fs::File::from(file).take(bytes_max + 1);
        file.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    }
    let found = u64::max(bytes.len() as u64, u64::try_from(stat.st_size).unwrap_or_default());
    if found > bytes_max {
        return Err(UserError::TooLarge { path: path.to_owned(), bytes: found, max: bytes_max }.into());
    }
    Ok(Some(bytes))
}

fn not_a_file(path: &Path, what: &'static str) -> Error {
    UserError::NotAFile { path: path.to_owned(), what }.into()
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a plain file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}

/// Makes a folder, if it is not there. A link in its place is refused: nothing is written through it.
pub(crate) fn ensure_folder(path: &Path) -> Result<(), Error> {
    if !is_folder(path)? {
        fs::create_dir(path).map_err(Error::io("create the folder", path))?;
    }
    Ok(())
}

/// Whether there is a real folder at `path`; anything else in its place is refused.
pub(crate) fn is_folder(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(found) => {
            let what = if found.is_symlink() { "a symbolic link" } else { "a file" };
            Err(UserError::NotAFolder { path: path.to_owned(), what }.into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}

/// Writes a file so that any reader, and any machine that loses its power, sees the old bytes or the new.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_renamed(path, bytes, fs::File::sync_all)?;
    sync_parent(path)
}

/// The same as far as readers and killed runners go. For what can be made again after a power cut, and for what
/// [`sync_file_system`] follows.
pub(crate) fn write_no_sync(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_renamed(path, bytes, |_| Ok(()))
}

fn write_renamed(
    path: &Path,
    bytes: &[u8],
    sync: impl FnOnce(&fs::File) -> io::Result<()>,
) -> Result<(), Error> {
    let temporary = temporary_path(path);
    let file = write_new(&temporary, bytes)?;
    if let Err(error) = sync(&file).and_then(|()| fs::rename(&temporary, path)) {
        let _ = fs::remove_file(&temporary);
        return Err(Error::io("write", path)(error));
    }
    Ok(())
}

/// Writes a file that nobody reads yet. Half of one is taken away again.
fn write_new(path: &Path, bytes: &[u8]) -> Result<fs::File, Error> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o666));
    let mut file = fs::File::from(file.map_err(Error::io("write", path))?);
    if let Err(error) = file.write_all(bytes) {
        let _ = fs::remove_file(path);
        return Err(Error::io("write", path)(error));
    }
    Ok(file)
}

/// Writes a file that nobody reads meanwhile, into the one that is there: to make and remove files costs more than to
/// write them. Anything else in its place goes, and so does a file that has another name as well.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    let is_own = fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.nlink() == 1);
    if !is_own {
        remove_any(path)?;
    }
    write_new(path, bytes).map(drop)
}

/// Lets a file look as if it were written some seconds ago. Git reads what is as young as its index again and again.
pub(crate) fn backdate_mtime(path: &Path) -> Result<(), Error> {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(3);
    let times = fs::FileTimes::new().set_modified(then);
    let file = fs::File::options().write(true).open(path);
    file.and_then(|file| file.set_times(times)).map_err(Error::io("write", path))
}

/// Copies a file with its time of change. Git takes a file that is younger than its index for possibly changed;
/// a copy that looked younger than it is would hide changes made within the same second.
pub(crate) fn copy_with_mtime(from: &Path, to: &Path) -> Result<(), Error> {
    let changed = fs::metadata(from).and_then(|found| found.modified());
    let copied = fs::copy(from, to).and_then(|_| {
        let times = fs::FileTimes::new().set_modified(changed?);
        fs::File::options().write(true).open(to)?.set_times(times)
    });
    copied.map_err(Error::io("copy", from))
}

/// The name that a file has until it is whole. It is always the same, so that a crash leaves at most one behind.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

/// Makes every folder from `root` down to `path`, each a real one: whatever stands in the way of one goes.
pub(crate) fn create_folders(root: &Path, path: &Path) -> Result<(), Error> {
    let below: Vec<&Path> = path.ancestors().take_while(|folder| *folder != root).collect();
    for folder in below.into_iter().rev() {
        if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
            remove_any(folder)?;
            ensure_folder(folder)?;
        }
    }
    Ok(())
}

/// Writes down what a file below `root` is to be, beside it, and says where. Whatever stands in the place of a folder
/// on the way goes.
pub(crate) fn prepare(root: &Path, path: &Path, bytes: &[u8]) -> Result<PathBuf, Error> {
    path.parent().map_or(Ok(()), |folder| create_folders(root, folder))?;
    let temporary = temporary_path(path);
    remove_any(&temporary)?;
    write_new(&temporary, bytes)?;
    Ok(temporary)
}

/// Puts what was prepared for a file in its place, whatever stands there. The journal still says what to write when the
/// power goes.
pub(crate) fn commit_prepared(path: &Path) -> Result<(), Error> {
    if !matches!(fs::symlink_metadata(path), Ok(found) if found.is_file()) {
        remove_any(path)?;
    }
    fs::rename(temporary_path(path), path).map_err(Error::io("write", path))
}

/// Forgets what was prepared for a file.
pub(crate) fn discard_prepared(path: &Path) -> Result<(), Error> {
    remove_any(&temporary_path(path))
}

/// Writes a file below `root` even where something else stands in its place, or in that of a folder on the way.
pub(crate) fn overwrite_any(root: &Path, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    prepare(root, path, bytes)?;
    commit_prepared(path)
}

/// What tells one state of a file from every later one: whoever changes the file changes this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The stamp of a plain file.
pub(crate) fn stamp(path: &Path) -> Option<FileStamp> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(FileStamp {
        inode: (found.dev(), found.ino()),
        bytes: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

/// Takes away whatever is at a path: a file, a link, a folder with all in it.
pub(crate) fn remove_any(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).map_err(Error::io("remove", path)),
        Ok(_) => fs::remove_file(path).map_err(Error::io("remove", path)),
        Err(_) => Ok(()),
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}

fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(parent).and_then(|folder| folder.sync_all()).map_err(Error::io("write", parent))
}

/// Waits until everything written to the file system that holds `path` would survive a power cut.
pub(crate) fn sync_file_system(path: &Path) -> Result<(), Error> {
    let folder = fs::File::open(path).map_err(Error::io("open", path))?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&folder).map_err(Error::io("write", path))?;
    #[cfg(not(target_os = "linux"))]
    folder.sync_all().map_err(Error::io("write", path))?;
    Ok(())
}

/// Gives the memory back in which a file is kept that is on the disk and that nobody will read soon: whatever is written
/// next takes it, where a long run would fill all memory with its records.
pub(crate) fn evict_page_cache(path: &Path) {
    #[cfg(target_os = "linux")]
    if let Ok(file) =
        rustix::fs::open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    {
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = path;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(read(&path, 10).unwrap(), None);
        write(&path, b"one").unwrap();
        write(&path, b"two!").unwrap();
        assert_eq!(read(&path, 4).unwrap(), Some(b"two!".to_vec()));
        assert!(matches!(read(&path, 3), Err(Error::Refused(UserError::TooLarge { bytes: 4, max: 3, .. }))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn what_is_no_plain_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, link, place) = (folder.path().join("f"), folder.path().join("l"), folder.path().join("d"));
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        fs::create_dir(&place).unwrap();
        for (path, kind) in [(&fifo, "a named pipe"), (&link, "a symbolic link"), (&place, "a folder")] {
            let Err(Error::Refused(UserError::NotAFile { what, .. })) = read(path, 10) else {
                panic!("{kind}")
            };
            assert_eq!(what, kind);
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(matches!(ensure_folder(&link), Err(Error::Refused(UserError::NotAFolder { .. }))));
        ensure_folder(&folder.path().join("new")).unwrap();
        ensure_folder(&target).unwrap();
        // A link where the temporary file would be is not followed either.
        let path = folder.path().join("file");
        std::os::unix::fs::symlink(target.join("stolen"), folder.path().join(".file.tmp")).unwrap();
        assert!(write(&path, b"x").is_err());
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }

    #[test]
    fn a_copy_is_as_old_as_what_it_was_made_from() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, "x").unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let times = fs::FileTimes::new().set_modified(long_ago);
        fs::File::options().write(true).open(&from).unwrap().set_times(times).unwrap();
        copy_with_mtime(&from, &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().modified().unwrap(), long_ago);
        assert_eq!(fs::read(&to).unwrap(), b"x");
        assert!(copy_with_mtime(&folder.path().join("none"), &to).is_err());
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
