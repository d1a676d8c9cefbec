//! Staging what a session left in the work tree.
//!
//! Works on a private index that was copied before the session: nothing the session did to the user's index can hide a
//! change, and git reads only files that changed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runner_core::layout::{Doc, DocOwner, RUNNER_DIR, TOOLS_FILE};
use runner_core::model::id::IterationNumber;
use runner_core::model::object_id::CommitId;
use serde::Serialize;

use crate::error::Error;
use crate::fs::atomic::{self, FileStamp};
use crate::git::{ChangedPaths, Git, IndexEntry, PathChange, PathSet, ScanResult, path_of};
use crate::repo::paths::is_runner_path;

/// A file larger than this is set aside instead of committed.
const FILE_BYTES_MAX: u64 = 50 << 20;

/// Documents that only the runner writes. It knows their content, and git would hash a large tree at every scan.
const RUNNER_DOCS: [Doc; 2] = [Doc::Tree, Doc::RunState];

/// The changes that a session left in the work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StagedChanges {
    /// The staged paths: all that differ from what the index described.
    pub(crate) changed: ChangedPaths,
    pub(crate) set_aside: Vec<SetAsideFile>,
}

/// A file that cannot be committed and was moved out of the work tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SetAsideFile {
    path: String,
    why: &'static str,
}

/// Copies the user's index to a private one. The work tree is clean, so that both describe it. If the user's index still
/// has the stamp `known`, which it had when the runner wrote it, no entry is marked as assume-unchanged.
pub(crate) fn pin_index(git: &Git, known: Option<FileStamp>) -> Result<PathBuf, Error> {
    let index = git.paths().private_index("work");
    let is_known = known.is_some() && atomic::stamp(&git.paths().index()) == known;
    atomic::copy_with_mtime(&git.paths().index(), &index)?;
    if !is_known {
        git.clear_assume_unchanged(&index)?;
    }
    Ok(index)
}

/// Stages the work tree as it is now.
pub(crate) fn stage(git: &Git, index: &Path, iter: IterationNumber) -> Result<StagedChanges, Error> {
    let mut set_aside = Vec::new();
    let mut paths = changed_paths(git, index)?;
    let nested: Vec<Vec<u8>> = paths.keys().filter(|path| path.ends_with(b"/")).cloned().collect();
    if !nested.is_empty() {
        for path in nested {
            let name = String::from_utf8_lossy(&path).into_owned();
            move_aside(git, iter, &git.root().join(path_of(&path)).join(".git"), &format!("{name}.git"))?;
            let why = "was a nested repository: its files are committed, its history is set aside";
            set_aside.push(SetAsideFile { path: name, why });
        }
        paths = changed_paths(git, index)?;
    }
    let mut changed = ChangedPaths::new();
    let mut refused = Vec::new();
    for (path, change) in paths.into_iter().filter(|(path, _)| may_agent_change(path)) {
        let file = git.root().join(path_of(&path));
        if is_beyond_link(git, &path) || (is_runner_path(&path) && !is_regular_file(&file)) {
            continue;
        }
        if let Some(why) = reason_to_set_aside(&file) {
            let name = String::from_utf8_lossy(&path).into_owned();
            move_aside(git, iter, &file, &name)?;
            set_aside.push(SetAsideFile { path: name, why });
            refused.push(path);
            continue;
        }
        changed.insert(path, change);
    }
    let staged = git.add_paths(index, &changed.keys().cloned().collect::<Vec<_>>())?;
    let skipped = if staged == ScanResult::Complete { PathSet::new() } else { git.differing_paths(index)? };
    for path in skipped {
        if changed.get(&path) != Some(&PathChange::Untracked) {
            continue;
        }
        let name = String::from_utf8_lossy(&path).into_owned();
        move_aside(git, iter, &git.root().join(path_of(&path)), &name)?;
        set_aside.push(SetAsideFile { path: name, why: "has a name that git refuses" });
        changed.remove(&path);
    }
    // The committed version of a tracked file is restored, so that the guard sees what is committed.
    if !refused.is_empty() {
        git.check_out(index, &refused)?;
    }
    Ok(StagedChanges { changed, set_aside })
}

/// All paths that differ from the index. If an agent made folders unreadable, makes them readable and scans again.
fn changed_paths(git: &Git, index: &Path) -> Result<ChangedPaths, Error> {
    let (paths, scan) = git.status_against_index(index, &RUNNER_DOCS.map(Doc::path))?;
    if scan == ScanResult::Complete {
        return Ok(paths);
    }
    open_folders(git.root());
    git.status_against_index(index, &RUNNER_DOCS.map(Doc::path)).map(|(paths, _)| paths)
}

