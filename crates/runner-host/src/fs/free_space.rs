//! Refuses to begin an iteration on a file system that is nearly full: an agent's work would be cut off half-way.

use std::path::Path;

use crate::error::{Error, UserError};

/// What must be free for a session to begin: room for its commit, its documents and the beginning of its logs.
const BYTES_MIN: u64 = 8 << 20;
const FILES_MIN: u64 = 200;

/// What a file system has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FreeSpace {
    bytes: u64,
    /// None where files are not counted.
    files: Option<u64>,
}

/// Refuses if the user may not create files in any of these folders.
pub(crate) fn refuse_read_only(folders: &[&Path]) -> Result<(), Error> {
    let is_closed = |folder: &&&Path| rustix::fs::access(**folder, rustix::fs::Access::WRITE_OK).is_err();
    match folders.iter().find(is_closed) {
        Some(folder) => Err(UserError::ReadOnly((*folder).to_owned()).into()),
        None => Ok(()),
    }
}

/// Refuses if the file system of any of these folders has too little space.
pub(crate) fn refuse_full_disk(folders: &[&Path]) -> Result<(), Error> {
    for folder in folders {
        // Where it cannot be found out, the iteration begins.
        let Ok(stat) = rustix::fs::statvfs(*folder) else { continue };
        let free = FreeSpace {
            bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            files: (stat.f_files > 0).then_some(stat.f_favail),
        };
        free.check(folder)?;
    }
    Ok(())
}

impl FreeSpace {
    fn check(self, folder: &Path) -> Result<(), Error> {
        let low = |free: String, needed: String| Error::LowDisk { path: folder.to_owned(), free, needed };
        if self.bytes < BYTES_MIN {
            return Err(low(format!("{} KiB left", self.bytes >> 10), format!("{} MiB", BYTES_MIN >> 20)));
        }
        match self.files {
            Some(files) if files < FILES_MIN => {
                Err(low(format!("room for {files} more files"), format!("{FILES_MIN} files")))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_begins_only_with_room_for_bytes_and_files() {
        for (bytes, files, expected) in [
            (BYTES_MIN, Some(FILES_MIN), None),
            (u64::MAX, None, None),
            (BYTES_MIN - 1, None, Some("8191 KiB left")),
            (BYTES_MIN, Some(FILES_MIN - 1), Some("room for 199 more files")),
        ] {
            let found = match (FreeSpace { bytes, files }).check(Path::new("/x")) {
                Ok(()) => None,
                Err(Error::LowDisk { free, .. }) => Some(free),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(found.as_deref(), expected);
        }
        refuse_full_disk(&[Path::new("/no/such/folder")]).unwrap();
    }
}
