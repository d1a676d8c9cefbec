//! The check files of a task: put at their destinations before a session, and there as they are frozen whatever it does.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runner_core::config::GuardConfig;
use runner_core::layout::{checks_path, node_folder};
use runner_core::model::checks::{CheckFilePath, CheckPath, TaskChecks, frozen_node};
use runner_core::model::id::NodeId;
use runner_core::model::object_id::CommitId;
use runner_core::model::protection::Protection;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tree::Tree;
use runner_core::step::{BlockedDestination, Job, LeftChecks, LeftFile, ProtectedPath, SessionTarget};

use super::red_check::StubFile;
use super::session_files::read_left_file;
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::lookup;
use crate::git::{EntryMode, Git, IndexEntry, PathSet, TreeEntry, path_of};
use crate::room::{Candidate, CheckFiles};

/// The most bytes of a checks.toml that an agent writes.
const CHECKS_BYTES_MAX: u64 = 1 << 20;
/// A larger file was not laid by the runner.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The check files of one task, as a commit has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaidFiles {
    files: Vec<LaidFile>,
}

#[derive(Clone, Debug)]
struct LaidFile {
    /// The frozen file, with its destination as path.
    entry: TreeEntry,
    bytes: Vec<u8>,
}

impl LaidFiles {
    /// Reads the check files of a job's task from a commit.
    pub(super) fn read(git: &Git, job: &Job, commit: &CommitId) -> Result<Self, Error> {
        let Some(checks) = &job.task.checks else { return Ok(Self::default()) };
        Self::of_task(git, &checks.node, &checks.task, commit)
    }

    /// Reads the check files of a task from a commit.
    pub(crate) fn of_task(
        git: &Git,
        node: &NodeId,
        task: &TaskChecks,
        commit: &CommitId,
    ) -> Result<Self, Error> {
        if task.files().next().is_none() {
            return Ok(Self::default());
        }
        let folder = format!("{}/", node_folder(node));
        let entries = git.files_of(commit, &folder)?;
        let mut files = Vec::new();
        for (destination, file) in task.files() {
            let source = format!("{folder}{file}").into_bytes();
            let Some(entry) = entries.iter().find(|entry| entry.path == source) else { continue };
            let bytes = git.blobs(&[&entry.object])?.into_iter().next().unwrap_or_default();
            let entry = TreeEntry { path: destination.as_str().into(), ..entry.clone() };
            files.push(LaidFile { entry, bytes });
        }
        Ok(Self { files })
    }

