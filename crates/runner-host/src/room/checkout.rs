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
use crate::room::cleaning::{CleanRoom, Cleaning, CleaningCommands, RoomFiles};
use crate::room::tree_stamps::TreeStamps;
use crate::room::tree_switch::TreeSwitch;

#[derive(Debug)]
pub(super) struct Checkout {
    pub(super) tree: PathBuf,
    pub(super) index: PathBuf,
    /// What happens in the room while the runner does other things.
    background: Option<Background>,
    /// The untracked paths after the last cleaning, relative to the tree.
    untracked: Option<Vec<PathBuf>>,
    /// Whether only tracked and ignored files are there.
    is_clean: bool,
    /// The tree that was checked out last.
    current: Option<TreeId>,
    /// Whether the tracked files were found to be those of `current`, and nothing could change them since.
    is_intact: bool,
    /// The index as the runner left it.
    index_stamp: Option<FileStamp>,
    /// The tracked files when they were last known.
    stamps: Option<TreeStamps>,
    /// Files that were as in the tree before the guard, with stamps that every change since then changes.
    settled: BTreeMap<PathBuf, FileStamp>,
}

#[derive(Debug)]
enum Background {
    /// Removes what the last run of the guard left.
    Cleaning(JoinHandle<Result<CleanRoom, Error>>),
    /// Checks out the files in which this tree differs from the current one.
    Switching { tree: TreeId, thread: JoinHandle<Result<Vec<u8>, Error>> },
}

/// Only the runner reads this index. A guard can give a file that it changed its old size and time, but not its old time of
/// change.
const SETTINGS: [&str; 6] =
    ["-c", "index.skipHash=true", "-c", "core.trustctime=true", "-c", "core.checkStat=default"];

const READ_TREE: &str = "read-tree";
const LIST: [&str; 3] = ["ls-files", "-z", "--cached"];
/// The files that define how others are checked out.
const ATTRIBUTES: &str = ":(top,glob)**/.gitattributes";

/// The arguments that make all tracked files those of a tree.
fn reset_args(tree: &TreeId) -> [&str; 4] {
    [READ_TREE, "--reset", "-u", tree.as_str()]
}

