//! Copies, measures and removes folders that an agent filled. It may have nested them deeper than any path can name, or deeper
//! than a process has file descriptors, so every entry is reached through the descriptor of its folder, and depth has a limit.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// Folders below this depth are neither copied nor measured. Each level holds up to two file descriptors.
pub(crate) const FOLDER_DEPTH_MAX: u32 = 200;

const PRIVATE_FOLDER: Mode = Mode::RWXU;

fn open_folder(parent: BorrowedFd<'_>, name: &CString) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

fn open_root(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// The names in a folder, ordered.
fn names(folder: BorrowedFd<'_>) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn stat(folder: BorrowedFd<'_>, name: &CString) -> rustix::io::Result<Stat> {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Copies a folder: files, folders and links (as links), but no sockets or pipes. Skips what cannot be read, because an agent may
/// have removed the permissions, and what is too deep; returns how many folders it skipped.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<u64> {
    fs::create_dir_all(to)?;
    let Ok(source) = open_root(from) else { return Ok(1) };
    let mut copy = FolderCopy::default();
    copy.add(source.as_fd(), open_root(to)?.as_fd(), 0)?;
    Ok(copy.skipped)
}

#[derive(Default)]
struct FolderCopy {
    skipped: u64,
}

impl FolderCopy {
    fn add(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, depth: u32) -> rustix::io::Result<()> {
        let Ok(names) = names(from) else {
            self.skipped += 1;
            return Ok(());
        };
        for name in &names {
            let stat = stat(from, name)?;
            match kind(&stat) {
                FileType::Directory => self.add_folder(from, to, name, depth)?,
                FileType::Symlink => {
                    rustix::fs::symlinkat(rustix::fs::readlinkat(from, name, Vec::new())?, to, name)?;
                }
                FileType::RegularFile => copy_file(from, to, name)?,
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => {}
            }
        }
        Ok(())
    }

    fn add_folder(
        &mut self,
        from: BorrowedFd<'_>,
        to: BorrowedFd<'_>,
        name: &CString,
        depth: u32,
    ) -> rustix::io::Result<()> {
        if depth >= FOLDER_DEPTH_MAX {
            self.skipped += 1;
            return Ok(());
        }
        rustix::fs::mkdirat(to, name, PRIVATE_FOLDER | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH)?;
        match open_folder(from, name) {
            Err(Errno::ACCESS | Errno::PERM) => {
                self.skipped += 1;
                Ok(())
            }
            source => self.add(source?.as_fd(), open_folder(to, name)?.as_fd(), depth + 1),
        }
    }
}

fn copy_file(from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: &CString) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let source = match rustix::fs::openat(from, name, flags, Mode::empty()) {
        Err(Errno::ACCESS | Errno::PERM) => return Ok(()),
        source => source?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&source)?.st_mode);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let target = fs::File::from(rustix::fs::openat(to, name, flags, Mode::RUSR | Mode::WUSR)?);
    let copied = io::copy(&mut fs::File::from(source), &mut &target);
    copied.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    rustix::fs::fchmod(&target, mode)
}

/// The files below folders, added up.
#[derive(Default)]
pub(crate) struct DiskUsage {
    /// The lengths of the files: a sparse file counts whole, because copies fill it.
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Whether folders are nested deeper than [`FOLDER_DEPTH_MAX`], where nothing is measured.
    pub(crate) is_too_deep: bool,
}

/// Where measuring may stop.
#[derive(Clone, Copy)]
pub(crate) struct UsageLimit {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
}

impl DiskUsage {
    pub(crate) fn exceeds(&self, limit: UsageLimit) -> bool {
        self.bytes > limit.bytes || self.entries > limit.entries || self.is_too_deep
    }

    /// Adds what is below a folder, until it exceeds the limit.
    pub(crate) fn add(&mut self, folder: &Path, limit: UsageLimit) {
        if let Ok(folder) = open_root(folder) {
            self.add_folder(folder.as_fd(), limit, 0);
        }
    }

    fn add_folder(&mut self, folder: BorrowedFd<'_>, limit: UsageLimit, depth: u32) {
        for name in names(folder).unwrap_or_default() {
            self.entries += 1;
            if self.exceeds(limit) {
                return;
            }
            let Ok(stat) = stat(folder, &name) else { continue };
            if kind(&stat) != FileType::Directory {
                self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
            } else if depth >= FOLDER_DEPTH_MAX {
                self.is_too_deep = true;
            } else if let Ok(inner) = open_folder(folder, &name) {
                self.add_folder(inner.as_fd(), limit, depth + 1);
            }
        }
    }
}

