//! Sockets of services of the user: what connects to one could start a program outside of a sandbox.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::agent::sandbox::canonical;

/// The kernel's list of sockets.
const SOCKETS: &str = "/proc/net/unix";
/// More folders than any user has services.
const FOLDERS_MAX: usize = 100;

/// The folders with sockets of services below the home folder; without what is inside of the repository, and without folders
/// that contain it or the home.
pub(super) fn folders(home: &Path, root: &Path, allowed: &[String]) -> Vec<PathBuf> {
    let listed = fs::read_to_string(SOCKETS).unwrap_or_default();
    let existing = paths(&listed).into_iter().filter(|path| is_socket(path));
    let sockets = existing.map(|path| canonical(&path)).filter(|path| path.starts_with(home));
    let is_allowed = |path: &PathBuf| allowed.iter().any(|socket| canonical(Path::new(socket)) == *path);
    let folders: BTreeSet<PathBuf> = sockets
        .filter(|path| !is_allowed(path))
        .filter_map(|path| path.parent().map(Path::to_owned))
        .filter(|folder| !home.starts_with(folder) && !root.starts_with(folder) && !folder.starts_with(root))
        .collect();
    folders.into_iter().take(FOLDERS_MAX).collect()
}

/// The paths in the kernel's list, which has one in the eighth column of a line.
fn paths(listed: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let at = line.find('/')?;
        line.get(at..).map(PathBuf::from)
    };
    listed.lines().filter_map(path).collect()
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_folder_of_a_service_in_the_home_is_found_and_the_repository_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let root = home.join("work/repo");
        for path in ["run dir", "work/repo/.git"] {
            fs::create_dir_all(home.join(path)).unwrap();
        }
        let _service = UnixListener::bind(home.join("run dir/docker.sock")).unwrap();
        let _in_home_itself = UnixListener::bind(home.join("x.sock")).unwrap();
        let _in_repository = UnixListener::bind(root.join(".git/fsmonitor")).unwrap();
        assert_eq!(folders(&home, &root, &[]), [home.join("run dir")]);
        let allowed = home.join("run dir/docker.sock").to_str().unwrap().to_owned();
        assert_eq!(folders(&home, &root, &[allowed]), Vec::<PathBuf>::new());
    }
}