    /// The files, and stubs that can be executed.
    pub(super) fn with_stubs(mut self, git: &Git, stubs: &[StubFile]) -> Result<Self, Error> {
        for StubFile { path, bytes } in stubs {
            let object = git.store_blob(bytes)?;
            let entry = TreeEntry { mode: EntryMode::Executable, object, path: path.clone().into_bytes() };
            self.files.push(LaidFile { entry, bytes: bytes.clone() });
        }
        Ok(self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(crate) fn paths(&self) -> PathSet {
        self.files.iter().map(|file| file.entry.path.clone()).collect()
    }

    /// Writes the files into the work tree, in the place of whatever is there.
    pub(crate) fn lay(&self, git: &Git) -> Result<(), Error> {
        self.lay_in(git.root())
    }

    /// Removes the files from the work tree.
    pub(crate) fn remove(&self, git: &Git) -> Result<(), Error> {
        for file in &self.files {
            let path = git.root().join(path_of(&file.entry.path));
            atomic::remove_any(&path)?;
            remove_empty_folders(git.root(), &path);
        }
        Ok(())
    }

    /// The files that are no longer as they were laid.
    pub(super) fn changed(&self, git: &Git) -> Vec<ProtectedPath> {
        let is_changed = |file: &&LaidFile| {
            let path = git.root().join(path_of(&file.entry.path));
            atomic::read(&path, FILE_BYTES_MAX).ok().flatten().as_deref() != Some(file.bytes.as_slice())
        };
        self.files.iter().filter(is_changed).map(|file| changed_path(&file.entry.path)).collect()
    }

    /// Makes an index and the work tree have the files as they are frozen.
    pub(super) fn freeze(&self, git: &Git, index: &Path) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        git.edit_index(index, &self.index_entries())?;
        let paths: Vec<Vec<u8>> = self.paths().into_iter().collect();
        for path in paths.iter().map(|path| git.root().join(path_of(path))) {
            path.parent().map_or(Ok(()), |folder| atomic::create_folders(git.root(), folder))?;
            atomic::remove_any(&path)?;
        }
        git.check_out(index, &paths)
    }

    /// A commit's files with the check files among them.
    pub(crate) fn candidate(&self, git: &Git, commit: &CommitId) -> Result<Candidate, Error> {
        if self.is_empty() {
            return Ok(Candidate { tree: git.tree_of(commit)?, commit: commit.clone() });
        }
        let index = git.paths().private_index("red");
        git.read_into_index(&index, commit)?;
        git.edit_index(&index, &self.index_entries())?;
        let tree = git.write_tree(&index)?;
        atomic::remove_file(&index)?;
        let commit = git.store_commit(&tree, commit, "candidate\n")?;
        Ok(Candidate { tree, commit })
    }

    fn index_entries(&self) -> Vec<IndexEntry> {
        self.files.iter().map(|file| IndexEntry::Put(file.entry.clone())).collect()
    }
}

impl CheckFiles for LaidFiles {
    fn destinations(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| path_of(&file.entry.path).to_owned()).collect()
    }

    fn lay_in(&self, root: &Path) -> Result<(), Error> {
        for LaidFile { entry, bytes } in &self.files {
            let path = root.join(path_of(&entry.path));
            path.parent().map_or(Ok(()), |folder| atomic::create_folders(root, folder))?;
            atomic::remove_any(&path)?;
            fs::write(&path, bytes).map_err(Error::io("write", &path))?;
            if entry.mode == EntryMode::Executable {
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(&path, mode).map_err(Error::io("write", &path))?;
            }
        }
        Ok(())
    }
}

/// A file of checks that a session changed.
fn changed_path(path: &[u8]) -> ProtectedPath {
    ProtectedPath { path: RepoPath::of_bytes(path), existed_at_start: true, changed: true, exists: true }
}

