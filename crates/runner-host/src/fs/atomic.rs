//! Atomic writes, and reads that follow no links, never block and are bounded in size.
//!
//! Everything here assumes that an agent may have put a link, a FIFO or a folder in the place of a file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, OFlags};

use crate::error::{Error, UserError};

/// Reads a regular file of at most `bytes_max` bytes; `None` if it does not exist. Links are not followed, and a FIFO does not
/// block.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, Error> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
    let stat_size = file.metadata().map_err(Error::io("read", path))?.len();
    let mut bytes = Vec::new();
    // Reading one byte more than allowed detects a file that grows meanwhile.
    if stat_size <= bytes_max {
        bytes.reserve_exact(usize::try_from(stat_size).unwrap_or_default() + 1);
        let mut file = file.take(bytes_max.saturating_add(1));
        file.read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    }
    let file_bytes = u64::max(bytes.len() as u64, stat_size);
    if file_bytes > bytes_max {
        return Err(UserError::TooLarge { path: path.to_owned(), bytes: file_bytes, max: bytes_max }.into());
    }
    Ok(Some(bytes))
}

/// Opens a regular file, and no link to one; none if it does not exist.
pub(crate) fn open_regular(path: &Path) -> Result<Option<fs::File>, Error> {
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
    Ok(Some(fs::File::from(file)))
}

fn not_a_file(path: &Path, what: &'static str) -> Error {
    UserError::NotAFile { path: path.to_owned(), what }.into()
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown type",
    }
}

/// Creates a folder if it does not exist. A link in its place is an error, so that nothing is written through it.
pub(crate) fn ensure_folder(path: &Path) -> Result<(), Error> {
    if !is_folder(path)? {
        fs::create_dir(path).map_err(Error::io("create the folder", path))?;
    }
    Ok(())
}

/// Lets only the owner of a folder into it. A failure is ignored: the folder of another user works as well.
pub(crate) fn make_private(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode =
        fs::symlink_metadata(folder).ok().filter(fs::Metadata::is_dir).map(|it| it.permissions().mode());
    if mode.is_some_and(|mode| mode & 0o077 != 0) {
        let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    }
}

/// Whether there is a folder at `path`. A link or a file in its place is an error.
pub(crate) fn is_folder(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(metadata) => {
            let what = if metadata.is_symlink() { "a symbolic link" } else { "a file" };
            Err(UserError::NotAFolder { path: path.to_owned(), what }.into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// Writes a file so that a reader, and the disk after a power cut, has either the old or the new content.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_renamed(path, bytes, fs::File::sync_all)?;
    sync_parent(path)
}

/// Like [`write`], for a file that only its owner may read. Whatever is in its place is replaced.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    if !fs::symlink_metadata(path).map_or(true, |metadata| metadata.is_file()) {
        remove_any(path)?;
    }
    remove_any(&temporary_path(path))?;
    let owner_only = |file: &fs::File| {
        file.set_permissions(fs::Permissions::from_mode(0o600)).and_then(|()| file.sync_all())
    };
    write_renamed(path, bytes, owner_only)?;
    sync_parent(path)
}

/// Like [`write`] for readers and for a killed runner, but not safe against a power cut. For files that can be written again,
/// and where [`sync_file_system`] follows.
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

/// Writes a file without renaming. Removes it again if the write fails.
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

/// Writes into an existing file, which must have no readers: that is cheaper than to create a new file. If there is anything
/// else in its place, or the file has a second hard link, it is removed first.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    let is_reusable =
        fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.nlink() == 1);
    if !is_reusable {
        remove_any(path)?;
    }
    write_new(path, bytes).map(drop)
}

/// Sets the modification time three seconds back. git compares the content of files that are as new as its index on every
/// status, because it cannot trust their timestamps.
pub(crate) fn backdate_mtime(path: &Path) -> Result<(), Error> {
    let past = SystemTime::now() - Duration::from_secs(3);
    let times = fs::FileTimes::new().set_modified(past);
    let file = fs::File::options().write(true).open(path);
    file.and_then(|file| file.set_times(times)).map_err(Error::io("write", path))
}