/// Whether the work tree differs from an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorktreeState {
    Clean,
    Dirty,
}

/// Compares the work tree with an index, without the documents that only the runner writes.
pub(crate) fn scan(git: &Git, index: &Path) -> Result<WorktreeState, Error> {
    let (paths, _) = git.status_against_index(index, &RUNNER_DOCS.map(Doc::path))?;
    Ok(if paths.is_empty() { WorktreeState::Clean } else { WorktreeState::Dirty })
}

/// Gives the owner access to every folder, as far as the system permits.
fn open_folders(folder: &Path) {
    open_to_owner(folder, 0o700);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && entry.file_name() != ".git" {
            open_folders(&entry.path());
        }
    }
}

fn open_to_owner(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(metadata) = path.symlink_metadata() else { return };
    let current = metadata.permissions().mode();
    let wanted = current | mode;
    if current != wanted && !metadata.is_symlink() {
        // A failure shows up when the file or folder is read.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(wanted));
    }
}

/// Why a file cannot be committed. Makes it readable to its owner first.
fn reason_to_set_aside(file: &Path) -> Option<&'static str> {
    let size = file.symlink_metadata().ok().filter(fs::Metadata::is_file)?.len();
    if is_unreadable(file) {
        open_to_owner(file, 0o600);
        if is_unreadable(file) {
            return Some("cannot be read");
        }
    }
    (size > FILE_BYTES_MAX).then_some("is too large for a commit")
}

fn is_unreadable(file: &Path) -> bool {
    fs::File::open(file).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

/// Whether an agent's change to this path is committed: anything outside the runner's folder; inside it the memory files
/// and the notes and artifacts of nodes. tools.json belongs to the user, like the configuration.
fn may_agent_change(path: &[u8]) -> bool {
    let nodes = [RUNNER_DIR.as_bytes(), b"/nodes/"].concat();
    let in_node = path.strip_prefix(nodes.as_slice()).map(|rest| rest.splitn(2, |byte| *byte == b'/').nth(1));
    !is_runner_path(path)
        || in_node.is_some_and(|name| name != Some(TOOLS_FILE.as_bytes()))
        || Doc::at(path).is_some_and(|doc| doc.owner() == DocOwner::Memory)
}

/// Whether a folder on the way to a path is a link: then git does not see the path, whatever the link points to.
fn is_beyond_link(git: &Git, path: &[u8]) -> bool {
    path_of(path)
        .ancestors()
        .skip(1)
        .map(|folder| git.root().join(folder))
        .take_while(|folder| folder != git.root())
        .any(|folder| folder.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()))
}

/// In the runner's folder only regular files are staged: a memory file that an agent removed or replaced is restored.
fn is_regular_file(file: &Path) -> bool {
    file.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

fn move_aside(git: &Git, iter: IterationNumber, from: &Path, name: &str) -> Result<(), Error> {
    let folder = git.paths().set_aside(&iter.to_string());
    atomic::create_folders(&git.git_dir(), &folder)?;
    let target = folder.join(name.replace('/', "-"));
    fs::rename(from, &target).map_err(Error::io("set aside", from))
}

/// Restores files in an index to their version in a commit; removes those that the commit does not have.
pub(crate) fn restore_in_index(
    git: &Git,
    index: &Path,
    commit: &CommitId,
    paths: &[Vec<u8>],
) -> Result<(), Error> {
    let mut edits = Vec::new();
    for path in paths {
        let name = path_of(path).to_string_lossy();
        let files = git.files_of(commit, &format!(":(literal){name}"))?;
        let file = files.into_iter().find(|file| file.path == *path);
        edits.push(file.map_or_else(|| IndexEntry::Remove(path.clone()), IndexEntry::Put));
    }
    git.edit_index(index, &edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_runners_folder_agents_may_only_change_memory_and_node_files() {
        for path in
            ["src/a.rs", ".runner/state/questions.md", ".runner/nodes/x/artifacts/tools.json", ".runnerx/y"]
        {
            assert!(may_agent_change(path.as_bytes()), "{path}");
        }
        for path in [
            ".runner/GOAL.md",
            ".runner/state/tree.json",
            ".runner/state/config.toml",
            ".runner/prompts/x",
            ".runner/nodes/x/tools.json",
        ] {
            assert!(!may_agent_change(path.as_bytes()), "{path}");
        }
    }
}