/// Removes the folders above a file that are empty.
pub(super) fn remove_empty_folders(root: &Path, file: &Path) {
    let above = file.ancestors().skip(1).take_while(|folder| *folder != root);
    for folder in above {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// What a session did to checks.
#[derive(Debug, Default)]
pub(super) struct CheckChanges {
    /// Files of checks of tasks that existed before: they are restored.
    pub(super) frozen: Vec<Vec<u8>>,
    /// The checks of tasks that did not exist before.
    pub(super) new: BTreeMap<NodeId, LeftChecks>,
}

impl CheckChanges {
    /// Finds them among the paths that a session changed.
    pub(super) fn find(
        git: &Git,
        job: &Job,
        base: &CommitId,
        tree: &Tree,
        changed: &PathSet,
    ) -> Result<Self, Error> {
        let is_planning = matches!(job.target, SessionTarget::Plan(_));
        // A plan may bring checks for open tasks that have none; else they come with the task.
        let exists = |node: &NodeId| {
            let path = tree.path_to(node).unwrap_or_default();
            let has_checks = || git.file_at(base, &checks_path(node)).is_ok_and(|toml| !toml.is_empty());
            path.last().is_some_and(|task| !is_planning || task.passes || has_checks())
        };
        let mut changes = Self { frozen: removed_checks(git, job, changed), new: BTreeMap::new() };
        for path in changed {
            let toml = |node: &NodeId| git.file_at(base, &checks_path(node)).ok();
            if frozen_node(path, exists, toml).is_some() {
                changes.frozen.push(path.clone());
                continue;
            }
            let file = CheckFilePath::parse(path).filter(CheckFilePath::is_checks_toml);
            if let Some(file) = file.filter(|file| !exists(&file.node)) {
                let left = left_checks(git, job, &file.node)?;
                changes.new.insert(file.node, left);
            }
        }
        Ok(changes)
    }

    pub(super) fn frozen_paths(&self) -> impl Iterator<Item = ProtectedPath> {
        self.frozen.iter().map(|path| changed_path(path))
    }
}

/// The files of the task's own checks that a session removed, or replaced by something else: these are not staged.
fn removed_checks(git: &Git, job: &Job, changed: &PathSet) -> Vec<Vec<u8>> {
    let Some(checks) = &job.task.checks else { return Vec::new() };
    let files = checks.task.files().map(|(_, file)| format!("{}/{file}", node_folder(&checks.node)));
    let paths = files.chain([checks_path(&checks.node)]).map(String::into_bytes);
    let is_gone = |path: &Vec<u8>| {
        let metadata = git.root().join(path_of(path)).symlink_metadata();
        !changed.contains(path) && !metadata.is_ok_and(|metadata| metadata.is_file())
    };
    paths.filter(is_gone).collect()
}

/// The checks of a new task, as a session left them.
fn left_checks(git: &Git, job: &Job, node: &NodeId) -> Result<LeftChecks, Error> {
    let folder: PathBuf = git.root().join(node_folder(node));
    let toml = read_left_file(&git.root().join(checks_path(node)), CHECKS_BYTES_MAX);
    let entries = lookup::entries(&folder)?.into_iter();
    let regular = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let files = regular.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let mut blocked = BTreeMap::new();
    if let LeftFile::Bytes(bytes) = &toml {
        let destinations = LeftChecks::destinations(bytes);
        let paths: Vec<&str> = destinations.iter().map(CheckPath::as_str).collect();
        let protected = patterns_for_destinations(&job.permissions.protection, &job.guard);
        blocked = blocked_destinations(git, &protected, &paths)?;
    }
    Ok(LeftChecks { toml, files, blocked })
}

/// The protected files that a check must not bring. A wildcard that follows from the guard is for files that exist; more may be
/// added.
pub(crate) fn patterns_for_destinations(protection: &Protection, guard: &GuardConfig) -> Vec<String> {
    let is_open = |pattern: &String| {
        let is_wildcard = pattern.contains('*') && !pattern.contains('\\');
        let is_closed = protection.missing.iter().any(|missing| missing.as_str() == pattern);
        guard.protected.is_none() && is_wildcard && !is_closed
    };
    protection.files.iter().filter(|pattern| !is_open(pattern)).cloned().collect()
}

/// The paths among these that cannot be destinations: they exist, or they are protected.
pub(crate) fn blocked_destinations(
    git: &Git,
    protected: &[String],
    paths: &[&str],
) -> Result<BTreeMap<String, BlockedDestination>, Error> {
    let mut blocked = BTreeMap::new();
    for path in paths {
        if git.root().join(path).symlink_metadata().is_ok() {
            blocked.insert((*path).to_owned(), BlockedDestination::Exists);
        }
    }
    if paths.is_empty() || protected.is_empty() {
        return Ok(blocked);
    }
    // Git matches its patterns with the paths of an index only.
    let index = git.paths().private_index("match");
    atomic::remove_any(&index)?;
    let object = git.store_blob(b"")?;
    let entry = |path: &&str| {
        IndexEntry::Put(TreeEntry { mode: EntryMode::File, object: object.clone(), path: (*path).into() })
    };
    git.edit_index(&index, &paths.iter().map(entry).collect::<Vec<_>>())?;
    for path in git.matching_in_index(&index, protected)? {
        blocked.insert(String::from_utf8_lossy(&path).into_owned(), BlockedDestination::Protected);
    }
    atomic::remove_file(&index)?;
    Ok(blocked)
}