/// Copies an index with its modification time. git treats a file that is newer than the index as possibly changed; a copy with
/// a newer time would hide changes that were made within the same second.
pub(crate) fn copy_with_mtime(from: &Path, to: &Path) -> Result<(), Error> {
    let modified = fs::metadata(from).and_then(|metadata| metadata.modified());
    let result = fs::copy(from, to).and_then(|_| {
        let times = fs::FileTimes::new().set_modified(modified?);
        fs::File::options().write(true).open(to)?.set_times(times)
    });
    result.map_err(Error::io("copy", from))
}

/// The name of a file while it is written. It is always the same, so that crashes leave at most one such file.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tmp");
    path.with_file_name(name)
}

/// Whether a file has the name of one that is being written.
pub(crate) fn is_temporary_name(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.len() > 5 && name.starts_with('.') && name.ends_with(".tmp"))
}

/// Creates every folder from `root` down to `path`. Anything in the place of a folder is removed.
pub(crate) fn create_folders(root: &Path, path: &Path) -> Result<(), Error> {
    let folders: Vec<&Path> = path.ancestors().take_while(|folder| *folder != root).collect();
    for folder in folders.into_iter().rev() {
        if !fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir()) {
            remove_any(folder)?;
            ensure_folder(folder)?;
        }
    }
    Ok(())
}

/// Writes the new content of a file below `root` to a temporary file beside it, and returns its path. Anything in the place of
/// a parent folder is removed.
pub(crate) fn prepare(root: &Path, path: &Path, bytes: &[u8]) -> Result<PathBuf, Error> {
    path.parent().map_or(Ok(()), |folder| create_folders(root, folder))?;
    let temporary = temporary_path(path);
    remove_any(&temporary)?;
    write_new(&temporary, bytes)?;
    Ok(temporary)
}

/// Renames the prepared content into place, and removes whatever is there. After a power cut, the journal has the content.
pub(crate) fn commit_prepared(path: &Path) -> Result<(), Error> {
    if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        remove_any(path)?;
    }
    fs::rename(temporary_path(path), path).map_err(Error::io("write", path))
}

/// Removes the content that [`prepare`] wrote.
pub(crate) fn discard_prepared(path: &Path) -> Result<(), Error> {
    remove_any(&temporary_path(path))
}

/// Writes a file below `root` and removes anything in its place or in the place of a parent folder.
pub(crate) fn overwrite_any(root: &Path, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    prepare(root, path, bytes)?;
    commit_prepared(path)
}

/// Replaces a file below `root` by one rename, so that a reader, and the disk after a power cut, has either the old or the
/// new content. Anything else in its place, or in the place of a parent folder, is removed first.
pub(crate) fn replace_durably(root: &Path, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temporary = prepare(root, path, bytes)?;
    sync_file(&temporary)?;
    commit_prepared(path)?;
    sync_parent(path)
}

/// Waits until the content of a file is on disk.
pub(crate) fn sync_file(path: &Path) -> Result<(), Error> {
    fs::File::open(path).and_then(|file| file.sync_all()).map_err(Error::io("write", path))
}

/// Moves a folder to `to`; whatever is there goes to `replaced`, which is on the same file system.
pub(crate) fn move_in_place(from: &Path, to: &Path, replaced: &Path) -> Result<(), Error> {
    if to.symlink_metadata().is_ok() {
        remove_any(replaced)?;
        replaced.parent().map_or(Ok(()), |folder| create_folders(from, folder))?;
        fs::rename(to, replaced).map_err(Error::io("move", to))?;
    }
    fs::rename(from, to).map_err(Error::io("move", from))?;
    sync_parent(to)
}

/// Gives the owner access to a folder and to every folder below it, as far as the system permits. Links are not followed.
pub(crate) fn open_folders(folder: &Path) {
    open_to_owner(folder);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_folders(&entry.path());
        }
    }
}

fn open_to_owner(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = folder.symlink_metadata() else { return };
    let mode = metadata.permissions().mode();
    if metadata.is_dir() && mode & 0o700 != 0o700 {
        // A failure shows up when the folder is used.
        let _ = fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o700));
    }
}

/// A fingerprint of a file's metadata. Every change to the file changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// How old the last change must be for the next one to get another time, whatever the clock of the file system.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

