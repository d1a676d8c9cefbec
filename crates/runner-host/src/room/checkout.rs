//! The files of a room: a checkout of a tree, with an index of its own.
//!
//! Git runs outside of the sandbox, with the repository's own git directory and configuration, never with the one in the room.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use runner_core::model::object_id::TreeId;

use crate::error::Error;
use crate::fs::atomic::{self, FileStamp};
use crate::git::{Git, GitCommand, nul_separated};

#[derive(Debug)]
pub(super) struct Checkout {
    pub(super) tree: PathBuf,
    pub(super) index: PathBuf,
    /// Removes what the last run of the guard left, while the runner does other things.
    cleaning: Option<JoinHandle<Result<Vec<u8>, Error>>>,
    /// The untracked paths after the last cleaning, as git lists them.
    untracked: Option<Vec<u8>>,
    /// Whether only tracked and ignored files are there.
    is_clean: bool,
    /// The tree that was checked out last.
    current: Option<TreeId>,
    /// Files that were as in the tree before the guard, with stamps that every change since then changes.
    settled: BTreeMap<PathBuf, FileStamp>,
}

/// Only the runner reads this index. A guard can give a file that it changed its old size and time, but not its old time of
/// change.
const SETTINGS: [&str; 6] =
    ["-c", "index.skipHash=true", "-c", "core.trustctime=true", "-c", "core.checkStat=default"];

/// Untracked files and folders, nested repositories among them.
const CLEAN: [&str; 2] = ["clean", "-ffdq"];

/// What git does not track, with folders as one path.
const UNTRACKED: [&str; 4] = ["ls-files", "-z", "--others", "--directory"];