impl Checkout {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            tree: folder.join("tree"),
            index: folder.join("index"),
            background: None,
            untracked: None,
            is_clean: false,
            current: None,
            is_intact: false,
            index_stamp: None,
            stamps: None,
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
        self.finish_cleaning(git);
        if self.switch(git, tree).or_else(|_| self.reset(git, tree)).is_err() {
            self.remove_all()?;
            self.reset(git, tree)?;
        }
        self.current = Some(tree.clone());
        self.index_stamp = atomic::stamp(&self.index);
        self.mark_used();
        Ok(())
    }

    /// Goes from the current tree to another one, and looks only at the files that differ. That is enough if the other files are
    /// known to be as in the current tree; otherwise all are reset.
    fn switch(&mut self, git: &Git, tree: &TreeId) -> Result<(), Error> {
        match self.tree_switch(git, tree)? {
            Some(switch) => {
                let written = switch.run()?;
                self.stamp_written(&written);
                Ok(())
            }
            None if self.is_intact => Ok(()),
            None => self.reset(git, tree),
        }
    }

    /// The commands that go from the current tree to another one; none if it is the same, or if the files are not known.
    fn tree_switch(&self, git: &Git, tree: &TreeId) -> Result<Option<TreeSwitch>, Error> {
        let current = self.current.as_ref().filter(|current| self.is_intact && *current != tree);
        let Some(current) = current else { return Ok(None) };
        self.remove_index_lock()?;
        let [old, new] = [current.as_str(), tree.as_str()];
        let paths = ["--pathspec-from-file=-", "--pathspec-file-nul"];
        let check_out = ["checkout", "-q", "--no-overlay", new, paths[0], paths[1]];
        Ok(Some(TreeSwitch {
            paths: git.tree_differences(current, tree)?,
            check_out: self.call(git, &check_out).variable("GIT_LITERAL_PATHSPECS", "1").detached(),
            read_tree: self.call(git, &[READ_TREE, "-m", "-u", old, new]).detached(),
        }))
    }

    /// Begins to update the files to a tree in a thread of its own, if only the files that differ must be looked at.
    pub(super) fn begin_update(&mut self, git: &Git, tree: &TreeId) {
        self.finish_cleaning(git);
        let Ok(Some(switch)) = self.tree_switch(git, tree) else { return };
        let thread = thread::Builder::new().name("room".to_owned()).spawn(move || switch.run());
        self.background = thread.ok().map(|thread| Background::Switching { tree: tree.clone(), thread });
    }

    fn reset(&mut self, git: &Git, tree: &TreeId) -> Result<(), Error> {
        self.remove_index_lock()?;
        let attributes = ["diff-index", "--cached", "-z", "--name-only", tree.as_str(), "--", ATTRIBUTES];
        if self.index.exists() && !self.call(git, &attributes).run()?.is_empty() {
            // Without an index, git writes every file.
            atomic::remove_any(&self.index)?;
        }
        self.call(git, &reset_args(tree)).run()?;
        if !self.is_clean {
            let CleanRoom { files, stamps } = self.cleaning(git, tree).run()?;
            files.require_intact()?;
            self.stamps = stamps;
            self.is_clean = true;
        }
        Ok(())
    }

    fn remove_index_lock(&self) -> Result<(), Error> {
        atomic::remove_any(&self.index.with_extension("lock"))
    }

    /// Stamps the files that git just wrote or removed.
    fn stamp_written(&mut self, paths: &[u8]) {
        self.stamps = self.stamps.take().and_then(|stamps| stamps.refreshed(&self.tree, paths));
    }

    /// Makes the next update look at every file, because something changed files of the room.
    pub(super) fn distrust(&mut self) {
        self.is_intact = false;
    }

    /// Records that a program may have changed any file.
    pub(super) fn mark_used(&mut self) {
        self.end_background();
        self.is_clean = false;
        self.is_intact = false;
        self.untracked = None;
    }

    /// Removes the index and all files.
    pub(super) fn remove_all(&mut self) -> Result<(), Error> {
        self.end_background();
        atomic::remove_any(&self.index)?;
        atomic::remove_any(&self.tree)?;
        std::fs::create_dir_all(&self.tree).map_err(Error::io("create", &self.tree))?;
        self.is_clean = true;
        self.is_intact = false;
        (self.untracked, self.stamps) = (None, None);
        Ok(())
    }

    pub(super) fn remove_ignored(&mut self, git: &Git) -> Result<(), Error> {
        self.end_background();
        self.is_intact = false;
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
        let listed = self.call(git, &LIST).run()?;
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

    /// Lets the index know files that the runner wrote itself, with a NUL after each. One that git cannot convert back stays
    /// changed: refreshing would call all of them changed, by their size.
    pub(super) fn stage_written(&mut self, git: &Git, paths: &[u8]) {
        let _ = self.call(git, &["update-index", "-q", "-z", "--stdin"]).input(paths).run();
        self.index_stamp = atomic::stamp(&self.index);
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

    /// Restores tracked files and removes untracked ones in a thread of its own, if a program may have changed any. Nothing waits
    /// for it before the next run of the guard.
    pub(super) fn begin_clean(&mut self, git: &Git) {
        if self.background.is_some() || self.is_clean {
            return;
        }
        let Some(current) = &self.current else { return };
        if atomic::stamp(&self.index) != self.index_stamp {
            // What the index records about the files is not the runner's: they are all checked out again.
            (self.current, self.stamps) = (None, None);
            let _ = atomic::remove_any(&self.index);
            return;
        }
        let current = current.clone();
        let cleaning = self.cleaning(git, &current);
        let thread = thread::Builder::new().name("room".to_owned()).spawn(move || cleaning.run());
        self.background = thread.ok().map(Background::Cleaning);
    }

    fn finish_cleaning(&mut self, git: &Git) {
        self.begin_clean(git);
        self.end_background();
    }

    /// What brings the room back to a tree, whose files were checked out before.
    fn cleaning(&mut self, git: &Git, tree: &TreeId) -> Cleaning {
        let command = |args: &[&str]| self.call(git, args).detached();
        let commands = CleaningCommands {
            scan: command(&RoomFiles::SCAN),
            reset: command(&reset_args(tree)),
            clean: command(&["clean", "-ffdq"]),
            scan_again: command(&RoomFiles::SCAN),
            list: command(&LIST),
        };
        Cleaning { tree: self.tree.clone(), stamps: self.stamps.take(), commands }
    }

    /// The ignored files and folders that are in the room now.
    pub(super) fn untracked(&mut self, git: &Git) -> Result<Vec<PathBuf>, Error> {
        self.finish_cleaning(git);
        let untracked = match self.untracked.take() {
            Some(untracked) => untracked,
            None if self.index.exists() => RoomFiles::scan(self.call(git, &RoomFiles::SCAN))?.untracked,
            None => Vec::new(),
        };
        let paths = untracked.iter().map(|path| self.tree.join(path)).collect();
        self.untracked = Some(untracked);
        Ok(paths)
    }

    fn end_background(&mut self) {
        match self.background.take() {
            None => {}
            Some(Background::Cleaning(thread)) => {
                let room = thread.join().ok().and_then(Result::ok);
                self.is_clean = room.is_some();
                self.is_intact = room.as_ref().is_some_and(|room| room.files.is_intact());
                (self.untracked, self.stamps) =
                    room.map_or((None, None), |room| (Some(room.files.untracked), room.stamps));
            }
            Some(Background::Switching { tree, thread }) => {
                let written = thread.join().ok().and_then(Result::ok);
                self.is_intact = written.is_some();
                self.current = Some(tree).filter(|_| self.is_intact);
                match written {
                    Some(written) => self.stamp_written(&written),
                    None => self.stamps = None,
                }
                self.index_stamp = atomic::stamp(&self.index);
            }
        }
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        self.end_background();
    }
}

#[cfg(test)]
mod tests;
