//! Removes what a runner that died, or a git command of it that failed, left besides the journal: locks and unfinished files.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use runner_core::layout::RUNNER_DIR;

use super::repo_guard::{collect_locks, collect_reftable_locks};
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::lock::{LastHolder, remove_unfinished_files};
use crate::fs::log_folder::LogFolder;
use crate::git::Git;

/// How long a lock must stay as it is to count as abandoned. Git holds the lock of a reference for milliseconds.
const ABANDONED_AFTER: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);
/// The folders in the work tree in which the runner writes files under temporary names.
const FOLDERS: [&[&str]; 3] = [&[RUNNER_DIR], &[RUNNER_DIR, "state"], &[RUNNER_DIR, "context"]];

/// Called with the lock held, before the journal is read.
pub(super) fn remove(git: &Git, last_holder: LastHolder) -> Result<(), Error> {
    if let LastHolder::LostPower(_) = last_holder {
        // Ignored files, results of the setup and copies of the user's files may be empty there, and nothing tells which.
        for room in [git.paths().room(), git.paths().fresh_room()] {
            atomic::remove_any(&room)?;
        }
    }
    if let LastHolder::Died(since) | LastHolder::LostPower(since) = last_holder {
        git.kill_orphans();
        // An orphan may have been writing until now.
        remove_unfinished_files(&git.paths().private())?;
        git.remove_damaged_objects(since)?;
        remove_abandoned_locks(git, since)?;
    }
    for parts in FOLDERS {
        let Some(folder) = LogFolder::open(git.root(), parts) else { continue };
        for (name, _) in folder.files().iter().filter(|(name, _)| atomic::is_temporary_name(name.as_ref())) {
            folder.remove(name).map_err(Error::io("remove", git.root().join(parts.join("/")).join(name)))?;
        }
    }
    Ok(())
}

/// Whether there are locks of references that a git command of the runner's may have left.
pub(super) fn has_ref_locks(git: &Git) -> bool {
    !ref_locks(git).is_empty()
}

/// The locks of HEAD, of branches of runs and of the runner's own references.
fn ref_locks(git: &Git) -> Vec<PathBuf> {
    let mut locks = Vec::new();
    collect_locks(&git.common_dir().join("refs/heads/runner"), &mut locks);
    collect_locks(&git.common_dir().join("refs/runner"), &mut locks);
    collect_reftable_locks(git, &mut locks);
    locks.extend(
        [git.paths().in_git_dir("HEAD.lock")].into_iter().filter(|lock| lock.symlink_metadata().is_ok()),
    );
    locks
}

/// Removes locks that were made since the dead runner began and that do not change any more. A user, or a runner in another
/// work tree, may hold one at this moment, so a lock that goes away or changes is not touched.
fn remove_abandoned_locks(git: &Git, since: SystemTime) -> Result<(), Error> {
    let mut locks = ref_locks(git);
    locks.retain(|path| modified(path).is_some_and(|time| time >= since));
    abandoned_locks(locks).iter().try_for_each(|path| atomic::remove_any(path))
}

/// The locks among these that stay as they are.
pub(super) fn abandoned_locks(locks: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut locks: Vec<(PathBuf, SystemTime)> =
        locks.into_iter().filter_map(|path| modified(&path).map(|time| (path, time))).collect();
    let mut waited = Duration::ZERO;
    while !locks.is_empty() && waited < ABANDONED_AFTER {
        thread::sleep(POLL);
        waited += POLL;
        locks.retain(|(path, time)| modified(path) == Some(*time));
    }
    locks.into_iter().map(|(path, _)| path).collect()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(path).ok().and_then(|found| found.modified().ok())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn repository() -> (tempfile::TempDir, Git) {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        fs::create_dir_all(git.paths().private()).unwrap();
        fs::create_dir_all(folder.path().join(".runner/state")).unwrap();
        (folder, git)
    }

    #[test]
    fn locks_and_unfinished_files_of_a_dead_runner_are_removed() {
        let (folder, git) = repository();
        let since = SystemTime::now() - Duration::from_secs(60);
        let left = [
            ".git/HEAD.lock",
            ".git/refs/heads/runner/demo.lock",
            ".git/refs/runner/demo/wip.lock",
            ".git/reftable/tables.list.lock",
            ".git/runner/work.index.lock",
            ".git/runner/.journal.json.tmp",
            ".runner/.GOAL.md.tmp",
            ".runner/state/.tree.json.tmp",
        ];
        let others =
            [".git/index.lock", ".git/refs/heads/main.lock", ".runner/state/notes.tmp", "work/.x.tmp"];
        for name in left.iter().chain(&others) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let old = folder.path().join(".git/refs/heads/runner/old.lock");
        let times = fs::FileTimes::new().set_modified(since - Duration::from_secs(60));
        File::create(&old).unwrap().set_times(times).unwrap();
        remove(&git, LastHolder::Died(since)).unwrap();
        for name in left {
            assert!(!folder.path().join(name).exists(), "{name} is left");
        }
        assert!(others.iter().all(|name| folder.path().join(name).exists()), "other files stay");
        assert!(old.exists(), "a lock from before the runner is not the runner's");
        assert!(has_ref_locks(&git));
    }

    #[test]
    fn the_room_is_built_again_after_a_power_cut_and_kept_after_a_crash() {
        let (_folder, git) = repository();
        let cache = git.paths().room().join("tree/target/cache");
        fs::create_dir_all(cache.parent().unwrap()).unwrap();
        fs::write(&cache, "").unwrap();
        remove(&git, LastHolder::Died(SystemTime::now())).unwrap();
        assert!(cache.exists());
        remove(&git, LastHolder::LostPower(SystemTime::now())).unwrap();
        assert!(!git.paths().room().exists());
    }

    #[test]
    fn a_lock_stays_if_no_runner_died() {
        let (folder, git) = repository();
        let lock = folder.path().join(".git/refs/heads/runner/demo.lock");
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        fs::write(&lock, "").unwrap();
        remove(&git, LastHolder::Released).unwrap();
        assert!(lock.exists(), "no runner died");
    }
}