/// Removes a folder of any depth, also one without permissions.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    let _ = rustix::fs::chmodat(CWD, path, PRIVATE_FOLDER, AtFlags::empty());
    let root = open_root(path)?;
    let mut removal = FolderRemoval { root: root.as_fd(), moved: 0 };
    loop {
        let before = removal.moved;
        removal.clear(root.as_fd(), 0)?;
        if removal.moved == before {
            break;
        }
    }
    fs::remove_dir(path)
}

struct FolderRemoval<'a> {
    root: BorrowedFd<'a>,
    /// How many folders were moved up into the root, because they were too deep.
    moved: u64,
}

impl FolderRemoval<'_> {
    fn clear(&mut self, folder: BorrowedFd<'_>, depth: u32) -> rustix::io::Result<()> {
        for name in names(folder)? {
            if kind(&stat(folder, &name)?) != FileType::Directory {
                rustix::fs::unlinkat(folder, &name, AtFlags::empty())?;
                continue;
            }
            let _ = rustix::fs::chmodat(folder, &name, PRIVATE_FOLDER, AtFlags::empty());
            if depth >= FOLDER_DEPTH_MAX {
                self.move_up(folder, &name)?;
                continue;
            }
            self.clear(open_folder(folder, &name)?.as_fd(), depth + 1)?;
            rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR)?;
        }
        Ok(())
    }

    fn move_up(&mut self, folder: BorrowedFd<'_>, name: &CString) -> rustix::io::Result<()> {
        loop {
            self.moved += 1;
            match rustix::fs::renameat(folder, name, self.root, format!(".moved-{}", self.moved)) {
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                moved => return moved,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const LIMIT: UsageLimit = UsageLimit { bytes: 1 << 20, entries: 1 << 20 };

    /// Nests folders with names of this length, and writes a file into the last one.
    fn nest(root: &Path, depth: u32, name_length: usize) {
        let name = CString::new("d".repeat(name_length)).unwrap();
        let mut folder = open_root(root).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&folder, &name, PRIVATE_FOLDER).unwrap();
            folder = open_folder(folder.as_fd(), &name).unwrap();
        }
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let file = rustix::fs::openat(&folder, "file", flags, Mode::RUSR | Mode::WUSR).unwrap();
        rustix::io::write(file, b"12345").unwrap();
    }

    fn usage(folder: &Path) -> DiskUsage {
        let mut usage = DiskUsage::default();
        usage.add(folder, LIMIT);
        usage
    }

    #[test]
    fn folders_whose_paths_are_too_long_are_copied_measured_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
        fs::create_dir(&source).unwrap();
        nest(&source, 30, 200);
        assert_eq!(copy_tree(&source, &copy).unwrap(), 0);
        for folder in [&source, &copy] {
            let usage = usage(folder);
            assert_eq!((usage.bytes, usage.entries, usage.is_too_deep), (5, 31, false));
            remove_folder(folder).unwrap();
            assert!(!folder.exists());
        }
    }

    #[test]
    fn folders_below_the_greatest_depth_are_over_any_limit_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
        fs::create_dir(&source).unwrap();
        nest(&source, 2_500, 3);
        assert!(usage(&source).is_too_deep && usage(&source).exceeds(LIMIT));
        assert_eq!(copy_tree(&source, &copy).unwrap(), 1);
        remove_folder(&source).unwrap();
        assert!(!source.exists());
    }

    #[test]
    fn copy_keeps_links_and_modes_and_does_not_follow() {
        let folder = tempfile::tempdir().unwrap();
        let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
        fs::create_dir(&source).unwrap();
        fs::write(source.join("program"), "x").unwrap();
        fs::set_permissions(source.join("program"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("/etc", source.join("link")).unwrap();
        copy_tree(&source, &copy).unwrap();
        assert_eq!(fs::read_link(copy.join("link")).unwrap(), Path::new("/etc"));
        let mode = fs::metadata(copy.join("program")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        remove_folder(&copy).unwrap();
        assert!(Path::new("/etc").exists() && !copy.exists());
    }
}