impl Checkout {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            tree: folder.join("tree"),
            index: folder.join("index"),
            cleaning: None,
            untracked: None,
            is_clean: false,
            current: None,
            settled: BTreeMap::new(),
        }
    }

    /// A git command on the files of the room.
    fn call<'g>(&self, git: &'g Git, args: &[&str]) -> GitCommand<'g> {
        let tree = self.tree.display().to_string();
        let args: Vec<&str> = ["-C", &tree].into_iter().chain(SETTINGS).chain(args.iter().copied()).collect();
        git.call(&args)
            .index(&self.index)
            .variable("GIT_DIR", git.git_dir())
            .variable("GIT_WORK_TREE", &self.tree)
    }

    /// Makes the tracked files those of a tree, whatever a guard did to them, and removes untracked files. A room that git
    /// cannot update is built again.
    pub(super) fn update(&mut self, git: &Git, tree: &TreeId) -> Result<(), Error> {
        self.end_clean();
        if self.try_update(git, tree).is_ok() {
            return Ok(());
        }
        self.remove_all()?;
        self.try_update(git, tree)
    }

    fn try_update(&mut self, git: &Git, tree: &TreeId) -> Result<(), Error> {
        atomic::remove_any(&self.index.with_extension("lock"))?;
        self.call(git, &["read-tree", "--reset", "-u", tree.as_str()]).run()?;
        self.untracked = None;
        self.current = Some(tree.clone());
        if !self.is_clean {
            self.call(git, &CLEAN).run()?;
            self.is_clean = true;
        }
        Ok(())
    }

    /// Removes the index and all files.
    pub(super) fn remove_all(&mut self) -> Result<(), Error> {
        self.end_clean();
        atomic::remove_any(&self.index)?;
        atomic::remove_any(&self.tree)?;
        std::fs::create_dir_all(&self.tree).map_err(Error::io("create", &self.tree))?;
        self.is_clean = true;
        self.untracked = None;
        Ok(())
    }

    pub(super) fn remove_ignored(&mut self, git: &Git) -> Result<(), Error> {
        self.end_clean();
        self.untracked = None;
        if !self.index.exists() {
            return Ok(());
        }
        if self.call(git, &["clean", "-ffdxq"]).run().is_err() {
            self.remove_all()?;
        }
        Ok(())
    }

    /// The base names of all tracked files.
    pub(super) fn names(&self, git: &Git) -> Result<Vec<Vec<u8>>, Error> {
        let listed = self.call(git, &["ls-files", "-z", "--cached"]).run()?;
        let name = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
        let mut names: Vec<Vec<u8>> = nul_separated(&listed).map(name).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Mode, object and path of the tracked files among some paths.
    pub(super) fn entries(&self, git: &Git, paths: &[String]) -> Result<Vec<u8>, Error> {
        let mut args = vec!["ls-files", "-z", "-s", "--cached", "--"];
        args.extend(paths.iter().map(String::as_str));
        if paths.is_empty() { Ok(Vec::new()) } else { self.call(git, &args).run() }
    }

    /// Stamps some files of the tree that was just checked out, so that [`Self::changed`] need not read them again.
    pub(super) fn stamp(&mut self, paths: &[PathBuf]) {
        let stamp = |path: &PathBuf| {
            let stamp = atomic::stamp(&self.tree.join(path)).filter(FileStamp::is_settled)?;
            Some((path.clone(), stamp))
        };
        self.settled = paths.iter().filter_map(stamp).collect();
    }

    /// Those of some tracked files that differ from the tree now.
    pub(super) fn changed(&self, git: &Git, paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, Error> {
        let is_same = |path: &PathBuf| {
            let before = self.settled.get(path);
            before.is_some() && atomic::stamp(&self.tree.join(path)).as_ref() == before
        };
        if paths.iter().all(is_same) {
            return Ok(Vec::new());
        }
        let literal: Vec<String> =
            paths.iter().map(|path| format!(":(top,literal){}", path.display())).collect();
        let mut args = vec!["diff-files", "-z", "--name-only", "--ignore-submodules", "--"];
        args.extend(literal.iter().map(String::as_str));
        let output = self.call(git, &args).run()?;
        Ok(nul_separated(&output).map(<[u8]>::to_vec).collect())
    }

    /// Removes untracked files in a thread of its own: nothing waits for it before the next run of the guard. Tracked files come
    /// first: a .gitignore that the guard changed must not hide anything.
    pub(super) fn begin_clean(&mut self, git: &Git) {
        self.is_clean = false;
        self.untracked = None;
        let Some(tree) = &self.current else { return };
        let restore = self.call(git, &["read-tree", "--reset", "-u", tree.as_str()]).detached();
        let clean = self.call(git, &CLEAN).detached();
        let thread = thread::Builder::new().name("room".to_owned());
        let list = self.call(git, &UNTRACKED).detached();
        let list_again = self.call(git, &UNTRACKED).detached();
        let work = move || {
            restore.run()?;
            let untracked = list.run()?;
            // Most guards leave nothing, and looking for what to clean reads every folder once more.
            if untracked.is_empty() {
                return Ok(untracked);
            }
            clean.run()?;
            list_again.run()
        };
        self.cleaning = thread.spawn(work).ok();
    }

    /// The ignored files and folders that are in the room now.
    pub(super) fn untracked(&mut self, git: &Git) -> Result<Vec<PathBuf>, Error> {
        self.end_clean();
        let listed = match self.untracked.take() {
            Some(listed) => listed,
            None if self.index.exists() => self.call(git, &UNTRACKED).run()?,
            None => Vec::new(),
        };
        let path = |path: &[u8]| {
            let path = path.strip_suffix(b"/").unwrap_or(path);
            self.tree.join(crate::git::path_of(path))
        };
        let paths = nul_separated(&listed).map(path).collect();
        self.untracked = Some(listed);
        Ok(paths)
    }

    fn end_clean(&mut self) {
        if let Some(cleaning) = self.cleaning.take() {
            let listed = cleaning.join().ok().and_then(Result::ok);
            self.is_clean = listed.is_some();
            self.untracked = listed;
        }
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        self.end_clean();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_settled_file_with_other_content_but_its_old_size_and_time_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        fs::write(folder.path().join("guard.sh"), "exit 1\n").unwrap();
        git.call(&["add", "guard.sh"]).run().unwrap();
        let tree = git.write_tree(&git.paths().index()).unwrap();
        let room = tempfile::tempdir().unwrap();
        let mut checkout = Checkout::new(room.path());
        checkout.remove_all().unwrap();
        checkout.update(&git, &tree).unwrap();
        let paths = [PathBuf::from("guard.sh")];
        thread::sleep(Duration::from_millis(2_100));
        checkout.stamp(&paths);
        assert_eq!(checkout.settled.len(), 1);
        assert_eq!(checkout.changed(&git, &paths).unwrap(), Vec::<Vec<u8>>::new());

        let guard = checkout.tree.join("guard.sh");
        let time = guard.metadata().unwrap().modified().unwrap();
        fs::write(&guard, "exit 0\n").unwrap();
        let file = fs::File::options().write(true).open(&guard).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(time)).unwrap();
        assert_eq!(checkout.changed(&git, &paths).unwrap(), [b"guard.sh".to_vec()]);
    }
}
