//! Files that make git wait forever: it opens `.gitignore` and the like in every folder, and a named pipe blocks it.
//!
//! To look for them before each scan would cost as much as the scan. So git starts, and only if it takes unusually long, the
//! work tree is searched while it runs. What blocks it is removed, and git continues.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::permissions::visit;
use crate::error::Error;

/// Files that git opens in every folder, or at the root.
pub(super) const GIT_FILES: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// How long a git call runs before the work tree is searched for what blocks it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The result of a git call, and the blocking files that were removed meanwhile.
pub(super) struct WatchedCall<T> {
    pub(super) result: Result<T, Error>,
    pub(super) removed: Vec<PathBuf>,
}

/// Runs a git call that reads the work tree below `root`, and removes what blocks it.
pub(super) fn watched<T>(root: &Path, call: impl FnOnce() -> Result<T, Error>) -> WatchedCall<T> {
    let (ended, wait) = channel::<()>();
    thread::scope(|scope| {
        let watch = move || match wait.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => remove_blocking_files(root),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Vec::new(),
        };
        // Without a thread the call runs unwatched, and git's own time limit applies.
        let watcher = thread::Builder::new().spawn_scoped(scope, watch).ok();
        let result = call();
        drop(ended);
        let removed = watcher.and_then(|watcher| watcher.join().ok()).unwrap_or_default();
        WatchedCall { result, removed }
    })
}

/// Removes named pipes, sockets and devices that have the name of a file which git opens.
pub(crate) fn remove_blocking_files(root: &Path) -> Vec<PathBuf> {
    let mut removed = Vec::new();
    visit(root, &mut |folder| removed.extend(remove_at_root(folder)));
    removed
}

/// The same for one folder: a few system calls instead of a search.
pub(super) fn remove_at_root(folder: &Path) -> Vec<PathBuf> {
    let paths = GIT_FILES.map(|name| folder.join(name));
    paths.into_iter().filter(|path| is_special(path) && remove_and_release(path)).collect()
}

/// Whether a path is a named pipe, a socket or a device.
pub(super) fn is_special(path: &Path) -> bool {
    let is_special = |kind: fs::FileType| {
        kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
    };
    path.symlink_metadata().is_ok_and(|metadata| is_special(metadata.file_type()))
}

/// Removes a special file. A process that waits for the other end of a named pipe gets an empty file instead.
fn remove_and_release(path: &Path) -> bool {
    let is_fifo = path.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_fifo());
    let other_end = is_fifo.then(|| {
        let _ = rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR);
        rustix::fs::open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
    });
    let is_removed = crate::fs::atomic::remove_any(path).is_ok();
    drop(other_end);
    is_removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_of_a_named_pipe_is_released() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/.git")).unwrap();
        let pipe = folder.path().join("a/.gitignore");
        let other = folder.path().join("a/other");
        for path in [&pipe, &other, &folder.path().join("a/.git/.gitignore")] {
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        let call = || fs::read(&pipe).map_err(Error::io("read", &pipe));
        let WatchedCall { result, removed } = watched(folder.path(), call);
        assert_eq!(result.unwrap(), b"");
        assert_eq!(removed, [pipe]);
        assert!(other.symlink_metadata().is_ok(), "git does not open it");
    }
}
