//! How much of the disk a trial may fill, so that one trial cannot take the room that results and other trials need.

use std::path::Path;

/// What stays free for results and for the trials that run at the same time.
const RESERVE_BYTES: u64 = 64 << 20;

/// The free bytes of the disk that a folder, or the nearest one above it that exists, is on; none if they are unknown.
fn free_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    let disk = rustix::fs::statvfs(existing).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The bytes that each of `jobs` trials may write below a folder.
pub(crate) fn share(folder: &Path, jobs: u32) -> u64 {
    free_bytes(folder).map_or(u64::MAX, |free| share_of(free, jobs))
}

/// Half of a trial's part: the checks run on a copy of its work.
fn share_of(free: u64, jobs: u32) -> u64 {
    free.saturating_sub(RESERVE_BYTES) / u64::from(jobs.max(1)) / 2
}

/// Whether trials have used up the room that is kept free.
pub(crate) fn is_full(folder: &Path) -> bool {
    free_bytes(folder).is_some_and(|free| free < RESERVE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_the_reserve_and_room_for_a_copy() {
        assert_eq!(share_of(RESERVE_BYTES + 400, 2), 100);
        assert_eq!((share_of(RESERVE_BYTES, 1), share_of(0, 1)), (0, 0));
        assert_eq!(share_of(RESERVE_BYTES + 400, 0), 200);
    }

    #[test]
    fn missing_folder_has_the_disk_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(free_bytes(&folder.path().join("a/b")).is_some(), free_bytes(folder.path()).is_some());
    }
}
