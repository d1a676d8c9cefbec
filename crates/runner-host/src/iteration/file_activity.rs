//! Whether a session changes files: what keeps a silent agent from being stopped as idle.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::git::{Git, path_of};
use crate::paths::is_runner_path;
use crate::repo::worktree;

/// Further entries of ignored folders are not looked at: a look must end soon, and build output is written all over.
const ENTRIES_MAX: usize = 200_000;

/// The changes to files since the last look. A look happens only when the agent seems idle; the first one compares times with
/// the start of the session.
pub(super) struct FileActivity<'s> {
    git: &'s Git,
    index: &'s Path,
    started: SystemTime,
    last_seen: Option<Vec<ChangedFile>>,
    /// The latest change in an ignored folder that was seen.
    last_ignored: Option<SystemTime>,
}

type ChangedFile = (Vec<u8>, Option<SystemTime>);

impl<'s> FileActivity<'s> {
    pub(super) fn new(git: &'s Git, index: &'s Path) -> Self {
        Self { git, index, started: SystemTime::now(), last_seen: None, last_ignored: None }
    }

    pub(super) fn has_changed(&mut self) -> bool {
        // Git would obey what the agent writes there at this moment.
        if !self.git.config_files_in_work_tree().is_empty() {
            return false;
        }
        let now = self.fingerprint();
        let ignored = self.latest_ignored();
        let has_changed = match &self.last_seen {
            Some(last_seen) => *last_seen != now || ignored > self.last_ignored,
            // A deleted file has no time.
            None => {
                now.iter().any(|(_, time)| time.is_none_or(|time| time >= self.started))
                    || ignored.is_some_and(|time| time >= self.started)
            }
        };
        self.last_seen = Some(now);
        self.last_ignored = self.last_ignored.max(ignored);
        has_changed
    }

    /// The changed files and their times: another value whenever a file changed.
    fn fingerprint(&self) -> Vec<ChangedFile> {
        let mut files = Vec::new();
        for path in worktree::differing_paths(self.git, self.index).unwrap_or_default() {
            let metadata = self.git.root().join(path_of(&path)).symlink_metadata();
            files.push((path, metadata.and_then(|metadata| metadata.modified()).ok()));
        }
        files
    }

    /// The latest change of an ignored file or of a folder with such files, the runner's own ones aside.
    fn latest_ignored(&self) -> Option<SystemTime> {
        let ignored = self.git.ignored_paths().unwrap_or_default();
        let ignored = ignored.into_iter().filter(|path| !is_runner_path(path));
        let mut left: Vec<PathBuf> = ignored.map(|path| self.git.root().join(path_of(&path))).collect();
        let mut latest = None;
        for _ in 0..ENTRIES_MAX {
            let Some(path) = left.pop() else { break };
            let Ok(metadata) = path.symlink_metadata() else { continue };
            latest = latest.max(metadata.modified().ok());
            if metadata.is_dir() {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
        }
        latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_an_ignored_folder_is_activity() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        fs::write(folder.path().join(".gitignore"), "/target/\n").unwrap();
        fs::create_dir_all(folder.path().join("target/debug")).unwrap();
        let index = git.paths().index();
        let hour = std::time::Duration::from_secs(3600);
        let mut activity = FileActivity::new(&git, &index);
        activity.started += hour;
        assert!(!activity.has_changed(), "files that are older than the session");
        let mut busy = FileActivity::new(&git, &index);
        busy.started -= hour;
        assert!(busy.has_changed(), "files that the session wrote before the first look");
        assert!(!busy.has_changed());
        let later = SystemTime::now() + 2 * hour;
        let file = fs::File::create(folder.path().join("target/debug/out.o")).unwrap();
        file.set_modified(later).unwrap();
        assert!(activity.has_changed());
        assert!(!activity.has_changed());
        fs::write(folder.path().join("src.txt"), "work").unwrap();
        assert!(activity.has_changed());
    }
}