impl FileStamp {
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            inode: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether a later stamp of the same file shows a change of its permissions or links at most.
    pub(crate) fn differs_in_time_of_change_only(&self, later: &Self) -> bool {
        self.changed != later.changed && Self { changed: self.changed, ..*later } == *self
    }

    /// Whether the file changed so long ago that another change now cannot have the same time.
    pub(crate) fn is_settled(&self) -> bool {
        let changed = u64::try_from(self.changed.0).map(|secs| UNIX_EPOCH + Duration::from_secs(secs));
        changed.is_ok_and(|changed| {
            SystemTime::now().duration_since(changed).is_ok_and(|age| age > SETTLED_AFTER)
        })
    }
}

/// `None` if there is no regular file.
pub(crate) fn stamp(path: &Path) -> Option<FileStamp> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).map(|metadata| FileStamp::of(&metadata))
}

/// Removes whatever is at a path: a file, a link, or a folder with its content. Where permissions prevent that, gives the owner
/// access first: to the parent folder, and to every folder below the path. Go's module cache consists of read-only folders.
pub(crate) fn remove_any(path: &Path) -> Result<(), Error> {
    let removed = remove_tree(path).or_else(|error| {
        if error.kind() != io::ErrorKind::PermissionDenied {
            return Err(error);
        }
        path.parent().into_iter().for_each(open_to_owner);
        open_folders(path);
        remove_tree(path)
    });
    removed.map_err(Error::io("remove", path))
}

fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Err(_) => Ok(()),
    }
}

/// Removes a file durably, if it exists.
pub(crate) fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Ok(()) => sync_parent(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}

pub(crate) fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(parent).and_then(|folder| folder.sync_all()).map_err(Error::io("write", parent))
}

/// Waits until everything written to the file system of `path` is on disk.
pub(crate) fn sync_file_system(path: &Path) -> Result<(), Error> {
    let folder = fs::File::open(path).map_err(Error::io("open", path))?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&folder).map_err(Error::io("write", path))?;
    #[cfg(not(target_os = "linux"))]
    folder.sync_all().map_err(Error::io("write", path))?;
    Ok(())
}

pub(crate) fn is_same_file_system(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| fs::metadata(path).ok().map(|metadata| metadata.dev());
    device(one) == device(other)
}

/// Drops a file that is on disk from the page cache. Otherwise the records of a long run, which nothing reads soon, would fill
/// the memory.
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
    fn a_file_is_written_atomically_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(read(&path, 10).unwrap(), None);
        write(&path, b"one").unwrap();
        write(&path, b"two!").unwrap();
        assert_eq!(read(&path, 4).unwrap(), Some(b"two!".to_vec()));
        assert!(matches!(read(&path, 3), Err(Error::Refused(UserError::TooLarge { bytes: 4, max: 3, .. }))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn reading_anything_but_a_regular_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let link = folder.path().join("link");
        let subfolder = folder.path().join("folder");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        fs::create_dir(&subfolder).unwrap();
        for (path, kind) in [(&fifo, "a named pipe"), (&link, "a symbolic link"), (&subfolder, "a folder")] {
            let Err(Error::Refused(UserError::NotAFile { what, .. })) = read(path, 10) else {
                panic!("{kind}")
            };
            assert_eq!(what, kind);
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let link = folder.path().join("link");
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(matches!(ensure_folder(&link), Err(Error::Refused(UserError::NotAFolder { .. }))));
        ensure_folder(&folder.path().join("new")).unwrap();
        ensure_folder(&target).unwrap();
        // A link in the place of the temporary file is not followed either.
        let path = folder.path().join("file");
        std::os::unix::fs::symlink(target.join("stolen"), folder.path().join(".file.tmp")).unwrap();
        assert!(write(&path, b"x").is_err());
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }

    #[test]
    fn a_copy_keeps_the_modification_time() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        let to = folder.path().join("to");
        fs::write(&from, "x").unwrap();
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let times = fs::FileTimes::new().set_modified(long_ago);
        fs::File::options().write(true).open(&from).unwrap().set_times(times).unwrap();
        copy_with_mtime(&from, &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().modified().unwrap(), long_ago);
        assert_eq!(fs::read(&to).unwrap(), b"x");
        assert!(copy_with_mtime(&folder.path().join("none"), &to).is_err());
    }

    #[test]
    fn a_failed_write_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
