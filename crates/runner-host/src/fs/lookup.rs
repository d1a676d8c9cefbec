//! Looking at folders and links without taking a failed call for nothing: what is not known to be missing must not be treated as
//! missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The entries of a folder; none if there is no folder that this user may read. A call that failed for another reason, such as
/// too little memory, is an error: the folder is not known to be empty.
pub(crate) fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, Error> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect::<Result<_, _>>().map_err(Error::io("read", folder)),
        Err(error) if is_absence(&error) => Ok(Vec::new()),
        Err(error) => Err(Error::io("read", folder)(error)),
    }
}

/// The metadata of a file, folder or link; none if there is nothing.
pub(crate) fn metadata(path: &Path) -> Result<Option<fs::Metadata>, Error> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// What a link points to; none if there is nothing, or no link.
pub(crate) fn link_target(path: &Path) -> Result<Option<PathBuf>, Error> {
    match fs::read_link(path) {
        Ok(target) => Ok(Some(target)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput || is_absence(&error) => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// The path without links; none if it leads nowhere.
pub(crate) fn resolved(path: &Path) -> Result<Option<PathBuf>, Error> {
    match path.canonicalize() {
        Ok(resolved) => Ok(Some(resolved)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// Whether there is nothing at a path, as far as this user can see.
fn is_absence(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::PermissionDenied];
    kinds.contains(&error.kind()) || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_looks_missing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        for name in ["none", "file", "file/below", "loop"] {
            assert_eq!(entries(&at(name)).unwrap().len(), 0, "{name}");
        }
        assert_eq!(entries(folder.path()).unwrap().len(), 3);
        assert_eq!(link_target(&at("link")).unwrap(), Some("file".into()));
        for name in ["none", "file", "file/below"] {
            assert_eq!(link_target(&at(name)).unwrap(), None, "{name}");
        }
        assert_eq!(resolved(&at("loop")).unwrap(), None);
        let fails = at(&"x".repeat(300));
        assert!(metadata(&at("none")).unwrap().is_none() && metadata(&at("loop")).unwrap().is_some());
        assert!(metadata(&fails).is_err() && entries(&fails).is_err());
        assert!(link_target(&fails).is_err() && resolved(&fails).is_err());
    }
}
